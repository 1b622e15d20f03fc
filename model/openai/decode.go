package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

type chunk struct {
	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Index        int    `json:"index"`
	Delta        delta  `json:"delta"`
	FinishReason string `json:"finish_reason"`
}

type delta struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	carry
	ToolCalls []toolDelta `json:"tool_calls"`
}

type toolDelta struct {
	Index    *int         `json:"index"` // some servers leave it out
	ID       string       `json:"id"`
	Function callFunction `json:"function"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"` // with the cached ones
	CompletionTokens int `json:"completion_tokens"`
	PromptDetails    struct {
		CachedTokens     int `json:"cached_tokens"`
		CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHitTokens int `json:"prompt_cache_hit_tokens,omitempty"` // DeepSeek's name
}

// An answer is put together from chunks.
type answer struct {
	s             *wire.Stream
	again         wire.Shape
	id, model     string
	text, refusal strings.Builder
	reasoning     strings.Builder
	content       bool // reasoning came as reasoning_content
	details       []json.RawMessage
	calls         []*building
	finish        string
	usage         usage
}

// building is a call whose arguments are still arriving.
type building struct {
	index    int
	id, name string
	args     strings.Builder
}

var (
	done        = []byte("[DONE]")
	errChunk    = errors.New("chunk is no JSON of the expected shape")
	errFinish   = errors.New("answer ended in a server error")
	errUnfinish = errors.New("stream ended without finish_reason")
)

func (a *answer) read() error {
	var e *model.Error
	for {
		data, err := a.s.Next()
		switch {
		case err == nil && bytes.Equal(data, done):
			if a.finish == "" {
				return a.s.Fail(model.Truncated, errUnfinish)
			}
			a.s.Drain()
			return nil
		case err == nil:
			if err := a.chunk(data); err != nil {
				return err
			}
		case a.finish != "" && errors.As(err, &e) && (e.Fault == model.Truncated || e.Fault == model.Stalled):
			return nil // whole already
		default:
			return err
		}
	}
}

func (a *answer) chunk(data []byte) error {
	if text, ok := a.again.Text(data); ok {
		a.say(text)
		return nil
	}
	var c chunk
	if json.Unmarshal(data, &c) != nil {
		return a.s.Fail(model.Garbled, errChunk)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" || c.ID == "" && bytes.Contains(data, []byte(`"object":"error"`)) {
		return a.s.Reported(data)
	}
	if a.id == "" {
		a.id = c.ID
	}
	if a.model == "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = *c.Usage
		a.s.Alive()
	}
	if c.plain() {
		a.again.Learn(data, c.Choices[0].Delta.Content)
	}
	for i := range c.Choices {
		if c.Choices[i].Index != 0 { // we ask for one
			continue
		}
		if err := a.delta(&c.Choices[i].Delta); err != nil {
			return err
		}
		if f := c.Choices[i].FinishReason; f != "" {
			a.finish = f
			a.s.Alive()
		}
	}
	return nil
}

// plain says whether the chunk holds some text and nothing else that counts.
func (c *chunk) plain() bool {
	if len(c.Choices) != 1 || c.Usage != nil || c.Choices[0].Index != 0 || c.Choices[0].FinishReason != "" {
		return false
	}
	d := &c.Choices[0].Delta
	return d.Content != "" && d.Refusal == "" && d.Reasoning == "" && d.ReasoningContent == "" && d.ReasoningDetails == nil && d.ToolCalls == nil
}

func (a *answer) say(text string) {
	if text != "" {
		a.text.WriteString(text)
		a.s.Emit(model.Delta{Text: text})
	}
}

func (a *answer) delta(d *delta) error {
	a.say(d.Content)
	if d.Refusal != "" {
		a.refusal.WriteString(d.Refusal)
		a.s.Emit(model.Delta{Text: d.Refusal})
	}
	if r := d.ReasoningContent + d.Reasoning; r != "" {
		if d.ReasoningContent != "" {
			a.content, r = true, d.ReasoningContent // some servers send it under both names
		}
		a.reasoning.WriteString(r)
		a.s.Emit(model.Delta{Reasoning: r})
	}
	if len(d.ReasoningDetails) > 0 {
		a.details = append(a.details, d.ReasoningDetails...)
		a.s.Alive()
	}
	for i := range d.ToolCalls {
		if err := a.tool(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// tool adds a fragment to its call. Fragments belong together by index. Where
// a server gives none, or one index to all, a new id or name begins a new call.
func (a *answer) tool(d *toolDelta) error {
	var b *building
	for i := len(a.calls) - 1; i >= 0 && b == nil; i-- {
		if d.Index == nil || a.calls[i].index == *d.Index {
			b = a.calls[i]
		}
	}
	if b == nil || d.ID != "" && b.id != "" && d.ID != b.id || d.Index == nil && d.Function.Name != "" && b.name != "" {
		if len(a.calls) == wire.MaxCalls {
			return a.s.Fail(model.Garbled, wire.ErrCalls)
		}
		b = &building{}
		if d.Index != nil {
			b.index = *d.Index
		}
		a.calls = append(a.calls, b)
	}
	if d.ID != "" {
		b.id = d.ID
	}
	if b.name == "" && d.Function.Name != "" {
		b.name = d.Function.Name
		a.s.Emit(model.Delta{Tool: b.name})
	}
	if d.Function.Arguments != "" {
		b.args.WriteString(d.Function.Arguments)
		a.s.Alive()
	}
	return nil
}
