package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/heddlehq/heddle/model"
)

// MaxCalls is how many calls one answer may hold; more are ErrCalls.
const MaxCalls = 256

// ErrCalls and errName say what is wrong with the calls of an answer.
var (
	ErrCalls = errors.New("more calls in one answer than allowed")
	errName  = errors.New("a call has no valid tool name")
)

const nameChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func isName(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, nameChars) == ""
}

// CheckCalls makes the calls of an answer fit the port. A name that no tool can
// have is an error. An id that is missing, or that a call of the request or an
// earlier call of the answer has, becomes "call_<n>", where n counts the calls
// of the request and the answer: equal input gives equal ids. A call whose id the
// answer had before is Repeated.
func CheckCalls(r model.Request, parts []model.Part) error {
	var calls []*model.Part
	for i := range parts {
		if parts[i].Kind == model.Call {
			calls = append(calls, &parts[i])
		}
	}
	if len(calls) == 0 {
		return nil
	}
	seen := map[string]bool{}
	n := 0
	for _, m := range r.Messages {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Kind == model.Call {
				seen[p.CallID] = true
				n++
			}
		}
	}
	given := map[string]bool{} // ids, as the provider gave them
	for _, c := range calls {
		if !isName(c.Name, 64) {
			return errName
		}
		n++
		c.Repeated = given[c.CallID]
		given[c.CallID] = c.CallID != ""
		for k := n; c.CallID == "" || seen[c.CallID]; k++ {
			c.CallID = "call_" + strconv.Itoa(k)
		}
		seen[c.CallID] = true
	}
	return nil
}

// Arguments reads the arguments of a finished call. None at all mean {}. What
// is no JSON object is kept as it came and is never repaired.
func Arguments(text string) (args json.RawMessage, bad string) {
	t := strings.TrimSpace(text)
	switch {
	case t == "":
		return json.RawMessage("{}"), ""
	case t[0] == '{' && json.Valid([]byte(t)):
		return json.RawMessage(t), ""
	}
	return json.RawMessage("{}"), text
}

// Args are the arguments of a call as every server can read them; those that
// were no JSON object are {}.
func Args(call model.Part) json.RawMessage {
	if len(call.Args) == 0 {
		return json.RawMessage("{}")
	}
	return call.Args
}

// Schema is the schema of a tool's arguments, which no server lets us leave out.
// One without properties says so: OpenAI refuses it otherwise.
func Schema(t model.Tool) json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	if bytes.Contains(t.Schema, []byte(`"properties"`)) {
		return t.Schema
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(t.Schema, &m) != nil || m == nil {
		return t.Schema
	}
	m["properties"] = json.RawMessage("{}")
	out, err := json.Marshal(m)
	if err != nil {
		return t.Schema // unreachable: it has been decoded
	}
	return out
}

// mostDoc is how many characters a description may have at OpenAI.
const mostDoc = 1024

// Doc is the description of a tool, cut to what OpenAI takes.
func Doc(t model.Tool) string {
	if r := []rune(t.Doc); len(r) > mostDoc {
		return string(r[:mostDoc-3]) + "..."
	}
	return t.Doc
}

// CallID is the id by which a provider is told of a call. Ids of another
// provider that may be refused, being too long or of other characters, become
// a digest, the same for a call and its result.
func CallID(id string) string {
	if isName(id, 40) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// WithoutCalls returns the parts that are no calls: what is left of an answer
// that was cut or declined, whose calls must not run.
func WithoutCalls(parts []model.Part) []model.Part {
	var out []model.Part
	for _, p := range parts {
		if p.Kind != model.Call {
			out = append(out, p)
		}
	}
	return out
}

// Join puts the texts of a message together, without the empty ones.
func Join(parts []model.Part) string {
	var texts []string
	for _, p := range parts {
		if p.Kind == model.Text && strings.TrimSpace(p.Text) != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// Encode is JSON without HTML escapes: the bytes a model reads stay the ones
// that were written.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
