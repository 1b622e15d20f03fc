package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/gemini"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/openai/responses"
	"github.com/heddlehq/heddle/model/script"
	"github.com/heddlehq/heddle/model/scripted"
)

func player(t *testing.T, text string) *script.Player {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return script.NewPlayer(s)
}

// providers are the ways to play a script: over each wire and without any.
func providers(t *testing.T, text string, o llm.Options) map[string]model.Provider {
	t.Helper()
	serve := func() string {
		o := o
		o.Script = player(t, text)
		s := httptest.NewServer(llm.New(o))
		t.Cleanup(s.Close)
		return s.URL
	}
	idle := time.Second
	return map[string]model.Provider{
		"openai":    openai.New(openai.Options{APIKey: o.Key, BaseURL: serve() + "/v1", First: idle, Idle: idle}),
		"responses": responses.New(responses.Options{APIKey: o.Key, BaseURL: serve() + "/v1", First: idle, Idle: idle}),
		"anthropic": anthropic.New(anthropic.Options{APIKey: o.Key, BaseURL: serve(), First: idle, Idle: idle}),
		"gemini":    gemini.New(gemini.Options{APIKey: o.Key, BaseURL: serve() + "/v1beta", First: idle, Idle: idle}),
		"scripted":  scripted.Play(scripted.Script(player(t, text)), 0),
	}
}

func user(text string) model.Message {
	return model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: text}}}
}

var tools = []model.Tool{{Name: "bash", Schema: json.RawMessage(`{"type":"object","properties":{}}`)}}

// TestConversation has the same talk, with calls, over every way.
func TestConversation(t *testing.T) {
	t.Parallel()
	const text = `
when "deploy"
think: they want the log
and say: I will look.
and call: bash {"command":"tail log"}
and call: bash {"command":"date"}
say: it says {result}
when ""
say: you said {user}`
	for name, p := range providers(t, text, llm.Options{Key: "k"}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := model.Request{Model: "m", System: "s", Tools: tools, Messages: []model.Message{user("please deploy")}}
			var deltas strings.Builder
			got, err := p.Stream(context.Background(), r, func(d model.Delta) { deltas.WriteString(d.Reasoning + "|" + d.Text + "|" + d.Tool + "\n") })
			if err != nil {
				t.Fatal(err)
			}
			var seen []string
			results := model.Message{Role: model.Results}
			for _, part := range got.Parts {
				if part.Kind == model.Call {
					results.Parts = append(results.Parts, model.Part{Kind: model.Result, CallID: part.CallID, Name: "bash", Text: []string{"all well", "noon"}[len(results.Parts)]})
				}
				if part.Kind == model.Reasoning && part.Text == "" {
					continue // a signature only
				}
				seen = append(seen, string(part.Kind)+" "+part.Text+part.Name+string(part.Args))
			}
			want := []string{"reasoning they want the log", "text I will look.", `call bash{"command":"tail log"}`, `call bash{"command":"date"}`}
			if d := cmp.Diff(want, seen); d != "" || got.Stop != model.StopTools || got.Usage.In == 0 || got.Usage.Out == 0 {
				t.Fatalf("stop %q, usage %+v (-want +got):\n%s", got.Stop, got.Usage, d)
			}
			if d := cmp.Diff("they ||\nwant ||\nthe ||\nlog||\n|I |\n|will |\n|look.|\n||bash\n||bash\n", deltas.String()); d != "" {
				t.Errorf("deltas (-want +got):\n%s", d)
			}
			r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Parts: got.Parts}, results)
			got, err = p.Stream(context.Background(), r, nil)
			if err != nil || got.Stop != model.StopEnd || got.Parts[0].Text != "it says all well\nnoon" {
				t.Fatalf("%+v, %v", got.Parts, err)
			}
			r.Messages = append(r.Messages, model.Message{Role: model.Assistant, Parts: got.Parts}, user("thanks"))
			if got, err = p.Stream(context.Background(), r, nil); err != nil || got.Parts[0].Text != "you said thanks" {
				t.Fatalf("%+v, %v", got.Parts, err)
			}
		})
	}
}

