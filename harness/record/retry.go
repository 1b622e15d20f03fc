package record

import (
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// A Class says why something was tried again.
type Class string

// The classes.
const (
	ClassTransient  Class = "transient"         // network, a server's fault, an answer that broke off
	ClassLimited    Class = "rate limited"      // not before the provider allowed it
	ClassArguments  Class = "invalid arguments" // a tool refuses the model's arguments, or the provider the request as it is
	ClassPermission Class = "permission"        // key or bill: an operator must act
	ClassMissing    Class = "not found"         // there is no such model, or no such tool in the step
	ClassOverflow   Class = "context overflow"  // summarised, then asked once more
	ClassUnknown    Class = "outcome unknown"   // a crash left a call open: it may have happened
	ClassBug        Class = "deterministic bug" // a tool panicked, or the agent cannot be rendered: trying again changes nothing
	ClassBudget     Class = "budget"            // a limit ended the turn
	ClassCrash      Class = "crash"             // the turn was taken up by another attempt
)

// ClassOf is the class of a failed model call.
func ClassOf(f model.Fault) Class {
	switch f {
	case model.Limited:
		return ClassLimited
	case model.Invalid:
		return ClassArguments
	case model.Denied:
		return ClassPermission
	case model.Missing:
		return ClassMissing
	case model.Overflow:
		return ClassOverflow
	case model.Transient, model.Truncated, model.Stalled, model.Garbled, model.Canceled:
	}
	return ClassTransient
}

// A Retry is something that failed or broke off and was tried again, or could
// not be.
type Retry struct {
	Record  int64         `json:"record"`
	At      time.Time     `json:"at"`
	Turn    string        `json:"turn"`
	Task    string        `json:"task,omitempty"` // the calls that lead to it
	Step    int           `json:"step"`
	Try     int           `json:"try,omitempty"` // that failed, from 1; of a crash the last attempt
	Class   Class         `json:"class"`
	Fault   model.Fault   `json:"fault,omitempty"`
	Status  int           `json:"status,omitempty"`
	Code    string        `json:"code,omitempty"`
	Asked   string        `json:"asked,omitempty"` // the model that failed
	Next    string        `json:"next,omitempty"`  // the model that is asked instead
	Tool    string        `json:"tool,omitempty"`
	Call    string        `json:"call,omitempty"`
	Wait    time.Duration `json:"wait_ns"`
	Took    time.Duration `json:"took_ns"`
	Cost    float64       `json:"cost"`
	Version string        `json:"version,omitempty"` // of the code
	Result  string        `json:"result"`            // "failed again", "answered", "open", "told to the model", "left to people", "probed: " and what was found, or how the call or the turn ended
}

// Retries lists what was tried again, in the order of the log.
func Retries(records []state.Record) ([]Retry, error) {
	var l retries
	for _, r := range records {
		b, err := Decode(r)
		if err != nil {
			return nil, err
		}
		task := ""
		if c, ok := b.(Child); ok {
			task, b = strings.Join(c.Task, "/"), c.Body
		}
		l.add(r, task, b)
	}
	return l.list, nil
}

type retries struct {
	list    []Retry
	version string
}

func (l *retries) add(r state.Record, task string, b Body) {
	n := Retry{Record: r.Seq, At: r.At, Task: task, Version: l.version, Result: "open"}
	switch b := b.(type) {
	case Rendered:
		if b.Version != "" {
			l.version = b.Version
		}
	case Retried:
		l.end(task, b.Turn, b.Step, b.Call, "failed again")
		n.Turn, n.Step, n.Try, n.Class, n.Tool, n.Call = b.Turn, b.Step, b.Try, ClassOf(b.Fault), b.Tool, b.Call
		n.Fault, n.Status, n.Code, n.Asked, n.Next = b.Fault, b.Status, b.Code, b.Asked, b.Next
		n.Wait, n.Took, n.Cost = b.Wait, b.Took, b.Cost
		l.list = append(l.list, n)
	case Folded:
		if b.Why == "overflow" {
			l.end(task, b.Turn, b.Step, "", "failed again")
			n.Turn, n.Step, n.Class, n.Asked, n.Took, n.Cost = b.Turn, b.Step, ClassOverflow, b.Asked, b.Took, b.Cost
			l.list = append(l.list, n)
		}
	case Said:
		l.end(task, b.Turn, b.Step, "", "answered")
	case Probed:
		n.Turn, n.Step, n.Try, n.Class, n.Tool, n.Call, n.Result = b.Turn, b.Step, b.Try, ClassUnknown, b.Tool, b.Call, "probed: "+b.Found
		l.list = append(l.list, n)
	case Did:
		l.end(task, b.Turn, b.Step, b.CallID, string(b.End))
		if n.Class, n.Result = doubt(b); n.Class != "" {
			n.Turn, n.Step, n.Tool, n.Call = b.Turn, b.Step, b.Tool, b.CallID
			l.list = append(l.list, n)
		}
	case Settled:
		l.end(task, b.Turn, 0, "", string(b.Outcome))
		n.Turn, n.Step, n.Result = b.Turn, b.Steps, string(b.Outcome)
		if n.Class, n.Fault = endOf(b.Reason); n.Class != "" {
			if n.Fault == "" {
				n.Code = b.Reason
			}
			l.list = append(l.list, n)
		}
		if b.Attempt > 1 && task == "" {
			n.Try, n.Class, n.Fault, n.Code = b.Attempt, ClassCrash, "", ""
			l.list = append(l.list, n)
		}
	}
}

// doubt is the class of a call that did not end well by itself, "" for others,
// and what became of it.
func doubt(b Did) (Class, string) {
	switch {
	case b.End == Unknown:
		return ClassUnknown, "told to the model"
	case b.End == NeedsHuman:
		return ClassUnknown, "left to people"
	case b.Rejected == BadArguments:
		return ClassArguments, "told to the model"
	case b.Rejected == UnknownTool:
		return ClassMissing, "told to the model"
	case b.Crashed:
		return ClassBug, "failed"
	}
	return "", ""
}

// endOf is the class of what ended a turn, and its last fault, "" if that is none.
func endOf(reason string) (Class, model.Fault) {
	switch reason {
	case TooManySteps, TooMuchTime, TooManyTokens, TooExpensiveTurn, TooExpensive, TooExpensiveDay:
		return ClassBudget, ""
	case NotRendered:
		return ClassBug, ""
	}
	if fault, ok := strings.CutPrefix(reason, NoModel); ok {
		return ClassOf(model.Fault(fault)), model.Fault(fault)
	}
	return "", ""
}

// end says what became of the retries of a step, or of one of its calls, that
// are open, or of all of a turn with step 0.
func (l *retries) end(task, turn string, step int, call, result string) {
	for i := len(l.list) - 1; i >= 0; i-- {
		r := &l.list[i]
		if r.Result == "open" && r.Task == task && r.Turn == turn && (step == 0 || r.Step == step && r.Call == call) {
			r.Result = result
		}
	}
}
