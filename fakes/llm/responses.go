package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/model/script"
)

// responses is OpenAI's Responses, of which nothing is stored.
type responses struct{ openAI }

func (responses) name() string { return "responses" }

func (responses) report(refusal any) string {
	e := refusal.(map[string]any)["error"].(map[string]any)
	code := e["code"]
	if code == nil {
		code = e["type"]
	}
	return event("error", map[string]any{"type": "error", "code": code, "message": e["message"], "param": nil})
}

type responsesRequest struct {
	Model           string            `json:"model"`
	Stream          bool              `json:"stream"`
	Store           *bool             `json:"store"`
	Include         []string          `json:"include"`
	MaxOutputTokens int               `json:"max_output_tokens"`
	PromptCacheKey  string            `json:"prompt_cache_key"`
	Instructions    string            `json:"instructions"`
	Input           []json.RawMessage `json:"input"`
	Reasoning       struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Tools []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"tools"`
}

type responsesItem struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL string `json:"image_url"`
	} `json:"content"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Output    *string `json:"output"`
	Encrypted string  `json:"encrypted_content"`
}

func (responses) read(s *Server, _ *http.Request, body []byte) (Request, error) {
	var in responsesRequest
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return Request{}, fmt.Errorf("we could not parse the JSON body of your request, or a parameter in it is unknown")
	}
	q := Request{Model: in.Model, System: in.Instructions}
	var schemas []json.RawMessage
	var docs []string
	for _, t := range in.Tools {
		if t.Type != "function" || t.Strict == nil || *t.Strict {
			return q, fmt.Errorf("tools: want functions that are not strict")
		}
		q.Tools = append(q.Tools, t.Name)
		schemas = append(schemas, t.Parameters)
		docs = append(docs, t.Description)
	}
	switch {
	case in.Model == "":
		return q, fmt.Errorf("you must provide a model parameter")
	case !in.Stream:
		return q, fmt.Errorf("this server streams only")
	case in.Store == nil || *in.Store:
		return q, fmt.Errorf("this server stores nothing")
	case len(in.PromptCacheKey) > 64:
		return q, fmt.Errorf("prompt_cache_key: string too long")
	case !strings.Contains(efforts, " "+in.Reasoning.Effort+" "):
		return q, fmt.Errorf("reasoning.effort: unsupported value %q", in.Reasoning.Effort)
	}
	follows := "" // what the item before must be followed by
	for i, raw := range in.Input {
		var it responsesItem
		if json.Unmarshal(raw, &it) != nil {
			return q, fmt.Errorf("input.%d: no item", i)
		}
		if follows != "" && it.Type != "reasoning" && it.Type != "function_call" && (it.Type != "message" || it.Role != "assistant") {
			return q, fmt.Errorf("input.%d: the reasoning before it was provided without its required following item", i)
		}
		follows = ""
		if it.Type == "reasoning" {
			follows = it.Type
		}
		if err := q.item(s, it); err != nil {
			return q, fmt.Errorf("input.%d: %w", i, err)
		}
	}
	if follows != "" {
		return q, fmt.Errorf("input: reasoning at the end was provided without its required following item")
	}
	if err := checkTools(q.Tools, schemas); err != nil {
		return q, err
	}
	if err := checkFunctions(docs, schemas); err != nil {
		return q, err
	}
	return q, checkTalk(q.Messages)
}