// TestFaults has every fault twice: before the first word and after some.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"transient", "limited 3s", "truncated", "stalled", "garbled", "overflow", "denied", "missing", "invalid"} {
		for _, text := range []string{"fault: " + word + "\nsay: then well", "say: half of it\nand fault: " + word + "\nsay: then well"} {
			for name, p := range providers(t, text, llm.Options{KeepAlive: 20 * time.Millisecond}) {
				t.Run(name+" "+text, func(t *testing.T) {
					t.Parallel()
					begun := strings.HasPrefix(text, "say")
					r := model.Request{Model: "m", Messages: []model.Message{user("hi")}}
					_, err := p.Stream(context.Background(), r, nil)
					var e *model.Error
					want := model.Fault(strings.Fields(word)[0])
					if want == "limited" {
						want = model.Limited
					}
					if !errors.As(err, &e) || e.Fault != want || e.Partial != begun {
						t.Fatalf("%v, partial %v", err, e != nil && e.Partial)
					}
					if want == model.Limited && !begun && e.RetryAfter != 3*time.Second {
						t.Errorf("retry after %s", e.RetryAfter)
					}
					if got, err := p.Stream(context.Background(), r, nil); err != nil || got.Parts[0].Text != "then well" {
						t.Errorf("the second time: %+v, %v", got.Parts, err)
					}
				})
			}
		}
	}
}

