package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// notes are the memos of a call, kept over attempts.
type notes struct {
	mu     sync.Mutex
	values map[string]json.RawMessage
}

func (n *notes) Get(_, step string) (json.RawMessage, bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, ok := n.values[step]
	return v, ok, nil
}

func (n *notes) Put(_ context.Context, _, step string, value json.RawMessage) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.values[step] = value
	return nil
}

// tryOnce runs a tool once, as one process does, and answers its question with
// the next of the answers. It says what is asked, or how the call ends.
func tryOnce(t *testing.T, s *Server, tool string, kept *notes, answers *[]string) (asked, text string, err error) {
	t.Helper()
	m, ok := new(mounted(t, s, "E1", chat.Member)).Tool("mcp__demo__" + tool)
	if !ok {
		t.Fatalf("%s is not mounted", tool)
	}
	scope := harness.NewScope(rendered("E1", chat.Member), nil)
	scope.Remember(kept)
	text, err = m.Run(t.Context(), scope.Call("call1", m.Name), json.RawMessage("{}"))
	var w *harness.Wait
	if !errors.As(err, &w) {
		return "", text, err
	}
	if len(*answers) == 0 {
		t.Fatalf("asked once more: %s", w.Question.Text)
	}
	b, _ := json.Marshal(harness.Reply{Text: (*answers)[0], Author: chat.Author{ID: "U1"}, Role: chat.Member})
	*answers = (*answers)[1:]
	if err := kept.Put(t.Context(), "", w.Question.Name, b); err != nil {
		t.Fatal(err)
	}
	return w.Question.Text, "", nil
}

// converse runs a tool to its end, each attempt in a new process.
func converse(t *testing.T, s *Server, tool string, kept *notes, answers ...string) (asked []string, text string, err error) {
	t.Helper()
	for {
		question, text, err := tryOnce(t, s, tool, kept, &answers)
		if question == "" {
			if len(answers) > 0 {
				t.Errorf("not asked for: %q", answers)
			}
			return asked, text, err
		}
		asked = append(asked, question)
	}
}

func fresh() *notes { return &notes{values: map[string]json.RawMessage{}} }

// What a server asks is put to people and its call goes on with what they said.
func TestAskPeople(t *testing.T) {
	t.Parallel()
	s := openOne(t, at(serve(t, demo("d"), true).URL))
	for _, tt := range []struct {
		answers []string
		want    string
	}{
		{[]string{" Ada "}, `accept: Ada, state "s1"`},
		{[]string{"CANCEL"}, `decline: <nil>, state "s1"`},
		{[]string{"skip"}, `accept: <nil>, state "s1"`},
	} {
		asked, text, err := converse(t, s, "ask", fresh(), tt.answers...)
		if text != tt.want || err != nil {
			t.Errorf("%q: %q, %v, want %q", tt.answers, text, err, tt.want)
		}
		want := "The MCP server **demo** asks:\n\n> What is your name?\n\n**name**\n\nAnswer here, without anything secret, or say **skip**, or say **cancel** to refuse."
		if len(asked) != 1 || asked[0] != want {
			t.Errorf("asked %q, want %q", asked, want)
		}
	}
}

// asking is a server whose calls ask; it counts them.
func asking(t *testing.T, calls *atomic.Int64, question string, then func(params json.RawMessage) string) *Server {
	t.Helper()
	url := stranger{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, params json.RawMessage) {
		calls.Add(1)
		if strings.Contains(string(params), "inputResponses") {
			answer(w, id, then(params))
			return
		}
		answer(w, id, fmt.Sprintf(`{"resultType":"input_required","requestState":"s","inputRequests":%s}`, question))
	}}.start(t)
	return openOne(t, at(url))
}

const nothingMore = `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`

func elicit(params string) string {
	return `{"q":{"method":"elicitation/create","params":` + params + `}}`
}

// A call that a crash cut off after people had answered is not made again.
func TestAnsweredCallIsNotRepeated(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := asking(t, &calls, elicit(`{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{}}}`), func(json.RawMessage) string { return nothingMore })
	kept, answers := fresh(), []string{"yes"}
	if asked, _, err := tryOnce(t, s, "look", kept, &answers); !strings.Contains(asked, "Say **yes**") || err != nil || calls.Load() != 1 {
		t.Fatalf("asked %q, %v, %d calls", asked, err, calls.Load())
	}
	if err := kept.Put(t.Context(), "", "sent 1", json.RawMessage("true")); err != nil { // and then the process died
		t.Fatal(err)
	}
	_, _, err := tryOnce(t, s, "look", kept, &answers)
	if err == nil || !strings.Contains(err.Error(), "it is not known") || calls.Load() != 1 {
		t.Errorf("%v, %d calls, want one and an unknown outcome", err, calls.Load())
	}
}

