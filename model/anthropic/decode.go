package anthropic

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
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *started        `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   *usage          `json:"usage"`
}

type started struct {
	ID    string `json:"id"`
	Model string `json:"model"`
	Usage usage  `json:"usage"`
}

type delta struct {
	Text        string `json:"text"`
	PartialJSON string `json:"partial_json"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	StopReason  string `json:"stop_reason"`
}

type usage struct {
	InputTokens         int `json:"input_tokens"` // without the cached ones
	CacheCreationTokens int `json:"cache_creation_input_tokens"`
	CacheReadTokens     int `json:"cache_read_input_tokens"`
	OutputTokens        int `json:"output_tokens"`
}

// An answer is put together from events.
type answer struct {
	s         *wire.Stream
	again     wire.Shape
	open      *building // the text block that events of that shape belong to
	id, model string
	blocks    []*building
	calls     int
	stop      string
	usage     usage
}

// building is a content block that is still arriving.
type building struct {
	kind      string
	id, name  string
	start     json.RawMessage // the block as it began
	text      strings.Builder // text, thinking or arguments
	signature strings.Builder
	closed    bool
}

var (
	errEvent = errors.New("event is no JSON of the expected shape")
	errOrder = errors.New("event does not fit what came before it")
	errOpen  = errors.New("answer ended with an open block or without stop_reason")
)

func (a *answer) read() error {
	for {
		data, err := a.s.Next()
		if err != nil {
			return err
		}
		if text, ok := a.again.Text(data); ok {
			a.say(a.open, text)
			continue
		}
		var e event
		if json.Unmarshal(data, &e) != nil {
			return a.s.Fail(model.Garbled, errEvent)
		}
		if e.Type == "message_stop" {
			a.s.Drain()
			return nil
		}
		if err := a.event(&e, data); err != nil {
			return err
		}
	}
}

func (a *answer) event(e *event, data []byte) error {
	switch e.Type {
	case "error":
		return a.s.Reported(data)
	case "message_start":
		if e.Message == nil {
			return a.s.Fail(model.Garbled, errOrder)
		}
		a.id, a.model, a.usage = e.Message.ID, e.Message.Model, e.Message.Usage
	case "content_block_start":
		return a.begin(e)
	case "content_block_delta":
		return a.add(e, data)
	case "content_block_stop":
		if e.Index < 0 || e.Index >= len(a.blocks) {
			return a.s.Fail(model.Garbled, errOrder)
		}
		a.blocks[e.Index].closed = true
		a.again.Forget()
		a.s.Alive()
	case "message_delta":
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
		if e.Usage != nil {
			a.usage.add(*e.Usage)
		}
		a.s.Alive()
	}
	return nil // ping, and kinds of event that are not known yet
}

// begin opens a block. They come in the order of their indexes.
func (a *answer) begin(e *event) error {
	var b struct {
		Type      string `json:"type"`
		ID        string `json:"id"`
		Name      string `json:"name"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	if json.Unmarshal(e.Block, &b) != nil {
		return a.s.Fail(model.Garbled, errEvent)
	}
	if e.Index != len(a.blocks) {
		return a.s.Fail(model.Garbled, errOrder)
	}
	if b.Type == "tool_use" {
		a.calls++
	}
	if a.calls > wire.MaxCalls {
		return a.s.Fail(model.Garbled, wire.ErrCalls)
	}
	n := &building{kind: b.Type, id: b.ID, name: b.Name, start: bytes.Clone(e.Block)}
	a.blocks = append(a.blocks, n)
	a.s.Alive()
	switch b.Type {
	case "tool_use":
		a.s.Emit(model.Delta{Tool: b.Name})
	case "text":
		a.say(n, b.Text)
	case "thinking":
		a.think(n, b.Thinking)
		n.signature.WriteString(b.Signature)
	}
	return nil
}

func (a *answer) add(e *event, data []byte) error {
	if e.Index < 0 || e.Index >= len(a.blocks) || a.blocks[e.Index].closed {
		return a.s.Fail(model.Garbled, errOrder)
	}
	b, d := a.blocks[e.Index], &e.Delta
	switch b.kind {
	case "text":
		if d.Text != "" {
			a.open = b
			a.again.Learn(data, d.Text)
		}
		a.say(b, d.Text)
	case "thinking":
		a.think(b, d.Thinking)
		b.signature.WriteString(d.Signature)
	case "tool_use":
		if d.PartialJSON != "" {
			b.text.WriteString(d.PartialJSON)
			a.s.Alive()
		}
	}
	return nil
}

func (a *answer) say(b *building, text string) {
	if text != "" {
		b.text.WriteString(text)
		a.s.Emit(model.Delta{Text: text})
	}
}

func (a *answer) think(b *building, text string) {
	if text != "" {
		b.text.WriteString(text)
		a.s.Emit(model.Delta{Reasoning: text})
	}
}

// add takes over the counts of a later report, which are totals.
func (u *usage) add(later usage) {
	u.InputTokens = max(u.InputTokens, later.InputTokens)
	u.CacheCreationTokens = max(u.CacheCreationTokens, later.CacheCreationTokens)
	u.CacheReadTokens = max(u.CacheReadTokens, later.CacheReadTokens)
	u.OutputTokens = max(u.OutputTokens, later.OutputTokens)
}