// TestPace streams words slowly; TestWait holds a request until it is released.
func TestPace(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(llm.New(llm.Options{Pace: 5 * time.Millisecond}))
	defer s.Close()
	p := openai.New(openai.Options{BaseURL: s.URL})
	start := time.Now()
	got, err := p.Stream(context.Background(), model.Request{Model: "m", Messages: []model.Message{user("a b c d e")}}, nil)
	if err != nil || got.Parts[0].Text != "a b c d e" || time.Since(start) < 25*time.Millisecond {
		t.Errorf("%+v, %v after %s", got.Parts, err, time.Since(start))
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	play := player(t, "wait\nsay: at last")
	s := httptest.NewServer(llm.New(llm.Options{Script: play}))
	defer s.Close()
	p := anthropic.New(anthropic.Options{BaseURL: s.URL})
	done := make(chan error, 1)
	go func() {
		_, err := p.Stream(ctx, model.Request{Model: "m", Messages: []model.Message{user("hi")}}, nil)
		done <- err
	}()
	if err := play.Await(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if err := play.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// numbered are so many tools of Chat Completions.
func numbered(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"type":"function","function":{"name":"a%d","parameters":{"type":"object","properties":{}}}}`, i))
	}
	return strings.Join(all, ",")
}

// TestRefuses proves that the server is as strict as what it stands for.
func TestRefuses(t *testing.T) {
	t.Parallel()
	const (
		o    = `{"model":"m","stream":true,"messages":[`
		defs = `"tools":[{"name":"bash","input_schema":{"type":"object"}}],`
		a    = `{` + defs + `"model":"m","stream":true,"max_tokens":9,"messages":[`
		u    = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
		c    = `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{}}]}`
		d    = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":""}]}`
		x    = `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
		y    = `{"role":"tool","tool_call_id":"c1","content":""}`
		v    = `{"role":"user","content":"hi"}`

		r  = `{"model":"m","stream":true,"store":false,"input":[`
		ru = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`
		rc = `{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}`
		rd = `{"type":"function_call_output","call_id":"c1","output":""}`

		g  = `{"contents":[`
		gu = `{"role":"user","parts":[{"text":"hi"}]}`
		gc = `{"role":"model","parts":[{"functionCall":{"id":"c1","name":"bash","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]}`
		gd = `{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"bash","response":{"output":""}}}]}`
	)
	tests := []struct {
		name, wire, body string
		status           int
	}{
		{"good", "openai", o + v + `,` + x + `,` + y + `]}`, 200},
		{"no JSON", "openai", `{`, 400},
		{"no model", "openai", `{"stream":true,"messages":[` + v + `]}`, 400},
		{"no stream", "openai", `{"model":"m","messages":[` + v + `]}`, 400},
		{"no messages", "openai", o + `]}`, 400},
		{"call without result", "openai", o + v + `,` + x + `]}`, 400},
		{"call, then a user", "openai", o + v + `,` + x + `,` + v + `]}`, 400},
		{"result without call", "openai", o + v + `,` + y + `]}`, 400},
		{"result twice", "openai", o + v + `,` + x + `,` + y + `,` + y + `]}`, 400},
		{"id twice", "openai", o + v + `,` + x + `,` + y + `,` + x + `,` + y + `]}`, 400},
		{"arguments no object", "openai", o + v + `,` + strings.Replace(x, `"{}"`, `"{"`, 1) + `,` + y + `]}`, 400},
		{"null content", "openai", o + `{"role":"user","content":null}]}`, 400},
		{"unknown role", "openai", o + `{"role":"results","content":"x"}]}`, 400},
		{"tool name", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a b","parameters":{"type":"object"}}}]}`, 400},
		{"tool twice", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}},{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}]}`, 400},
		{"tool schema", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{}}}]}`, 400},
		{"alternatives", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","oneOf":[]}}}]}`, 400},
		{"long description", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","description":"` + strings.Repeat("é", 1025) + `","parameters":{"type":"object"}}}]}`, 400},
		{"description", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","description":"` + strings.Repeat("é", 1024) + `","parameters":{"type":"object","properties":{}}}}]}`, 200},
		{"no properties", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}}]}`, 400},
		{"a list of what", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"array"}}}}}]}`, 400},
		{"lists of what", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":["array","null"],"items":{"type":"array"}}}}}}]}`, 400},
		{"a list", "openai", o + v + `],"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"type":"array","items":{}}}}}}]}`, 200},
		{"many tools", "openai", o + v + `],"tools":[` + numbered(129) + `]}`, 400},
		{"128 tools", "openai", o + v + `],"tools":[` + numbered(128) + `]}`, 200},
		{"both limits", "openai", strings.Replace(o, `"stream"`, `"max_tokens":1,"max_completion_tokens":1,"stream"`, 1) + v + `]}`, 400},

		{"good", "anthropic", a + u + `,` + c + `,` + d + `]}`, 200},
		{"call without tools", "anthropic", strings.Replace(a, defs, "", 1) + u + `,` + c + `,` + d + `]}`, 400},
		{"choice without tools", "anthropic", strings.Replace(a, defs, `"tool_choice":{"type":"none"},`, 1) + u + `]}`, 400},
		{"unknown choice", "anthropic", strings.Replace(a, defs, defs+`"tool_choice":{"type":"some"},`, 1) + u + `]}`, 400},
		{"alternatives", "anthropic", strings.Replace(a, `"type":"object"`, `"type":"object","anyOf":[]`, 1) + u + `]}`, 400},
		{"argument name", "anthropic", strings.Replace(a, `"type":"object"`, `"type":"object","properties":{"$top":{}}`, 1) + u + `]}`, 400},
		{"no limit", "anthropic", strings.Replace(a, `"max_tokens":9,`, "", 1) + u + `]}`, 400},
		{"no messages", "anthropic", a + `]}`, 400},
		{"empty content", "anthropic", a + `{"role":"user","content":[]}]}`, 400},
		{"blank text", "anthropic", a + strings.Replace(u, "hi", " ", 1) + `]}`, 400},
		{"begins with assistant", "anthropic", a + strings.Replace(u, "user", "assistant", 1) + `]}`, 400},
		{"two users", "anthropic", a + u + `,` + u + `]}`, 400},
		{"call without result", "anthropic", a + u + `,` + c + `,` + u + `]}`, 400},
		{"result without call", "anthropic", a + d + `]}`, 400},
		{"text before result", "anthropic", a + u + `,` + c + `,` + strings.Replace(d, `[`, `[{"type":"text","text":"x"},`, 1) + `]}`, 400},
		{"bad id", "anthropic", a + u + `,` + strings.Replace(c, "c1", "c:1", 1) + `,` + strings.Replace(d, "c1", "c:1", 1) + `]}`, 400},
		{"forged reasoning", "anthropic", a + u + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"y"}]}]}`, 400},
		{"image", "anthropic", a + strings.Replace(u, `{"type":"text","text":"hi"}`, `{"type":"image","source":{"type":"base64","media_type":"image/svg","data":"eA=="}}`, 1) + `]}`, 400},
		{"small budget", "anthropic", strings.Replace(a, `"stream"`, `"thinking":{"type":"enabled","budget_tokens":8},"stream"`, 1) + u + `]}`, 400},
		{"budget of all", "anthropic", strings.Replace(a, `"stream":true,"max_tokens":9`, `"stream":true,"thinking":{"type":"enabled","budget_tokens":2000},"max_tokens":2000`, 1) + u + `]}`, 400},
		{"adaptive budget", "anthropic", strings.Replace(a, `"stream"`, `"thinking":{"type":"adaptive","budget_tokens":2000},"stream"`, 1) + u + `]}`, 400},
		{"effort", "anthropic", strings.Replace(a, `"stream"`, `"output_config":{"effort":"off"},"stream"`, 1) + u + `]}`, 400},
		{"thinking begun late", "anthropic", strings.Replace(a, `"stream":true,"max_tokens":9`, `"stream":true,"thinking":{"type":"enabled","budget_tokens":2000},"max_tokens":3000`, 1) + u + `,` + c + `,` + d + `]}`, 400},

		{"image", "openai", o + `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://h.test/a.png"}}]}]}`, 400},
		{"effort", "openai", strings.Replace(o, `"stream"`, `"reasoning_effort":"off","stream"`, 1) + v + `]}`, 400},

		{"good", "responses", r + ru + `,` + rc + `,` + rd + `]}`, 200},
		{"unknown parameter", "responses", strings.Replace(r, `"stream"`, `"max_tokens":1,"stream"`, 1) + ru + `]}`, 400},
		{"stored", "responses", strings.Replace(r, `"store":false`, `"store":true`, 1) + ru + `]}`, 400},
		{"no input", "responses", r + `]}`, 400},
		{"call without result", "responses", r + ru + `,` + rc + `]}`, 400},
		{"result without call", "responses", r + ru + `,` + rd + `]}`, 400},
		{"long id", "responses", r + ru + `,` + strings.Replace(rc, "c1", strings.Repeat("c", 65), 1) + `,` + strings.Replace(rd, "c1", strings.Repeat("c", 65), 1) + `]}`, 400},
		{"forged reasoning", "responses", r + ru + `,{"type":"reasoning","summary":[],"encrypted_content":"x"},` + rc + `,` + rd + `]}`, 400},
		{"reasoning alone", "responses", r + `{"type":"reasoning","summary":[],"encrypted_content":"x"}]}`, 400},
		{"strict tool", "responses", r + ru + `],"tools":[{"type":"function","name":"a","parameters":{"type":"object"}}]}`, 400},
		{"output of a user", "responses", r + strings.Replace(ru, "input_text", "output_text", 1) + `]}`, 400},

		{"good", "gemini", g + gu + `,` + gc + `,` + gd + `]}`, 200},
		{"unknown name", "gemini", `{"model":"m","contents":[` + gu + `]}`, 400},
		{"no contents", "gemini", g + `]}`, 400},
		{"two users", "gemini", g + gu + `,` + gu + `]}`, 400},
		{"begins with a model", "gemini", g + gc + `,` + gd + `]}`, 400},
		{"empty part", "gemini", g + strings.Replace(gu, "hi", "", 1) + `]}`, 400},
		{"unsigned call", "gemini", g + gu + `,` + strings.Replace(gc, `,"thoughtSignature":"skip_thought_signature_validator"`, "", 1) + `,` + gd + `]}`, 400},
		{"forged signature", "gemini", g + gu + `,` + strings.Replace(gc, "skip_thought_signature_validator", "eA==", 1) + `,` + gd + `]}`, 400},
		{"result without call", "gemini", g + gd + `]}`, 400},
		{"call without result", "gemini", g + gu + `,` + gc + `,` + gu + `]}`, 400},
		{"image", "gemini", g + strings.Replace(gu, `{"text":"hi"}`, `{"inlineData":{"mimeType":"image/gif","data":"eA=="}}`, 1) + `]}`, 400},
		{"level and budget", "gemini", `{"generationConfig":{"thinkingConfig":{"thinkingLevel":"low","thinkingBudget":1}},"contents":[` + gu + `]}`, 400},
		{"wrong key", "openai-wrong-key", o + v + `]}`, 401},
	}
	server := llm.New(llm.Options{Key: "k", Script: player(t, "say: a\nsay: b")})
	for _, tt := range tests {
		t.Run(tt.wire+" "+tt.name, func(t *testing.T) {
			path := map[string]string{
				"anthropic": "/v1/messages", "responses": "/v1/responses", "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
			}[tt.wire]
			if path == "" {
				path = "/v1/chat/completions"
			}
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(tt.body))
			r.Header.Set("Anthropic-Version", "2023-06-01")
			if !strings.HasSuffix(tt.wire, "wrong-key") {
				r.Header.Set("X-Api-Key", "k")
				r.Header.Set("Authorization", "Bearer k")
				r.Header.Set("X-Goog-Api-Key", "k")
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if w.Code != tt.status {
				body, _ := io.ReadAll(w.Result().Body)
				t.Errorf("status %d: %s", w.Code, body)
			}
			if tt.status == 401 {
				return
			}
			ledger := server.Requests()
			last := ledger[len(ledger)-1]
			if (last.Refused != "") != (tt.status == 400) || last.Wire != tt.wire || string(last.Body) != tt.body {
				t.Errorf("ledger: %+v", last)
			}
		})
	}
}
