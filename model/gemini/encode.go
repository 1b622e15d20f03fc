package gemini

import (
	"encoding/json"
	"strings"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// The order of the fields is that of the bytes: contents come last, so a longer
// conversation only appends, which is what the provider's own cache looks for.
type request struct {
	Generation *generation `json:"generationConfig,omitempty"`
	System     *content    `json:"systemInstruction,omitempty"`
	Tools      []tools     `json:"tools,omitempty"`
	Contents   []content   `json:"contents"` // empty: the conversation follows
}

type generation struct {
	MaxOutputTokens int       `json:"maxOutputTokens,omitempty"`
	Thinking        *thinking `json:"thinkingConfig,omitempty"`
}

type thinking struct {
	IncludeThoughts bool   `json:"includeThoughts,omitempty"`
	Level           string `json:"thinkingLevel,omitempty"`
	Budget          *int   `json:"thinkingBudget,omitempty"`
}

type tools struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema"`
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// A part is text, an image, a call or a result. The signature belongs to it and
// stays at its place.
type part struct {
	Text      *string `json:"text,omitempty"`
	Thought   bool    `json:"thought,omitempty"` // in answers only
	Image     *image  `json:"inlineData,omitempty"`
	Call      *call   `json:"functionCall,omitempty"`
	Result    *result `json:"functionResponse,omitempty"`
	Signature string  `json:"thoughtSignature,omitempty"`
}

type image struct {
	MimeType string `json:"mimeType"`
	Data     []byte `json:"data"`
}

type call struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type result struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Response map[string]string `json:"response"`
}

// A signed is the Opaque of a Reasoning part: the signature of the part after it.
type signed struct {
	Signature string `json:"thoughtSignature"`
}

// unsigned is the provider's word for a call that no model of this kind has
// made; without it such calls are refused.
const unsigned = "skip_thought_signature_validator"

func (p *Provider) encode(r model.Request) (wire.Body, error) {
	out := request{Contents: []content{}}
	if g := (generation{MaxOutputTokens: max(r.MaxTokens, 0), Thinking: think(r)}); g != (generation{}) {
		out.Generation = &g
	}
	if r.System != "" {
		out.System = &content{Parts: []part{{Text: &r.System}}}
	}
	var functions []function
	for _, t := range r.Tools {
		functions = append(functions, function{Name: t.Name, Description: t.Doc, Schema: wire.Schema(t)})
	}
	if functions != nil {
		out.Tools = []tools{{functions}}
	}
	f := wire.Form{From: p.opt.Name + "/" + r.Model, List: "parts", Assistant: "model"}
	f.Items = func(m model.Message) []any {
		if m.Role == model.Assistant {
			return answered(m.Parts, early(r.Model))
		}
		return shown(m)
	}
	return f.Write(&out, r)
}

// early says whether a model is of the generations that take a budget to think
// with and ask for no signatures.
func early(id string) bool {
	return strings.HasPrefix(id, "gemini-1") || strings.HasPrefix(id, "gemini-2")
}

// budgets are the tokens of a level for early models.
var budgets = map[model.Thinking]int{model.ThinkOff: 0, model.ThinkLow: 2048, model.ThinkMedium: 8192, model.ThinkHigh: 24_576}

// leastPro is the least budget of gemini-2.5-pro, which cannot do without.
const leastPro = 128

func think(r model.Request) *thinking {
	budget, ok := budgets[r.Thinking]
	t := &thinking{IncludeThoughts: r.Thinking != model.ThinkOff}
	switch {
	case !ok:
		return nil
	case early(r.Model):
		if strings.HasPrefix(r.Model, "gemini-2.5-pro") {
			budget = max(budget, leastPro)
		}
		t.Budget = &budget
	case r.Thinking == model.ThinkOff:
		t.Level = "minimal"
	default:
		t.Level = string(r.Thinking)
	}
	return t
}

// shown are the parts of what people say and of results.
func shown(m model.Message) []any {
	var out []any
	for _, p := range m.Parts {
		switch p.Kind {
		case model.Result:
			key := "output"
			if p.Failed {
				key = "error"
			}
			out = append(out, &part{Result: &result{ID: wire.CallID(p.CallID), Name: p.Name, Response: map[string]string{key: p.Text}}})
		case model.Image:
			out = append(out, &part{Image: &image{MimeType: p.Media, Data: p.Data}})
		default:
			out = append(out, &part{Text: &p.Text})
		}
	}
	return out
}

// answered are the parts of an answer. The first of its calls is signed.
func answered(parts []model.Part, early bool) []any {
	var out []any
	signature := ""
	called := early
	for _, p := range parts {
		switch p.Kind {
		case model.Reasoning:
			var s signed
			if json.Unmarshal(p.Opaque, &s) == nil { // what is not ours to read is not sent
				signature = s.Signature
			}
			continue
		case model.Call:
			if signature == "" && !called {
				signature = unsigned
			}
			called = true
			out = append(out, &part{Call: &call{ID: wire.CallID(p.CallID), Name: p.Name, Args: wire.Args(p)}, Signature: signature})
		default:
			out = append(out, &part{Text: &p.Text, Signature: signature})
		}
		signature = ""
	}
	if signature != "" { // it came last, in a part without text
		out = append(out, &part{Text: new(string), Signature: signature})
	}
	return out
}
