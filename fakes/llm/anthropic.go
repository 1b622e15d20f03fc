package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/model/script"
)

// anthropic is Messages.
type anthropic struct{}

func (anthropic) name() string { return "anthropic" }

func (anthropic) key(r *http.Request) string { return r.Header.Get("X-Api-Key") }

func (anthropic) keepAlive() string { return event("ping", map[string]any{"type": "ping"}) }

func (anthropic) report(refusal any) string { return event("error", refusal) }

func (anthropic) refuse(_ int, kind, _, text string) any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": text}}
}

type anthropicRequest struct {
	Model     string `json:"model"`
	Stream    bool   `json:"stream"`
	MaxTokens int    `json:"max_tokens"`
	Thinking  struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
	Output *struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	System []struct {
		Text string `json:"text"`
	} `json:"system"`
	Messages []struct {
		Role    string           `json:"role"`
		Content []anthropicBlock `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   string          `json:"content"`
	Signature string          `json:"signature"`
	Source    struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	} `json:"source"`
}

// checkThinking refuses a way of thinking that cannot be.
func (in *anthropicRequest) checkThinking() error {
	t := in.Thinking
	switch {
	case t.Type == "enabled" && (t.Budget < 1024 || t.Budget >= in.MaxTokens):
		return fmt.Errorf("thinking.budget_tokens: should be at least 1024 and less than max_tokens")
	case t.Type != "enabled" && t.Budget != 0:
		return fmt.Errorf("thinking.budget_tokens: extra inputs are not permitted")
	case in.Output != nil && !strings.Contains(" low medium high xhigh max ", " "+in.Output.Effort+" "):
		return fmt.Errorf("output_config.effort: unsupported value %q", in.Output.Effort)
	case t.Type != "enabled":
		return nil
	}
	results := func(m int) bool { return in.Messages[m].Content[0].Type == "tool_result" }
	first := len(in.Messages) // of the answer under way
	for first >= 2 && results(first-1) {
		first -= 2
	}
	if first == len(in.Messages) {
		return nil
	}
	if !strings.HasSuffix(in.Messages[first].Content[0].Type, "thinking") {
		return fmt.Errorf("messages.%d.content.0: when thinking is enabled, an answer under way must start with a thinking block", first)
	}
	return nil
}

var useID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (anthropic) read(s *Server, r *http.Request, body []byte) (Request, error) {
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("the request body is not valid JSON of the expected shape")
	}
	q := Request{Model: in.Model}
	var schemas []json.RawMessage
	for _, t := range in.Tools {
		q.Tools = append(q.Tools, t.Name)
		schemas = append(schemas, t.InputSchema)
	}
	for _, b := range in.System {
		q.System += b.Text
	}
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		return q, fmt.Errorf("anthropic-version: header is required")
	case in.Model == "":
		return q, fmt.Errorf("model: field required")
	case in.MaxTokens < 1:
		return q, fmt.Errorf("max_tokens: field required")
	case !in.Stream:
		return q, fmt.Errorf("this server streams only")
	case bytes.Count(body, []byte(`"cache_control":{`)) > 4:
		return q, fmt.Errorf("a maximum of 4 blocks with cache_control may be provided")
	}
	for i, m := range in.Messages {
		want := [2]string{"user", "assistant"}[i%2]
		if m.Role != want {
			return q, fmt.Errorf("messages.%d: role %q, roles must alternate and begin with user", i, m.Role)
		}
		if len(m.Content) == 0 {
			return q, fmt.Errorf("messages.%d: content must not be empty", i)
		}
		said, results, err := s.blocks(in.Model, m.Role, m.Content)
		if err != nil {
			return q, fmt.Errorf("messages.%d: %w", i, err)
		}
		if results.callIDs != nil {
			q.Messages = append(q.Messages, results)
		}
		if said.Text != "" || said.Images > 0 || said.Calls != nil || results.callIDs == nil {
			q.Messages = append(q.Messages, said)
		}
	}
	if err := errors.Join(checkTools(q.Tools, schemas), checkProperties(schemas)); err != nil {
		return q, err
	}
	if err := checkTalk(q.Messages); err != nil {
		return q, err
	}
	used := slices.ContainsFunc(q.Messages, func(m Message) bool { return m.callIDs != nil })
	switch {
	case used && len(in.Tools) == 0:
		return q, fmt.Errorf("requests which include tool_use or tool_result blocks must define tools")
	case in.ToolChoice.Type != "" && in.ToolChoice.Type != "none" && in.ToolChoice.Type != "auto":
		return q, fmt.Errorf("tool_choice: unsupported type %q", in.ToolChoice.Type)
	case in.ToolChoice.Type != "" && len(in.Tools) == 0:
		return q, fmt.Errorf("tool_choice: may only be specified while providing tools")
	}
	return q, in.checkThinking()
}

// blocks reads the content of a message into what it says and the results it begins with.
func (s *Server) blocks(model, role string, content []anthropicBlock) (said, results Message, err error) {
	said, results = Message{Role: role}, Message{Role: "results"}
	for _, b := range content {
		switch {
		case b.Type == "text":
			if strings.TrimSpace(b.Text) == "" {
				return said, results, fmt.Errorf("text content blocks must contain non-whitespace text")
			}
			said.add(b.Text)
		case b.Type == "image" && role == "user" && b.Source.Type == "base64":
			said.Images++
			if err := checkImage(b.Source.MediaType, b.Source.Data); err != nil {
				return said, results, err
			}
		case b.Type == "tool_use" && role == "assistant":
			if !useID.MatchString(b.ID) {
				return said, results, fmt.Errorf("tool_use id should match %s", useID)
			}
			said.Calls = append(said.Calls, script.Call{Name: b.Name, Args: string(b.Input)})
			said.callIDs = append(said.callIDs, b.ID)
		case b.Type == "tool_result" && role == "user":
			if said.Text != "" || said.Images > 0 {
				return said, results, fmt.Errorf("tool_result blocks must come first")
			}
			results.add(b.Content)
			results.callIDs = append(results.callIDs, b.ToolUseID)
		case b.Type == "thinking" && role == "assistant":
			if !s.isSigned(b.Signature, "anthropic", model) {
				return said, results, fmt.Errorf("invalid signature in thinking block")
			}
			if b.Type == content[len(content)-1].Type {
				return said, results, fmt.Errorf("the final block in an assistant message cannot be thinking")
			}
		default:
			return said, results, fmt.Errorf("block %q has no place in a message of role %s", b.Type, role)
		}
	}
	return said, results, nil
}

func (anthropic) stream(a *answer) []string {
	var out []string
	add := func(kind string, more map[string]any) {
		more["type"] = kind
		out = append(out, event(kind, more))
	}
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		add("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, d := range deltas {
			add("content_block_delta", map[string]any{"index": index, "delta": d})
		}
		add("content_block_stop", map[string]any{"index": index})
		index++
	}
	add("message_start", map[string]any{"message": map[string]any{
		"id": a.id, "type": "message", "role": "assistant", "model": a.model,
		"content": []any{}, "stop_reason": nil, "usage": map[string]any{
			"input_tokens": a.in - a.read - a.wrote, "output_tokens": 1, "cache_read_input_tokens": a.read, "cache_creation_input_tokens": a.wrote,
		},
	}})
	if a.Think != "" {
		var deltas []map[string]any
		for _, w := range words(a.Think) {
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": w})
		}
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, append(deltas, map[string]any{"type": "signature_delta", "signature": a.signature})...)
	}
	if a.Say != "" {
		var deltas []map[string]any
		for _, w := range words(a.Say) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": w})
		}
		block(map[string]any{"type": "text", "text": ""}, deltas...)
	}
	for i, c := range a.Calls {
		var deltas []map[string]any
		for _, half := range halves(c.Args) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": half})
		}
		block(map[string]any{"type": "tool_use", "id": a.callIDs[i], "name": c.Name, "input": map[string]any{}}, deltas...)
	}
	why := "end_turn"
	if a.Calls != nil {
		why = "tool_use"
	}
	add("message_delta", map[string]any{"delta": map[string]any{"stop_reason": why}, "usage": map[string]any{"output_tokens": a.out}})
	add("message_stop", map[string]any{})
	a.closing = 2
	return out
}
