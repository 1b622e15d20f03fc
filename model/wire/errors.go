package wire

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
)

// overflows are the words by which providers say that the context is too long;
// all of a row must occur. This is the only such table.
var overflows = [...][]string{
	{"context_length_exceeded"},
	{"exceed_context_size"},               // llama.cpp
	{"request_too_large"},                 // Anthropic, the whole body
	{"string_above_max_length"},           // OpenAI, one message
	{"maximum context length"},            // OpenAI, vLLM, OpenRouter, DeepSeek, Mistral
	{"maximum model length"},              // vLLM
	{"context window", "exceed"},          // OpenAI, MiniMax
	{"context length", "exceed"},          // Ollama, Together
	{"context length", "greater than"},    // LM Studio
	{"context length", "longer than"},     // Together
	{"context size", "exceed"},            // llama.cpp
	{"prompt is too long"},                // Anthropic
	{"exceed context limit"},              // Anthropic, with max_tokens
	{"input is too long"},                 // Bedrock
	{"maximum prompt length"},             // xAI
	{"reduce the length of the messages"}, // Groq
	{"token count", "exceeds the maximum"},
	{"exceeded model token limit"}, // Moonshot
	{"max_new_tokens", "must be <="},
	{"request too large for"}, // OpenAI under a limit per minute: waiting never helps
}

// unpaid are the words for an account that an operator must top up.
var unpaid = [...]string{"insufficient_quota", "credit balance", "billing_hard_limit", "insufficient balance", "billing_error"}

// kinds are the names providers give to faults, in the order they are looked for.
var kinds = [...]struct {
	name  string
	fault model.Fault
}{
	{"model_not_found", model.Missing},
	{"not_found", model.Missing},
	{"rate_limit", model.Limited},
	{"resource_exhausted", model.Limited},
	{"overloaded", model.Transient},
	{"authentication", model.Denied},
	{"unauthenticated", model.Denied},
	{"invalid_api_key", model.Denied},
	{"permission", model.Denied},
	{"api_error", model.Transient},
	{"server_error", model.Transient},
	{"timeout", model.Transient},
	{"invalid_request", model.Invalid},
	{"invalid_prompt", model.Invalid},
	{"invalid_argument", model.Invalid},
	{"failed_precondition", model.Invalid},
	{"badrequest", model.Invalid},
}

// Classify finds the fault of a refusal by its status, 0 if it came inside a
// stream, and by its body, whatever shape of error object that holds. The code
// is the provider's own and safe to show. It is not ok where nothing says that
// this is an error at all.
func Classify(status int, body []byte) (fault model.Fault, code string, ok bool) {
	r := readReport(body)
	if r.found && (status == 0 || status == http.StatusOK) {
		status = r.status
	}
	words := strings.ToLower(r.code + " " + r.kind + " " + r.message)
	if f, ok := byWords(words); ok && (r.found || status >= 400) {
		return f, r.safeCode(), true
	}
	if f, ok := byStatus(status); ok {
		return f, r.safeCode(), true
	}
	if !r.found {
		return "", "", false
	}
	names := strings.ToLower(r.code + " " + r.kind)
	for _, k := range kinds {
		if strings.Contains(names, k.name) {
			return k.fault, r.safeCode(), true
		}
	}
	return model.Transient, r.safeCode(), true
}

// byWords finds what the text of an error says more exactly than its status.
func byWords(words string) (model.Fault, bool) {
	for _, row := range overflows {
		all := true
		for _, w := range row {
			all = all && strings.Contains(words, w)
		}
		if all {
			return model.Overflow, true
		}
	}
	for _, w := range unpaid {
		if strings.Contains(words, w) {
			return model.Denied, true
		}
	}
	if strings.Contains(words, "api key not valid") { // Google, under status 400
		return model.Denied, true
	}
	if strings.Contains(words, "model_not_found") || strings.Contains(words, "model") && strings.Contains(words, "does not exist") {
		return model.Missing, true
	}
	return "", false
}

func byStatus(status int) (model.Fault, bool) {
	switch {
	case status == http.StatusTooManyRequests:
		return model.Limited, true
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return model.Denied, true
	case status == http.StatusNotFound, status >= 300 && status < 400: // a redirect: the address is wrong
		return model.Missing, true
	case status == http.StatusRequestEntityTooLarge:
		return model.Overflow, true
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly, status >= 500:
		return model.Transient, true
	case status >= 400:
		return model.Invalid, true
	}
	return "", false
}

// A report is what an error body says, from any of the shapes in use:
// {"error":{...}}, {"error":"text"}, {"object":"error",...}, {"detail":...}.
type report struct {
	found               bool // an error object was there
	status              int  // a numeric code
	code, kind, message string
}

func readReport(body []byte) report {
	type object struct {
		Object  string          `json:"object"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
		Detail  json.RawMessage `json:"detail"`
		Meta    json.RawMessage `json:"metadata"` // OpenRouter: what the server behind it said
		Status  json.RawMessage `json:"status"`   // Google: its name of the fault
	}
	var o object
	if json.Unmarshal(body, &o) != nil {
		return report{message: string(body)}
	}
	r := report{found: o.Object == "error" || o.Type == "error"}
	if len(o.Error) > 0 && string(o.Error) != "null" {
		r.found = true
		var inner object
		if json.Unmarshal(o.Error, &inner) == nil {
			o = inner
		} else {
			o.Message = string(o.Error)
		}
	}
	r.kind, r.message = o.Type, o.Message+string(o.Detail)+string(o.Meta)
	if r.kind == "" {
		_ = json.Unmarshal(o.Status, &r.kind) // a number elsewhere
	}
	if json.Unmarshal(o.Code, &r.code) != nil {
		r.status, _ = strconv.Atoi(string(o.Code))
	}
	return r
}

// safeCode is the provider's name for the fault if it is surely nothing but a
// name: no digits, so no key, and no spaces, so nobody's words.
func (r report) safeCode() string {
	if c := SafeCode(r.code); c != "" {
		return c
	}
	return SafeCode(r.kind)
}

// SafeCode is a name a provider gave, "" if it may be more than a name.
func SafeCode(c string) string {
	if len(c) > 48 || strings.Trim(c, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.") != "" {
		return ""
	}
	return c
}

// retryDelay is how Google says it, in the body.
var retryDelay = regexp.MustCompile(`"retryDelay":\s*"([0-9.]{1,12})s"`)

const maxRetryAfter = 24 * time.Hour

// RetryAfter is how long the provider asks us to wait, 0 if it does not say: in
// milliseconds, in seconds, or until a date; in the header or else in the body.
func RetryAfter(h http.Header, body []byte, now time.Time) time.Duration {
	clamp := func(v, unit float64) time.Duration {
		if math.IsNaN(v) {
			return 0
		}
		return time.Duration(min(max(v*unit, 0), float64(maxRetryAfter)))
	}
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return clamp(ms, float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return clamp(s, float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return clamp(float64(at.Sub(now)), 1)
	}
	if m := retryDelay.FindSubmatch(body); m != nil && v == "" {
		s, _ := strconv.ParseFloat(string(m[1]), 64)
		return clamp(s, float64(time.Second))
	}
	return 0
}