// What cannot be put to people is declined, or ends the call.
func TestQuestionsThatAreNotPut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ question, want string }{
		"a form that is not flat": {elicit(`{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`), "decline"},
		"a form that loops":       {elicit(`{"mode":"form","message":"m","requestedSchema":{"type":"object","$ref":"#","properties":{"a":{"type":"string"}}}}`), "decline"},
		"a page in clear":         {elicit(`{"mode":"url","message":"m","elicitationId":"e","url":"http://pay.example/"}`), "decline"},
		"a page with a user":      {elicit(`{"mode":"url","message":"m","elicitationId":"e","url":"https://bank.example@evil.example/"}`), "decline"},
		"a page with markup":      {elicit(`{"mode":"url","message":"m","elicitationId":"e","url":"https://evil.example/|bank.example>"}`), "decline"},
		"a wish for a model":      {`{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}`, "not answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			s := asking(t, &calls, tt.question, func(params json.RawMessage) string {
				var p struct {
					InputResponses map[string]struct{ Action string } `json:"inputResponses"`
				}
				_ = json.Unmarshal(params, &p)
				return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":%q}]}`, p.InputResponses["q"].Action)
			})
			asked, text, err := converse(t, s, "look", fresh())
			if err != nil {
				text = err.Error()
			}
			if len(asked) != 0 || !strings.Contains(text, tt.want) {
				t.Errorf("asked %q, then %q, want %s", asked, text, tt.want)
			}
		})
	}
}

// A server that never stops asking is given up.
func TestAskingWithoutEnd(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	question := elicit(`{"mode":"url","message":"m","elicitationId":"e","url":"https://pay.example/"}`)
	s := asking(t, &calls, question, func(json.RawMessage) string {
		return fmt.Sprintf(`{"resultType":"input_required","requestState":"s","inputRequests":%s}`, question)
	})
	asked, _, err := converse(t, s, "look", fresh(), "done", "done", "done", "done", "done")
	if len(asked) != maxRounds || err == nil || !strings.Contains(err.Error(), "more than 5 times") || calls.Load() != maxRounds {
		t.Errorf("asked %d times, %d calls, %v", len(asked), calls.Load(), err)
	}
}

// Who refuses one question of a call refuses the others with it. What cannot be
// asked does not count as refused.
func TestOneRefusalIsEnough(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var asks []string
	for i := range maxAsked {
		asks = append(asks, fmt.Sprintf(`"q%02d":{"method":"elicitation/create","params":{"mode":"form","message":"m%d","requestedSchema":{"type":"object","properties":{"a":{"type":%q}}}}}`,
			i, i, map[bool]string{true: "object", false: "string"}[i == 0]))
	}
	s := asking(t, &calls, "{"+strings.Join(asks, ",")+"}", func(params json.RawMessage) string {
		var p struct {
			InputResponses map[string]struct{ Action string } `json:"inputResponses"`
		}
		_ = json.Unmarshal(params, &p)
		n := map[string]int{}
		for _, r := range p.InputResponses {
			n[r.Action]++
		}
		return fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"%v"}]}`, n)
	})
	asked, text, err := converse(t, s, "look", fresh(), "yes", "cancel")
	if len(asked) != 2 || !strings.Contains(asked[0], "> m1\n") || text != fmt.Sprintf("map[accept:1 decline:%d]", maxAsked-1) || err != nil {
		t.Errorf("asked %q, then %q, %v", asked, text, err)
	}
}

// A server's words stay in their quotation, however their lines end.
func TestQuotation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "> (nothing)", "a\nb": "> a\n> b", "a\r\rb": "> a\n> \n> b", "a\r\nb": "> a\n> b"} {
		if got := quotation(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A page that has to be opened first comes as an error: the call is made anew
// once somebody says so.
func TestPageByError(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	url := stranger{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		if calls.Add(1)%2 == 0 {
			answer(w, id, nothingMore)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32042,"message":"m","data":{"elicitations":[
			{"mode":"url","elicitationId":"e","url":"https://pay.example/card?for=42","message":"Pay first"}]}}}`))
	}}.start(t)
	s := openOne(t, at(url))
	asked, text, err := converse(t, s, "look", fresh(), "Done")
	if len(asked) != 1 || !strings.Contains(asked[0], "this page of pay.example:\nhttps://pay.example/card?for=42") || text != "done" || err != nil {
		t.Errorf("asked %q, then %q, %v", asked, text, err)
	}
	if asked, _, err := converse(t, s, "look", fresh(), "cancel"); len(asked) != 1 || err == nil || !strings.Contains(err.Error(), "declined") || calls.Load() != 3 {
		t.Errorf("asked %q, then %v, %d calls", asked, err, calls.Load())
	}
}

// Waiting is no failure of the call in the log.
func TestWaitingIsLogged(t *testing.T) {
	t.Parallel()
	var log logged
	o := hurry(map[string]Settings{"demo": at(serve(t, demo("d"), true).URL)})
	o.Log = log.logger()
	s, _ := open(t, o).Server("demo")
	answers := []string{"Ada"}
	_, _, _ = tryOnce(t, s, "ask", fresh(), &answers)
	soon(t, "the log", func() bool { return strings.Contains(log.String(), "mcp tool asks people") })
	if strings.Contains(log.String(), "mcp tool called") || strings.Contains(log.String(), "your name") {
		t.Error(log.String())
	}
}
