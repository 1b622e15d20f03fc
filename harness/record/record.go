// Package record is the typed log of a conversation: its entries, their codec,
// and the fold that reads them into a present. Old forms keep their decoders.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// A Body is one kind of entry. The set is closed.
type Body interface{ kind() string }

// Heard is an event that was taken: by a turn, or between turns if it asks for no answer.
type Heard struct {
	Turn  string     `json:"turn,omitempty"`
	Event chat.Event `json:"event"`
	Role  chat.Role  `json:"role"` // of its author when it was taken
	// Late is how long after it was said it came, if that is long, or else by how
	// much something later came before it.
	Late time.Duration `json:"late_ns,omitempty"`
}

// Passed is an event that was taken and is not answered; its text is not kept.
type Passed struct {
	Event  string      `json:"event"` // its id
	Author chat.Author `json:"author"`
	Reason string      `json:"reason"`
	Entry  int64       `json:"entry,omitempty"` // of one that was obeyed before its turn came: its place in the inbox
}

// Rendered is the manifest of a step, stored before anything is run with it.
type Rendered struct {
	Turn   string        `json:"turn"`
	Step   int           `json:"step"`
	Trust  chat.Role     `json:"trust"`
	Now    time.Time     `json:"now"`
	Digest string        `json:"digest"`
	View   *harness.View `json:"view,omitempty"` // when the digest differs from the last one
	// Version is of the code, when it differs from the last one.
	Version string `json:"version,omitempty"`
	// Loads are deferred tools that the request defines from this step on.
	Loads []string `json:"loads,omitempty"`
}

// Told is an announcement: the harness tells the model what has changed.
type Told struct {
	Turn string `json:"turn"`
	Step int    `json:"step"`
	Text string `json:"text"`
}

// Retried is a model call, or the call of a tool, that failed and was made again.
type Retried struct {
	Turn   string        `json:"turn"`
	Step   int           `json:"step"`
	Try    int           `json:"try"`             // of the one that failed, from 1
	Fault  model.Fault   `json:"fault,omitempty"` // of a model call
	Tool   string        `json:"tool,omitempty"`
	Call   string        `json:"call,omitempty"`
	Status int           `json:"status,omitempty"`
	Code   string        `json:"code,omitempty"`
	Wait   time.Duration `json:"wait_ns"`
	Next   string        `json:"next,omitempty"`    // the fallback that is asked instead, "provider/model"
	Asked  string        `json:"asked,omitempty"`   // the model that failed, "provider/model"
	Took   time.Duration `json:"took_ns,omitempty"` // of the try that failed
	Usage  model.Usage   `json:"usage,omitzero"`    // what it used all the same
	Cost   float64       `json:"cost,omitempty"`    // US dollars
}

// Cited is a text from elsewhere that the model is shown as data.
type Cited struct {
	Turn   string `json:"turn"`
	Step   int    `json:"step"`
	Source string `json:"source"` // what it is and where it comes from, for the model and people
	Digest string `json:"digest"` // of the text
	Text   string `json:"text"`
}

// Said is the answer of a model call.
type Said struct {
	Turn     string          `json:"turn"`
	Step     int             `json:"step"`
	Parts    []model.Part    `json:"parts"`
	Stop     model.Stop      `json:"stop"`
	Asked    string          `json:"asked"`    // provider/model
	Answered string          `json:"answered"` // the model as the provider names it
	ID       string          `json:"id,omitempty"`
	Prompt   string          `json:"prompt"`            // digest of the system text
	Request  string          `json:"request,omitempty"` // digest of what was asked, see turn.Engine.Replay
	Usage    model.Usage     `json:"usage"`
	Cost     float64         `json:"cost,omitempty"` // US dollars
	Took     time.Duration   `json:"took_ns"`
	Raw      json.RawMessage `json:"raw,omitempty"` // the provider's answer
}

