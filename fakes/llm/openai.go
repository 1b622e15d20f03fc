package llm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/heddlehq/heddle/model/script"
)

// openAI is Chat Completions.
type openAI struct{}

func (openAI) name() string { return "openai" }

func (openAI) key(r *http.Request) string {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func (openAI) keepAlive() string { return ": processing\n\n" }

func (openAI) report(refusal any) string { return event("", refusal) }

func (openAI) refuse(_ int, kind, code, text string) any {
	e := map[string]any{"message": text, "type": kind, "param": nil, "code": nil}
	if code != "" {
		e["code"] = code
	}
	return map[string]any{"error": e}
}

type openAIRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string `json:"id"`
			Type     string `json:"type"`
			Function struct {
				Name      string `json:"name"`
				Arguments string `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Type     string `json:"type"`
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	MaxTokens           int    `json:"max_tokens"`
	MaxCompletionTokens int    `json:"max_completion_tokens"`
	ReasoningEffort     string `json:"reasoning_effort"`
}

// openAIContent reads the content of a message: a string, parts, or null.
func openAIContent(role string, raw json.RawMessage) (m Message, null bool, err error) {
	m = Message{Role: role}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return m, true, nil
	case json.Unmarshal(raw, &m.Text) == nil:
		return m, false, nil
	case json.Unmarshal(raw, &parts) != nil || len(parts) == 0:
		return m, false, fmt.Errorf("content should be a string or parts")
	}
	for _, p := range parts {
		switch {
		case p.Type == "text":
			m.add(p.Text)
		case p.Type == "image_url" && role == "user":
			m.Images++
			if err := checkURL(p.ImageURL.URL); err != nil {
				return m, false, err
			}
		default:
			return m, false, fmt.Errorf("part %q has no place in a message of role %s", p.Type, role)
		}
	}
	return m, false, nil
}

// efforts are the words for how much to think, "" for none.
const efforts = "  none minimal low medium high xhigh "

func (openAI) read(_ *Server, _ *http.Request, body []byte) (Request, error) {
	var in openAIRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return Request{}, fmt.Errorf("we could not parse the JSON body of your request")
	}
	q := Request{Model: in.Model}
	var schemas []json.RawMessage
	var docs []string
	for _, t := range in.Tools {
		if t.Type != "function" {
			return q, fmt.Errorf("tools: unknown type %q", t.Type)
		}
		q.Tools = append(q.Tools, t.Function.Name)
		schemas = append(schemas, t.Function.Parameters)
		docs = append(docs, t.Function.Description)
	}
	switch {
	case in.Model == "":
		return q, fmt.Errorf("you must provide a model parameter")
	case !in.Stream:
		return q, fmt.Errorf("this server streams only")
	case in.MaxTokens != 0 && in.MaxCompletionTokens != 0:
		return q, fmt.Errorf("max_tokens and max_completion_tokens exclude each other")
	case !strings.Contains(efforts, " "+in.ReasoningEffort+" "):
		return q, fmt.Errorf("reasoning_effort: unsupported value %q", in.ReasoningEffort)
	}
	for i, m := range in.Messages {
		said, null, err := openAIContent(m.Role, m.Content)
		switch {
		case err != nil:
			return q, fmt.Errorf("messages.%d: %w", i, err)
		case null && (m.Role != "assistant" || len(m.ToolCalls) == 0):
			return q, fmt.Errorf("messages.%d: content must not be null", i)
		case m.ToolCalls != nil && (m.Role != "assistant" || len(m.ToolCalls) == 0):
			return q, fmt.Errorf("messages.%d: tool_calls must be those of an assistant, and some", i)
		}
		switch m.Role {
		case "system", "developer":
			q.System += said.Text
		case "user":
			q.Messages = append(q.Messages, said)
		case "tool":
			if n := len(q.Messages); n == 0 || q.Messages[n-1].Role != "results" {
				q.Messages = append(q.Messages, Message{Role: "results"})
			}
			last := &q.Messages[len(q.Messages)-1]
			last.add(said.Text)
			last.callIDs = append(last.callIDs, m.ToolCallID)
		case "assistant":
			a := said
			for _, c := range m.ToolCalls {
				a.Calls = append(a.Calls, script.Call{Name: c.Function.Name, Args: c.Function.Arguments})
				a.callIDs = append(a.callIDs, c.ID)
			}
			q.Messages = append(q.Messages, a)
		default:
			return q, fmt.Errorf("messages.%d: unknown role %q", i, m.Role)
		}
	}
	if err := checkTools(q.Tools, schemas); err != nil {
		return q, err
	}
	if err := checkFunctions(docs, schemas); err != nil {
		return q, err
	}
	return q, checkTalk(q.Messages)
}

func (openAI) stream(a *answer) []string {
	chunk := func(delta map[string]any, finish any) string {
		return event("", map[string]any{
			"id": a.id, "object": "chat.completion.chunk", "created": 1790000000, "model": a.model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
	}
	out := []string{chunk(map[string]any{"role": "assistant", "content": ""}, nil)}
	for _, w := range words(a.Think) {
		out = append(out, chunk(map[string]any{"reasoning_content": w}, nil))
	}
	for _, w := range words(a.Say) {
		out = append(out, chunk(map[string]any{"content": w}, nil))
	}
	for i, c := range a.Calls {
		call := func(c map[string]any) string {
			c["index"] = i
			return chunk(map[string]any{"tool_calls": []any{c}}, nil)
		}
		out = append(out, call(map[string]any{"id": a.callIDs[i], "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}))
		for _, half := range halves(c.Args) {
			out = append(out, call(map[string]any{"function": map[string]any{"arguments": half}}))
		}
	}
	finish := "stop"
	if a.Calls != nil {
		finish = "tool_calls"
	}
	a.closing = 3
	return append(out, chunk(map[string]any{}, finish),
		event("", map[string]any{
			"id": a.id, "object": "chat.completion.chunk", "created": 1790000000, "model": a.model, "choices": []any{},
			"usage": map[string]any{
				"prompt_tokens": a.in, "completion_tokens": a.out, "total_tokens": a.in + a.out,
				"prompt_tokens_details": map[string]any{"cached_tokens": a.read},
			},
		}),
		"data: [DONE]\n\n")
}
