package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/heddlehq/heddle/model/script"
)

// gemini is generateContent.
type gemini struct{}

func (gemini) name() string { return "gemini" }

func (gemini) key(r *http.Request) string { return r.Header.Get("X-Goog-Api-Key") }

func (g gemini) keepAlive() string {
	return event("", map[string]any{"candidates": []any{map[string]any{"content": map[string]any{"role": "model", "parts": []any{map[string]any{"text": ""}}}}}})
}

func (gemini) report(refusal any) string { return event("", refusal) }

// statusNames are the provider's own.
var statusNames = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE",
}

func (gemini) refuse(status int, _, _, text string) any {
	return map[string]any{"error": map[string]any{"code": status, "message": text, "status": statusNames[status]}}
}

type geminiRequest struct {
	Generation struct {
		MaxOutputTokens int `json:"maxOutputTokens"`
		Thinking        struct {
			IncludeThoughts bool   `json:"includeThoughts"`
			Level           string `json:"thinkingLevel"`
			Budget          *int   `json:"thinkingBudget"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
	System   geminiContent   `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text  *string `json:"text"`
		Image *struct {
			MimeType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"inlineData"`
		Call *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Result *struct {
			ID       string          `json:"id"`
			Name     string          `json:"name"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
		Signature string `json:"thoughtSignature"`
	} `json:"parts"`
}

func (g gemini) read(s *Server, r *http.Request, body []byte) (Request, error) {
	q := Request{Model: strings.TrimSuffix(path.Base(r.URL.Path), ":streamGenerateContent")}
	var in geminiRequest
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return q, fmt.Errorf("invalid JSON payload received, or an unknown name in it")
	}
	var schemas []json.RawMessage
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			q.Tools = append(q.Tools, f.Name)
			schemas = append(schemas, f.Schema)
		}
	}
	for _, p := range in.System.Parts {
		if p.Text != nil {
			q.System += *p.Text
		}
	}
	t := in.Generation.Thinking
	switch {
	case r.URL.Query().Get("alt") != "sse":
		return q, fmt.Errorf("this server streams events only")
	case t.Level != "" && t.Budget != nil:
		return q, fmt.Errorf("thinking_budget and thinking_level are not supported together")
	case !strings.Contains("  minimal low medium high ", " "+t.Level+" "):
		return q, fmt.Errorf("thinking_level: unsupported value %q", t.Level)
	}
	for i, c := range in.Contents {
		want := [2]string{"user", "model"}[i%2]
		if c.Role != want || len(c.Parts) == 0 {
			return q, fmt.Errorf("contents.%d: role %q with %d parts, want some of role %q", i, c.Role, len(c.Parts), want)
		}
		said, results, err := g.parts(s, q.Model, c)
		if err != nil {
			return q, fmt.Errorf("contents.%d: %w", i, err)
		}
		if results.callIDs != nil {
			q.Messages = append(q.Messages, results)
		}
		if said.Text != "" || said.Images > 0 || said.Calls != nil || results.callIDs == nil {
			q.Messages = append(q.Messages, said)
		}
	}
	if err := checkTools(q.Tools, schemas); err != nil {
		return q, err
	}
	return q, checkTalk(q.Messages)
}

// parts reads a content into what it says and the results it begins with.
func (gemini) parts(s *Server, model string, c geminiContent) (said, results Message, err error) {
	said, results = Message{Role: "user"}, Message{Role: "results"}
	if c.Role == "model" {
		said.Role = "assistant"
	}
	early := strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2")
	for _, p := range c.Parts {
		switch {
		case p.Signature != "" && (said.Role == "user" || p.Signature != "skip_thought_signature_validator" && !s.isSigned(p.Signature, "gemini", model)):
			return said, results, fmt.Errorf("corrupted thought signature")
		case p.Text != nil && p.Image == nil && p.Call == nil && p.Result == nil:
			if *p.Text == "" && p.Signature == "" {
				return said, results, fmt.Errorf("a part must have one initialized field")
			}
			said.add(*p.Text)
		case p.Image != nil && said.Role == "user" && p.Text == nil && p.Result == nil:
			said.Images++
			if err := checkImage(p.Image.MimeType, p.Image.Data); err != nil {
				return said, results, err
			}
		case p.Call != nil && said.Role == "assistant" && p.Text == nil:
			if p.Signature == "" && said.Calls == nil && !early {
				return said, results, fmt.Errorf("function call is missing a thought_signature in functionCall parts")
			}
			said.Calls = append(said.Calls, script.Call{Name: p.Call.Name, Args: string(p.Call.Args)})
			said.callIDs = append(said.callIDs, p.Call.ID)
		case p.Result != nil && said.Role == "user" && p.Text == nil:
			var text map[string]string
			if said.Text != "" || said.Images > 0 || p.Result.Name == "" || json.Unmarshal(p.Result.Response, &text) != nil {
				return said, results, fmt.Errorf("functionResponse parts must come first, with a name and a response")
			}
			results.add(text["output"] + text["error"])
			results.callIDs = append(results.callIDs, p.Result.ID)
		default:
			return said, results, fmt.Errorf("a part has no place in a content of role %s", c.Role)
		}
	}
	return said, results, nil
}

// stream signs the first call, or the first word where there is none.
func (gemini) stream(a *answer) []string {
	var out []string
	add := func(part map[string]any, more map[string]any) {
		candidate := map[string]any{"index": 0, "content": map[string]any{"role": "model", "parts": []any{part}}}
		for k, v := range more {
			candidate[k] = v
		}
		out = append(out, event("", map[string]any{
			"candidates": []any{candidate}, "modelVersion": a.model, "responseId": a.id,
			"usageMetadata": map[string]any{"promptTokenCount": a.in, "candidatesTokenCount": a.out, "totalTokenCount": a.in + a.out},
		}))
	}
	for _, w := range words(a.Think) {
		add(map[string]any{"text": w, "thought": true}, nil)
	}
	for i, w := range words(a.Say) {
		p := map[string]any{"text": w}
		if i == 0 && a.Calls == nil && a.signature != "" {
			p["thoughtSignature"] = a.signature
		}
		add(p, nil)
	}
	for i, c := range a.Calls {
		p := map[string]any{"functionCall": map[string]any{"id": a.callIDs[i], "name": c.Name, "args": arguments(c)}}
		if i == 0 && a.signature != "" {
			p["thoughtSignature"] = a.signature
		}
		add(p, nil)
	}
	add(map[string]any{"text": ""}, map[string]any{"finishReason": "STOP"})
	a.closing = 1
	return out
}

// arguments are those of a call as an object, or as a string if they are none.
func arguments(c script.Call) any {
	if args := c.Arguments(); json.Valid(args) {
		return args
	}
	return c.Args
}
