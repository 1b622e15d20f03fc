package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// An event is any event of the stream; Type says which fields count.
type event struct {
	Type     string          `json:"type"`
	Index    int             `json:"output_index"`
	Part     int             `json:"summary_index"`
	Delta    string          `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
}

// A whole is the response as the last event holds it.
type whole struct {
	ID         string          `json:"id"`
	Model      string          `json:"model"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage usage `json:"usage"`
}

type usage struct {
	InputTokens  int `json:"input_tokens"` // with the cached ones
	InputDetails struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens  int `json:"output_tokens"`
	OutputDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// An answer is put together from events.
type answer struct {
	s       *wire.Stream
	items   []*building
	refused bool
	cut     bool // incomplete
	raw     json.RawMessage
	whole
}

// building is an output item that is still arriving.
type building struct {
	kind     string
	id, name string          // of a call
	text     strings.Builder // text, summary or arguments
	done     json.RawMessage // the item when it was done
}

var (
	errEvent = errors.New("event is no JSON of the expected shape")
	errOrder = errors.New("event does not fit what came before it")
	errOpen  = errors.New("answer was completed with an open item")
)

func (a *answer) read() error {
	for {
		data, err := a.s.Next()
		if err != nil {
			return err
		}
		var e event
		if json.Unmarshal(data, &e) != nil {
			return a.s.Fail(model.Garbled, errEvent)
		}
		switch e.Type {
		case "response.completed", "response.incomplete":
			if json.Unmarshal(e.Response, &a.whole) != nil {
				return a.s.Fail(model.Garbled, errEvent)
			}
			a.cut, a.raw = e.Type == "response.incomplete", bytes.Clone(e.Response)
			a.s.Drain()
			return nil
		case "response.failed":
			return a.failed(e.Response)
		case "error":
			return a.s.Reported(data)
		}
		if err := a.event(&e); err != nil {
			return err
		}
	}
}

// failed makes the error of a response that has failed.
func (a *answer) failed(response json.RawMessage) error {
	if json.Unmarshal(response, &a.whole) != nil {
		return a.s.Fail(model.Garbled, errEvent)
	}
	body, err := wire.Encode(map[string]json.RawMessage{"error": a.Error})
	if err != nil {
		return a.s.Fail(model.Garbled, err)
	}
	return a.s.Reported(body)
}

func (a *answer) event(e *event) error {
	if e.Type == "response.output_item.added" {
		return a.begin(e)
	}
	var add func(b *building)
	switch e.Type {
	case "response.output_item.done":
		add = func(b *building) { b.done = bytes.Clone(e.Item); a.s.Alive() }
	case "response.output_text.delta":
		add = func(b *building) { a.say(b, model.Delta{Text: e.Delta}) }
	case "response.refusal.delta":
		add = func(b *building) { a.refused = true; a.say(b, model.Delta{Text: e.Delta}) }
	case "response.reasoning_summary_part.added":
		if e.Part == 0 {
			return nil
		}
		add = func(b *building) { a.say(b, model.Delta{Reasoning: "\n\n"}) }
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		add = func(b *building) { a.say(b, model.Delta{Reasoning: e.Delta}) }
	case "response.function_call_arguments.delta":
		add = func(b *building) {
			if e.Delta != "" {
				b.text.WriteString(e.Delta)
				a.s.Alive()
			}
		}
	default: // what repeats deltas, and kinds of event that are not known yet
		if strings.HasSuffix(e.Type, ".done") {
			a.s.Alive()
		}
		return nil
	}
	if e.Index < 0 || e.Index >= len(a.items) || a.items[e.Index].done != nil {
		return a.s.Fail(model.Garbled, errOrder)
	}
	add(a.items[e.Index])
	return nil
}

// begin opens an item. They come in the order of their indexes.
func (a *answer) begin(e *event) error {
	var i struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Name   string `json:"name"`
	}
	if json.Unmarshal(e.Item, &i) != nil {
		return a.s.Fail(model.Garbled, errEvent)
	}
	if e.Index != len(a.items) {
		return a.s.Fail(model.Garbled, errOrder)
	}
	if len(a.items) == wire.MaxCalls {
		return a.s.Fail(model.Garbled, wire.ErrCalls)
	}
	a.items = append(a.items, &building{kind: i.Type, id: i.CallID, name: i.Name})
	a.s.Alive()
	if i.Type == "function_call" {
		a.s.Emit(model.Delta{Tool: i.Name})
	}
	return nil
}

func (a *answer) say(b *building, d model.Delta) {
	if d != (model.Delta{}) {
		b.text.WriteString(d.Text + d.Reasoning)
		a.s.Emit(d)
	}
}
