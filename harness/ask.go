package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// A Wait is what a durable tool fails with when it cannot go on now. The call
// stays open and nothing is held meanwhile; the tool is run again when the time
// has come or something was heard, and finds what it finished with [Step].
// [Ask] and [Sleep] fail with one that the engine remembers.
type Wait struct {
	Until    time.Time // zero for: until something is heard
	Question *Question // of Ask and Sleep: the tool is run again when that is over
}

func (*Wait) Error() string { return "the call waits; only that of a durable tool can" }

// A Question is what a call waits for: an answer by somebody in the thread, or,
// without a text, a time.
type Question struct {
	Name    string // of the step that the answer becomes
	Text    string // what is posted
	Who     chat.Role
	Until   time.Time // zero for: as long as it takes
	Default string    // the answer if there is none by then
}

// A Reply is the answer to a question.
type Reply struct {
	Text    string      `json:"text,omitempty"`
	Author  chat.Author `json:"author,omitzero"`
	Role    chat.Role   `json:"role"` // of the author when it was given
	At      time.Time   `json:"at,omitzero"`
	Expired bool        `json:"expired,omitempty"` // nobody has answered in time: Text is the default
}

// An AskOption says more about a question.
type AskOption func(*Question)

// AnsweredBy lets only people answer who have the role or a higher one. Without
// it everybody may who is answered in the thread.
func AnsweredBy(least chat.Role) AskOption { return func(q *Question) { q.Who = least } }

// ExpiresAt ends the question at a time: answer is the reply then, marked Expired.
func ExpiresAt(at time.Time, answer string) AskOption {
	return func(q *Question) { q.Until, q.Default = at, answer }
}

// Ask posts a question into the thread and returns the answer: the next message
// of somebody who may answer. It is for durable tools and those that say [Tool.Asks], which must return the
// error as it is: the call then waits, for as long as it takes and over any
// number of restarts, and holds no process meanwhile. Once there is an answer
// the tool is run again, and Ask returns it as a [Step] returns its value. Names
// are unique within a call, those of steps included. A thread is asked one
// question at a time.
func Ask(ctx context.Context, call *Call, name, question string, options ...AskOption) (Reply, error) {
	if strings.TrimSpace(question) == "" {
		return Reply{}, fmt.Errorf("question %q: it has no text", name)
	}
	q := Question{Name: name, Text: question}
	for _, o := range options {
		o(&q)
	}
	r, err := call.await(ctx, q)
	if err == nil && r.Author.ID != "" {
		call.Hear(Voice{Author: r.Author, Role: r.Role})
	}
	return r, err
}

// Sleep waits for a time as [Ask] waits for an answer. The time given first counts.
func Sleep(ctx context.Context, call *Call, name string, until time.Time) error {
	if until.IsZero() {
		return errors.New("sleep: the time is zero")
	}
	_, err := call.await(ctx, Question{Name: name, Until: until})
	return err
}

// await is the recorded answer, or why the call has to wait for it.
func (c *Call) await(ctx context.Context, q Question) (r Reply, err error) {
	if err := ctx.Err(); err != nil {
		return r, context.Cause(ctx)
	}
	if err := c.step(q.Name); err != nil {
		return r, err
	}
	raw, ok, err := c.scope.memos.Get(c.ID, q.Name)
	if err != nil {
		return r, fmt.Errorf("question %q: %w", q.Name, err)
	}
	if !ok {
		if !q.Until.IsZero() {
			q.Until = q.Until.UTC().Truncate(time.Microsecond)
		}
		return r, &Wait{Until: q.Until, Question: &q}
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("question %q: the recorded answer does not fit: %w", q.Name, err)
	}
	return r, nil
}