// item adds an item to the message it belongs to.
func (q *Request) item(s *Server, it responsesItem) error {
	last := func(role string) *Message {
		if n := len(q.Messages); n == 0 || q.Messages[n-1].Role != role {
			q.Messages = append(q.Messages, Message{Role: role})
		}
		return &q.Messages[len(q.Messages)-1]
	}
	switch {
	case it.Type == "message" && it.Role == "user":
		q.Messages = append(q.Messages, Message{Role: "user"})
		return last("user").contents(it, "input_text", "input_image")
	case it.Type == "message" && it.Role == "assistant":
		return last("assistant").contents(it, "output_text")
	case it.Type == "reasoning":
		last("assistant")
		if !s.isSigned(it.Encrypted, "responses", q.Model) {
			return fmt.Errorf("the encrypted content could not be verified")
		}
	case it.Type == "function_call":
		m := last("assistant")
		m.Calls = append(m.Calls, script.Call{Name: it.Name, Args: it.Arguments})
		m.callIDs = append(m.callIDs, it.CallID)
	case it.Type == "function_call_output" && it.Output != nil:
		m := last("results")
		m.add(*it.Output)
		m.callIDs = append(m.callIDs, it.CallID)
	default:
		return fmt.Errorf("item %q of role %q has no place here", it.Type, it.Role)
	}
	if len(it.CallID) > 64 {
		return fmt.Errorf("call_id: string too long")
	}
	return nil
}

func (m *Message) contents(it responsesItem, kinds ...string) error {
	if len(it.Content) == 0 {
		return fmt.Errorf("content must not be empty")
	}
	for _, c := range it.Content {
		if !slices.Contains(kinds, c.Type) {
			return fmt.Errorf("content %q has no place in a message of role %s", c.Type, it.Role)
		}
		if c.Type != "input_image" {
			m.add(c.Text)
			continue
		}
		m.Images++
		if err := checkURL(c.ImageURL); err != nil {
			return err
		}
	}
	return nil
}

func (responses) stream(a *answer) []string {
	var out []string
	output := []any{}
	add := func(kind string, more map[string]any) {
		more["type"], more["sequence_number"] = kind, len(out)
		out = append(out, event(kind, more))
	}
	// item streams an item: as it begins, the deltas of its text, and as it is done.
	item := func(begun, done map[string]any, kind string, deltas []string) {
		index := len(output)
		add("response.output_item.added", map[string]any{"output_index": index, "item": begun})
		for _, d := range deltas {
			add(kind, map[string]any{"output_index": index, "delta": d})
		}
		add("response.output_item.done", map[string]any{"output_index": index, "item": done})
		output = append(output, done)
	}
	whole := func(status string) map[string]any {
		return map[string]any{
			"id": a.id, "object": "response", "created_at": 1790000000, "model": a.model, "status": status, "output": output,
			"usage": map[string]any{
				"input_tokens": a.in, "output_tokens": a.out, "total_tokens": a.in + a.out,
				"input_tokens_details": map[string]any{"cached_tokens": a.read},
			},
		}
	}
	add("response.created", map[string]any{"response": whole("in_progress")})
	if a.Think != "" {
		id := "rs_" + a.id
		item(map[string]any{"type": "reasoning", "id": id, "summary": []any{}},
			map[string]any{"type": "reasoning", "id": id, "summary": []any{map[string]any{"type": "summary_text", "text": a.Think}}, "encrypted_content": a.signature},
			"response.reasoning_summary_text.delta", words(a.Think))
	}
	if a.Say != "" {
		said := func(status string, content ...any) map[string]any {
			return map[string]any{"type": "message", "id": "msg_" + a.id, "role": "assistant", "status": status, "content": append([]any{}, content...)}
		}
		item(said("in_progress"), said("completed", map[string]any{"type": "output_text", "text": a.Say, "annotations": []any{}}),
			"response.output_text.delta", words(a.Say))
	}
	for i, c := range a.Calls {
		call := func(status, args string) map[string]any {
			return map[string]any{"type": "function_call", "id": "fc_" + a.callIDs[i], "call_id": a.callIDs[i], "name": c.Name, "arguments": args, "status": status}
		}
		item(call("in_progress", ""), call("completed", c.Args), "response.function_call_arguments.delta", halves(c.Args))
	}
	add("response.completed", map[string]any{"response": whole("completed")})
	a.closing = 1
	return out
}
