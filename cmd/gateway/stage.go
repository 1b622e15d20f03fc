package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heddlehq/heddle/harness/enhance"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// stage is a store that shows each commit of a conversation.
type stage struct {
	state.Store
	demo    *demo
	climbed atomic.Bool  // since the last end of a turn
	ends    chan turnEnd // of turns
}

// turnEnd is how a turn ended, and whether its model climbed.
type turnEnd struct {
	record.Settled
	climbed bool
}

// Commit commits, then shows what has become true.
func (s *stage) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	l, err := s.Store.Commit(ctx, l, b)
	if err != nil {
		return l, err
	}
	for _, r := range b.Records {
		body, err := record.Decode(r)
		if err != nil {
			continue // it is committed, and shown or not
		}
		for _, line := range act(body) {
			s.demo.say("  | %s", printable(line))
		}
		switch b := body.(type) {
		case record.Wrote:
			s.climbed.Store(s.climbed.Load() || b.Name == enhance.StateName)
		case record.Settled:
			select {
			case s.ends <- turnEnd{b, s.climbed.Swap(false)}:
			default: // nobody waits any more
			}
		}
	}
	return l, nil
}

// act is what the audience sees of a record.
func act(b record.Body) []string {
	switch b := b.(type) {
	case record.Heard:
		return []string{fmt.Sprintf("heard %s, who is a %s", b.Event.Author.ID, b.Role)}
	case record.Rendered:
		if b.View != nil {
			return []string{fmt.Sprintf("step %d: the agent declares %s", b.Step, manifest(b))}
		}
		return []string{fmt.Sprintf("step %d: the agent declares the same again", b.Step)}
	case record.Told:
		return []string{"the model is told: " + indentBar(b.Text)}
	case record.Cited:
		return []string{"the model is shown " + b.Source}
	case record.Said:
		var out []string
		for _, p := range b.Parts {
			if p.Kind == model.Call {
				out = append(out, fmt.Sprintf("%s calls %s: %s", b.Asked, p.Name, indentBar(arguments(p))))
			}
		}
		if out == nil {
			out = []string{fmt.Sprintf("%s answers in %v", b.Asked, b.Took.Round(time.Millisecond))}
		}
		return out
	case record.Did:
		return []string{fmt.Sprintf("%s: %s in %v: %s", b.Tool, b.End, b.Took.Round(time.Millisecond), indentBar(b.Text))}
	case record.Wrote:
		return []string{fmt.Sprintf("state %s = %s", b.Name, cut(string(b.Value), 100))}
	case record.Settled:
		return []string{fmt.Sprintf("turn %s after %d steps; the reply is in the outbox of the same commit", b.Outcome, b.Steps)}
	case record.Retried:
		return []string{fmt.Sprintf("step %d: no answer (%s)", b.Step, b.Fault)}
	case record.Passed, record.Folded:
	}
	return nil
}

// indentBar keeps the lines of a text behind the bar.
func indentBar(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  |   ")
}

// arguments are those of a call: the text itself if there is only one.
func arguments(p model.Part) string {
	var only map[string]string
	if json.Unmarshal(p.Args, &only) == nil && len(only) == 1 {
		for _, v := range only {
			return v
		}
	}
	return string(p.Args)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