// Did is the result of a call, or the reason why there is none.
type Did struct {
	Turn   string          `json:"turn"`
	Step   int             `json:"step"`
	CallID string          `json:"call"`
	Tool   string          `json:"tool"`
	Args   string          `json:"args"`          // digest of the arguments
	Ran    json.RawMessage `json:"ran,omitempty"` // arguments that a guard put in the place of the model's
	End    End             `json:"end"`
	Text   string          `json:"text"`   // what the model is told
	Digest string          `json:"digest"` // of the text
	Took   time.Duration   `json:"took_ns"`
	// Rejected is the mistake of the model's for which nothing ran, see UnknownTool.
	Rejected string  `json:"rejected,omitempty"`
	Crashed  bool    `json:"crashed,omitempty"` // the tool panicked
	Voices   []Voice `json:"voices,omitempty"`  // whose words from elsewhere the text holds
	Probed   bool    `json:"probed,omitempty"`  // the end is what a probe has found
	Unclear  string  `json:"unclear,omitempty"` // of NeedsHuman: the tool, which may be a subagent's
	// Images are shown after the results of the step.
	Images []Picture `json:"images,omitempty"`
}

// The mistakes of a model's call.
const (
	UnknownTool  = "unknown tool"
	BadArguments = "bad arguments"
)

// End says how a call ended.
type End string

// The ends.
const (
	Done     End = "done"
	Failed   End = "failed"   // the tool returned an error
	Refused  End = "refused"  // not in the manifest or bad arguments: nothing ran
	Unknown  End = "unknown"  // a crash, a stop or a lost reply: it may have run
	Canceled End = "canceled" // a tool that may be interrupted was
)

// NeedsHuman is the end of a call whose outcome a probe could not find out
// either, and the outcome of its turn: people have to look.
const NeedsHuman = "needs_human"

// Memo is the value of a finished step of a durable call.
type Memo struct {
	Turn  string          `json:"turn"`
	Step  int             `json:"step"`
	Call  string          `json:"call"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Began says that the turn's start callbacks have run.
type Began struct {
	Turn  string   `json:"turn"`
	Hooks []string `json:"hooks"`
}

// Sent is a text with which a finish callback sends the model back to work, or
// the harness, when the answer lacks the form that was wanted.
type Sent struct {
	Turn string `json:"turn"`
	Step int    `json:"step"`
	Hook string `json:"hook,omitempty"` // "" for the harness
	Text string `json:"text"`
}

// Wrote is a change of a state, made by a call.
type Wrote struct {
	Turn    string          `json:"turn"`
	Step    int             `json:"step"`
	Call    string          `json:"call"`
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value,omitempty"`   // none if the state was deleted
	Version int             `json:"version,omitempty"` // of the value's form, 0 for the first
}

