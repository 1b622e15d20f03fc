package gemini

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

type chunk struct {
	Candidates []candidate     `json:"candidates"`
	Feedback   *feedback       `json:"promptFeedback"`
	Usage      *usage          `json:"usageMetadata"`
	Model      string          `json:"modelVersion"`
	ID         string          `json:"responseId"`
	Error      json.RawMessage `json:"error"`
}

type candidate struct {
	Content      content `json:"content"`
	FinishReason string  `json:"finishReason"`
	Index        int     `json:"index"`
}

type feedback struct {
	BlockReason string `json:"blockReason"`
}

type usage struct {
	Prompt     int `json:"promptTokenCount"` // with the cached ones
	Cached     int `json:"cachedContentTokenCount,omitempty"`
	Candidates int `json:"candidatesTokenCount"` // without the thoughts
	Thoughts   int `json:"thoughtsTokenCount,omitempty"`
	ToolPrompt int `json:"toolUsePromptTokenCount,omitempty"`
	Total      int `json:"totalTokenCount"`
}

// An answer is put together from chunks.
type answer struct {
	s         *wire.Stream
	id, model string
	pieces    []*piece
	calls     int
	finish    string
	blocked   string // the whole prompt was
	usage     usage
}

// A piece is a part of the answer, put together from neighbours of one kind.
type piece struct {
	thought   bool
	text      strings.Builder
	call      *call
	signature string
}

var (
	errChunk  = errors.New("chunk is no JSON of the expected shape")
	errFinish = errors.New("answer ended for a reason that is neither an end nor a refusal")
	errCall   = errors.New("the model made a call that cannot be read")
)

func (a *answer) read() error {
	var e *model.Error
	for {
		data, err := a.s.Next()
		switch {
		case err == nil:
			if err := a.chunk(data); err != nil {
				return err
			}
		case a.finish+a.blocked != "" && errors.As(err, &e) && (e.Fault == model.Truncated || e.Fault == model.Stalled):
			return nil // whole already: nothing marks the end but the end
		default:
			return err
		}
	}
}

func (a *answer) chunk(data []byte) error {
	var c chunk
	if json.Unmarshal(data, &c) != nil {
		return a.s.Fail(model.Garbled, errChunk)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return a.s.Reported(data)
	}
	if a.id == "" {
		a.id = c.ID
	}
	if a.model == "" {
		a.model = c.Model
	}
	if c.Usage != nil {
		a.usage = *c.Usage // totals so far
	}
	if c.Feedback != nil && c.Feedback.BlockReason != "" {
		a.blocked = c.Feedback.BlockReason
		a.s.Alive()
	}
	for i := range c.Candidates {
		if c.Candidates[i].Index != 0 { // we ask for one
			continue
		}
		for k := range c.Candidates[i].Content.Parts {
			if err := a.part(&c.Candidates[i].Content.Parts[k]); err != nil {
				return err
			}
		}
		if f := c.Candidates[i].FinishReason; f != "" {
			a.finish = f
			a.s.Alive()
		}
	}
	return nil
}

// part adds to the last piece what continues it. A signature signs the piece it
// comes with; one in a part without text is a piece of its own.
func (a *answer) part(p *part) error {
	if p.Call != nil {
		if a.calls++; a.calls > wire.MaxCalls {
			return a.s.Fail(model.Garbled, wire.ErrCalls)
		}
		a.pieces = append(a.pieces, &piece{call: p.Call, signature: p.Signature})
		a.s.Emit(model.Delta{Tool: p.Call.Name})
		return nil
	}
	text := ""
	if p.Text != nil {
		text = *p.Text
	}
	if text == "" && p.Signature == "" {
		return nil
	}
	var last *piece
	if n := len(a.pieces); n > 0 {
		last = a.pieces[n-1]
	}
	if last == nil || last.call != nil || last.thought != p.Thought || p.Signature != "" && (last.signature != "" || text == "") {
		last = &piece{thought: p.Thought}
		a.pieces = append(a.pieces, last)
	}
	last.text.WriteString(text)
	if p.Signature != "" {
		last.signature = p.Signature
		a.s.Alive()
	}
	switch {
	case text == "":
	case p.Thought:
		a.s.Emit(model.Delta{Reasoning: text})
	default:
		a.s.Emit(model.Delta{Text: text})
	}
	return nil
}