// Data is a value for programs that read the conversation, written by a call.
type Data struct {
	Turn  string          `json:"turn"`
	Step  int             `json:"step"`
	Call  string          `json:"call"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Dispatched is a text for another conversation, or for this one; the post with
// the same key brings it there.
type Dispatched struct {
	Turn string      `json:"turn"`
	Step int         `json:"step"`
	Call string      `json:"call"`
	Key  string      `json:"key"`
	To   chat.Thread `json:"to"`
	Text string      `json:"text"`
}

// Resulted is the answer in the form that was wanted, or why there is none. The
// turn ends with it, unless a finish callback sends the model back.
type Resulted struct {
	Turn   string          `json:"turn"`
	Step   int             `json:"step"`
	Value  json.RawMessage `json:"value,omitempty"`
	GaveUp string          `json:"gave_up,omitempty"`
}

// Notified says that the callbacks of a settled turn have run.
type Notified struct {
	Turn  string   `json:"turn"`
	Hooks []string `json:"hooks,omitempty"`
}

// Folded replaces the oldest messages by a summary of them, so that the rest
// fits the model's window. The log itself stays as it is.
type Folded struct {
	Turn    string        `json:"turn"`
	Step    int           `json:"step"`
	Why     string        `json:"why"`     // "threshold" or "overflow"
	Drop    int           `json:"drop"`    // how many messages the summary stands for
	Summary string        `json:"summary"` // with the sections of Sections
	Before  int           `json:"before"`  // tokens of the request, estimated
	After   int           `json:"after"`
	Kept    string        `json:"kept,omitempty"` // texts of callbacks, which stand in it as they are
	Asked   string        `json:"asked"`          // provider/model that wrote it
	Usage   model.Usage   `json:"usage"`
	Cost    float64       `json:"cost,omitempty"`
	Took    time.Duration `json:"took_ns"`
}

// Sections are the headings of a summary, in order.
var Sections = [...]string{"Goal", "Progress", "Decisions", "Next steps"}

// Child is an entry of the log of a task: what a subagent heard, said and did.
type Child struct {
	Task []string        `json:"task"` // the calls that gave it, the outermost first
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
	Body Body            `json:"-"` // Kind and Data decoded; Encode takes either
}

// Forked is the first entry that a fork has of its own.
type Forked struct {
	From       state.ID    `json:"from"`
	Seq        int64       `json:"seq"`                   // of the last entry that both have
	Thread     chat.Thread `json:"thread,omitzero"`       // of the original
	NewerFiles bool        `json:"newer_files,omitempty"` // its files may be of a later time than that entry
}

// Settled ends a turn.
type Settled struct {
	Turn    string      `json:"turn"`
	Outcome Outcome     `json:"outcome"`
	Reason  string      `json:"reason,omitempty"` // constant text, for people and metrics
	Steps   int         `json:"steps"`
	Posts   int         `json:"posts"`
	Attempt int         `json:"attempt"`
	Usage   model.Usage `json:"usage"`
	Cost    float64     `json:"cost,omitempty"`
	Answer  string      `json:"answer,omitempty"` // of a task: what its giver is told
	Chain   string      `json:"chain,omitempty"`  // of the log before this record, see Link
	// Value is the answer in the form that was wanted.
	Value json.RawMessage `json:"value,omitempty"`
	// Due is what people read, when callbacks of the settled turn are still to run.
	Due string `json:"due,omitempty"`
}

// An Outcome is how a turn ended.
type Outcome string

// The outcomes of a turn.
const (
	Answered Outcome = "answered"
	Declined Outcome = "declined" // the model refused
	Broken   Outcome = "failed"
	Parked   Outcome = "parked"  // it crashed too often
	Aborted  Outcome = "aborted" // by people: for one of the reasons below
)

// Why a turn was aborted.
const (
	Stopped   = "stopped"
	Replaced  = "replaced"
	Withdrawn = "withdrawn"
)

// Which limit has ended a turn.
const (
	TooManySteps     = "too many steps"
	TooMuchTime      = "too much time"
	TooManyTokens    = "too many tokens"
	TooExpensiveTurn = "turn too expensive"
	TooExpensive     = "conversation too expensive"
	TooExpensiveDay  = "day too expensive"
)

// Why else a turn failed.
const (
	NotRendered = "agent"  // it could not say what it may use
	NoModel     = "model " // and the fault: no model has answered
)

// aborted is what the model is told.
var aborted = map[string]string{
	Stopped:   "The people here stopped you before you were done. Do not go on with it unless you are asked to.",
	Withdrawn: "You were stopped, because the message that you were to answer was taken back. Do not go on with it.",
	Replaced:  "You were stopped before you were done, because the next message takes the place of what you were asked.",
}

func (Heard) kind() string      { return "heard" }
func (Passed) kind() string     { return "passed" }
func (Rendered) kind() string   { return "rendered" }
func (Told) kind() string       { return "told" }
func (Retried) kind() string    { return "retried" }
func (Cited) kind() string      { return "cited" }
func (Said) kind() string       { return "said" }
func (Did) kind() string        { return "did" }
func (Memo) kind() string       { return "memo" }
func (Began) kind() string      { return "began" }
func (Sent) kind() string       { return "sent" }
func (Wrote) kind() string      { return "wrote" }
func (Data) kind() string       { return "data" }
func (Dispatched) kind() string { return "dispatched" }
func (Resulted) kind() string   { return "resulted" }
func (Notified) kind() string   { return "notified" }
func (Folded) kind() string     { return "folded" }
func (Child) kind() string      { return "child" }
func (Forked) kind() string     { return "forked" }
func (Settled) kind() string    { return "settled" }

// Shown says whether what the model will see depends on how the entry reads
// once it has been written down: raw values lose their blanks, texts their
// invalid bytes. An event has been through a store already.
func Shown(b Body) bool {
	switch b := b.(type) {
	case Said, Chunk, Torn, Did, Wrote, Memo, Told, Sent, Cited, Resulted, Folded, Fetched:
		return true
	case Child:
		return Shown(b.Body)
	case Rendered:
		return b.View != nil
	case Heard, Passed, Retried, Began, Data, Forked, Asked, Probed, Dispatched, Notified, Controlled, Rested, Resumed, Unshown, Posted, Settled:
	}
	return false
}

// Encode makes a record for a batch.
func Encode(b Body) (state.Record, error) {
	if c, ok := b.(Child); ok && c.Body != nil {
		in, err := Encode(c.Body)
		if err != nil {
			return state.Record{}, err
		}
		c.Kind, c.Data = in.Kind, in.Data
		b = c
	}
	data, err := encode(b)
	if err != nil {
		return state.Record{}, fmt.Errorf("encode %s: %w", b.kind(), err)
	}
	return state.Record{Kind: b.kind(), Data: data}, nil
}

// encode is JSON that reads back as it is: escapes for HTML would change the
// bytes of raw values on their second way.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode reads a record that Encode made, now or in an earlier version.
func Decode(r state.Record) (Body, error) {
	switch r.Kind {
	case "heard":
		return decode[Heard](r)
	case "passed":
		return decode[Passed](r)
	case "rendered":
		return decode[Rendered](r)
	case "told":
		return decode[Told](r)
	case "cited":
		return decode[Cited](r)
	case "retried":
		return decode[Retried](r)
	case "said":
		return decode[Said](r)
	case "did":
		return decode[Did](r)
	case "memo":
		return decode[Memo](r)
	case "asked":
		return decode[Asked](r)
	case "probed":
		return decode[Probed](r)
	case "chunk":
		return decode[Chunk](r)
	case "torn":
		return decode[Torn](r)
	case "began":
		return decode[Began](r)
	case "sent":
		return decode[Sent](r)
	case "wrote":
		return decode[Wrote](r)
	case "data":
		return decode[Data](r)
	case "dispatched":
		return decode[Dispatched](r)
	case "resulted":
		return decode[Resulted](r)
	case "notified":
		return decode[Notified](r)
	case "folded":
		return decode[Folded](r)
	case "child":
		return decodeChild(r)
	case "forked":
		return decode[Forked](r)
	case "controlled":
		return decode[Controlled](r)
	case "rested":
		return decode[Rested](r)
	case "resumed":
		return decode[Resumed](r)
	case "fetched":
		return decode[Fetched](r)
	case "unshown":
		return decode[Unshown](r)
	case "posted":
		return decode[Posted](r)
	case "settled":
		return decode[Settled](r)
	}
	return nil, fmt.Errorf("record %d: unknown kind %q; it was written by a newer version", r.Seq, r.Kind)
}

func decode[B Body](r state.Record) (Body, error) {
	var b B
	if err := json.Unmarshal(r.Data, &b); err != nil {
		return nil, fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return b, nil
}

func decodeChild(r state.Record) (Body, error) {
	var c Child
	err := json.Unmarshal(r.Data, &c)
	switch {
	case err != nil:
	case len(c.Task) == 0:
		err = errors.New("it names no task")
	default:
		c.Body, err = Decode(state.Record{Seq: r.Seq, Kind: c.Kind, Data: c.Data})
	}
	if err != nil {
		return nil, fmt.Errorf("record %d (child): %w", r.Seq, err)
	}
	return c, nil
}
