package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// ways are the ways to a server.
var ways = []struct {
	name     string
	protocol string // spoken in the end
	settings func(t *testing.T) Settings
}{
	{"http, stateless", "2026-07-28", func(t *testing.T) Settings { return at(serve(t, demo("d"), true).URL) }},
	{"http, sessions", "2025-11-25", func(t *testing.T) Settings { return at(serve(t, demo("d"), false).URL) }},
	{"http, held to the older revision", "2025-11-25", func(t *testing.T) Settings {
		s := at(serve(t, demo("d"), true).URL)
		s.Protocol = "2025-11-25"
		return s
	}},
	{"stdio", "2026-07-28", func(t *testing.T) Settings { return program(t, "d") }},
	{"stdio, held to the older revision", "2025-11-25", func(t *testing.T) Settings {
		s := program(t, "d")
		s.Protocol = "2025-11-25"
		return s
	}},
}

// The same scenario runs over every way to a server: tools, errors, structured
// content, resources and prompts, all through the tools that the hook mounts.
func TestSameScenarioEverywhere(t *testing.T) {
	t.Parallel()
	const list = "mcp__demo__add mcp__demo__ask mcp__demo__big mcp__demo__crash mcp__demo__env mcp__demo__fail mcp__demo__media " +
		"mcp__demo__pid mcp__demo__release mcp__demo__sleep mcp__demo__steps mcp__demo__resources mcp__demo__prompts"
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			s := openOne(t, way.settings(t))
			m := mounted(t, s, "E1", chat.Member)
			if got := mountedNames(m); got != list {
				t.Errorf("mounted\n%s, want\n%s", got, list)
			}
			if st := s.Status(); !st.Connected || st.Protocol != way.protocol || st.Server != "d 7" || st.Err != "" {
				t.Errorf("status %+v, want connected by %s", st, way.protocol)
			}
			for _, tt := range []struct{ tool, args, want, err string }{
				{"add", `{"a":2,"b":40}`, `{"total":42}`, ""},
				{"add", `{"a":"two"}`, "", "do not fit"},
				{"fail", `{}`, "", "the disk is full"},
				{"media", `{}`, "see this\n[image image/png, 1234 bytes, not shown]\n[sound audio/wav, 5 bytes, not shown]\n[resource demo://notes notes]\ninside\n" +
					fmt.Sprintf("[image image/x-wrong, %d bytes, shown after the results]\n[resource demo://dot image/png, %[1]d bytes, shown after the results]", len(dot)), ""},
				{"resources", `{}`, `{"uri":"demo://notes","name":"notes","doc":"Our notes.","media":"text/plain"}` + "\n" +
					`{"uri":"demo://day/{day}","template":true,"name":"day"}` + "\n", ""},
				{"resources", `{"uri":"demo://notes"}`, "remember the milk", ""},
				{"resources", `{"uri":"demo://day/monday"}`, "the day demo://day/monday", ""},
				{"resources", `{"uri":"demo://none"}`, "", "error -3"},
				{"prompts", `{}`, `{"name":"greet","doc":"Greets.","args":[{"name":"who","required":true}]}` + "\n", ""},
				{"prompts", `{"name":"greet","args":{"who":"Ada"}}`, "user: Hello, Ada", ""},
				{"prompts", `{"name":"none"}`, "", "error -3"},
			} {
				got, err := invoke(t, m, "mcp__demo__"+tt.tool, tt.args)
				if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s %s: %q, %v; want %q, %q", tt.tool, tt.args, got, err, tt.want, tt.err)
				}
			}
			big, err := invoke(t, m, "mcp__demo__big", "{}")
			if err != nil || len(big) > maxResult || !strings.HasSuffix(big, "[cut: 131072 bytes in all]") {
				t.Errorf("a large result: %d bytes, %v", len(big), err)
			}
		})
	}
}

// The hook mounts what the server has, under the server's name, for those who may.
func TestUse(t *testing.T) {
	t.Parallel()
	url := serve(t, demo("d"), true).URL
	some := at(url)
	some.Tools = []string{"add", "gone", allowPrompts}
	members := at(url)
	members.Who = chat.Member
	ss := open(t, hurry(map[string]Settings{"some": some, "for-members": members, "away": {Command: "/nonexistent/program", Optional: true}}))
	for _, tt := range []struct {
		server string
		trust  chat.Role
		count  int
		has    string
	}{
		{"some", chat.Outsider, 2, "mcp__some__add"},
		{"for-members", chat.Outsider, 0, ""},
		{"for-members", chat.Member, 13, "mcp__for-members__resources"},
		{"away", chat.Admin, 0, ""},
	} {
		s, _ := ss.Server(tt.server)
		m := mounted(t, s, "E1", tt.trust)
		if _, ok := m.Tool(tt.has); len(m.Tools) != tt.count || ok != (tt.has != "") {
			t.Errorf("%s for %s: %q, want %d with %q", tt.server, tt.trust, mountedNames(m), tt.count, tt.has)
		}
	}
	s, _ := ss.Server("some")
	tool, _ := new(mounted(t, s, "E1", chat.Member)).Tool("mcp__some__add")
	if want := `From the MCP server "some": Adds two numbers.`; tool.Doc != want || !strings.Contains(string(tool.Schema), `"a"`) || !tool.IsQuiet() {
		t.Errorf("tool %+v, want the doc %q", tool, want)
	}
	if d := cmp.Diff([]string{"gone"}, s.Status().Missing); d != "" {
		t.Errorf("missing (-want +got):\n%s", d)
	}
	if one, two := new(mounted(t, s, "E1", chat.Member)).View(), new(mounted(t, s, "E2", chat.Member)).View(); one.Digest() != two.Digest() {
		t.Error("two renders of one list have different digests")
	}
}

// A list that changes in the middle of a turn changes the next one. What was
// taken back is not called.
func TestTurnKeepsItsList(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{true, false} {
		d := demo("d")
		s := openOne(t, at(serve(t, d, stateless).URL))
		before := mountedNames(mounted(t, s, "E1", chat.Member))
		d.AddTool(&sdk.Tool{Name: "extra", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return texts("extra"), nil
		})
		d.RemoveTools("fail")
		soon(t, "the notification is heeded", func() bool { return s.latest().find("extra") != nil && s.latest().find("fail") == nil })
		same := mounted(t, s, "E1", chat.Member)
		if got := mountedNames(same); got != before {
			t.Errorf("stateless %t: the turn saw %s, then %s", stateless, before, got)
		}
		if _, err := invoke(t, same, "mcp__demo__fail", "{}"); err == nil || !strings.Contains(err.Error(), "nothing was run") {
			t.Errorf("stateless %t: call of what was taken back: %v", stateless, err)
		}
		next := mountedNames(mounted(t, s, "E2", chat.Member))
		if want := strings.Replace(strings.Replace(before, "mcp__demo__fail", "", 1), "env ", "env mcp__demo__extra", 1); next != want {
			t.Errorf("stateless %t: the next turn sees\n%s, want\n%s", stateless, next, want)
		}
	}
}

// Turns that are long over are forgotten.
func TestTurnsAreForgotten(t *testing.T) {
	t.Parallel()
	s := openOne(t, at(serve(t, demo("d"), true).URL))
	for i := range maxTurns + 10 {
		mounted(t, s, strconv.Itoa(i), chat.Member)
	}
	if n := len(s.turns.of); n != maxTurns || n != len(s.turns.order) {
		t.Errorf("%d turns are remembered in %d places, want %d", n, len(s.turns.order), maxTurns)
	}
}

// Each server has its own connection: when one dies, the others do not notice,
// and it is started again.
func TestCrashOfOne(t *testing.T) {
	t.Parallel()
	ss := open(t, hurry(map[string]Settings{"one": program(t, "one"), "two": program(t, "two")}))
	one, _ := ss.Server("one")
	two, _ := ss.Server("two")
	pid := func(s *Server) string {
		r, err := s.Call(t.Context(), "pid", nil)
		if err != nil {
			return err.Error()
		}
		return r.Text
	}
	first, other := pid(one), pid(two)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := two.Call(t.Context(), "add", json.RawMessage(`{"a":1,"b":1}`)); err != nil {
			t.Errorf("call of the other server: %v", err)
		}
	})
	_, err := one.Call(t.Context(), "crash", nil)
	wg.Wait()
	if e := errorAs[*ConnError](err); e == nil || !e.Sent || !strings.Contains(err.Error(), "outcome is unknown") {
		t.Errorf("a call that crashes the server: %v, want an unknown outcome", err)
	}
	m := mounted(t, one, "E1", chat.Member)
	if _, ok := m.Tool("mcp__one__pid"); !ok {
		t.Error("a lost connection unmounts the tools")
	}
	soon(t, "it is started again", func() bool { return one.Status().Connected })
	if again := pid(one); again == first || strings.Contains(again, "mcp") {
		t.Errorf("process %s before and %s after the crash", first, again)
	}
	if again := pid(two); again != other {
		t.Errorf("the other server was process %s, then %s", other, again)
	}
}

// flaky passes requests on to a server that can be replaced.
type flaky struct {
	mu sync.Mutex
	h  http.Handler
}

func (f *flaky) set(h http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.h = h
}

func (f *flaky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	h := f.h
	f.mu.Unlock()
	h.ServeHTTP(w, r)
}

// After a restart of the server calls work again, and so do notifications.
func TestRestartOfTheServer(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{true, false} {
		f := &flaky{}
		start := func() *sdk.Server {
			d := demo("d")
			f.set(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return d }, &sdk.StreamableHTTPOptions{Stateless: stateless}))
			return d
		}
		start()
		h := httptest.NewServer(f)
		t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
		s := openOne(t, at(h.URL))
		d := start()
		h.CloseClientConnections()
		soon(t, "a call works", func() bool { _, err := s.Call(t.Context(), "pid", nil); return err == nil })
		soon(t, "a call with arguments works", func() bool { // connections may be cut once more
			r, err := s.Call(t.Context(), "add", json.RawMessage(`{"a":1,"b":1}`))
			return err == nil && string(r.Structured) == `{"total":2}`
		})
		d.AddTool(&sdk.Tool{Name: "later", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return texts("later"), nil
		})
		soon(t, "notifications come again", func() bool { return s.latest().find("later") != nil })
	}
}

// What a server changes between its list and the moment from which it tells of
// changes is found soon.
func TestChangeThatNobodyWasToldOf(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := openOne(t, at(stranger{"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		if n.Add(1) == 1 {
			answer(w, id, toolList("", "look"))
			return
		}
		answer(w, id, toolList("", "look", "later"))
	}}.start(t)))
	soon(t, "the tool is there", func() bool { return s.latest().find("later") != nil })
}

// A call is repeated after a lost session only if it was not made, or if it
// does no harm to repeat it.
func TestRepeating(t *testing.T) {
	t.Parallel()
	for _, trust := range []bool{true, false} {
		var calls atomic.Int64
		url := stranger{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			n := calls.Add(1)
			if n == 1 {
				panic(http.ErrAbortHandler) // the work may be done, the answer is lost
			}
			answer(w, id, `{"resultType":"complete","content":[{"type":"text","text":"seen"}]}`)
		}}.start(t)
		settings := at(url)
		settings.TrustHints = trust
		s := openOne(t, settings)
		m := mounted(t, s, "E1", chat.Member)
		tool, _ := m.Tool("mcp__demo__look")
		call := harness.NewScope(rendered("E1", chat.Member), nil).Call("call1", tool.Name)
		text, err := tool.Run(t.Context(), call, json.RawMessage("{}"))
		switch {
		case trust && (err != nil || text != "seen" || calls.Load() != 2 || len(call.Tries()) != 1 || call.Tries()[0].Took <= 0):
			t.Errorf("a read-only call: %q, %v, made %d times, tries %+v", text, err, calls.Load(), call.Tries())
		case !trust && (!errors.Is(err, harness.ErrUnknown) || calls.Load() != 1 || len(call.Tries()) != 0):
			t.Errorf("a call with an effect: %q, %v, made %d times, tries %+v", text, err, calls.Load(), call.Tries())
		}
	}
}

// Each call ends at its own deadline, whatever the server does.
func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			settings := way.settings(t)
			settings.Timeout = 200 * time.Millisecond
			s := openOne(t, settings)
			m := mounted(t, s, "E1", chat.Member)
			began := time.Now()
			_, err := invoke(t, m, "mcp__demo__sleep", "{}")
			if took := time.Since(began); err == nil || took > 5*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			if _, err := s.Call(t.Context(), "pid", nil); err != nil {
				t.Errorf("a call after one that took too long: %v", err)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			told := make(chan Progress, 10)
			o := hurry(map[string]Settings{"demo": way.settings(t)})
			o.Progress = func(p Progress) { told <- p }
			s, _ := open(t, o).Server("demo")
			var wg sync.WaitGroup
			wg.Go(func() {
				if r, err := s.Call(t.Context(), "steps", nil); err != nil || r.Text != "done" {
					t.Error(r, err)
				}
			})
			for i := range 3 { // comes while the call runs
				if p := <-told; p != (Progress{Server: "demo", Tool: "mcp__demo__steps", Done: float64(i + 1), Total: 3, Text: "step"}) {
					t.Errorf("progress %+v", p)
				}
			}
			if _, err := s.Call(t.Context(), "release", nil); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}

// What a server asks is declined and told, or answered by whoever answers.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			if way.name == "http, held to the older revision" {
				return // a stateless server cannot ask by that one
			}
			settings := way.settings(t)
			s := openOne(t, settings)
			r, err := s.Call(t.Context(), "ask", nil)
			want := Question{Server: "demo", Message: "What is your name?"}
			if way.protocol == "2026-07-28" { // the server waits; nothing was sent back
				q := errorAs[*QuestionError](err)
				if q == nil || len(q.Questions) != 1 || q.Questions[0].Message != want.Message || q.State != "s1" || !strings.Contains(string(q.Questions[0].Schema), "name") {
					t.Fatalf("%+v, %#v, want a question", r, err)
				}
			} else if err != nil || !strings.Contains(r.Text, "decline") || !strings.Contains(r.Text, "It asked: What is your name?") {
				t.Fatalf("%+v, %v, want a result with the question", r, err)
			}
			text, err := invoke(t, mounted(t, s, "E1", chat.Member), "mcp__demo__ask", "{}")
			if wait := errorAs[*harness.Wait](err); way.protocol == "2026-07-28" {
				if wait == nil || !strings.Contains(wait.Question.Text, "What is your name?") {
					t.Errorf("people are asked %+v, %v", wait, err)
				}
			} else if !strings.Contains(text, "It asked: What is your name?") || !strings.Contains(text, "not answered") {
				t.Errorf("the model is told %q", text)
			}

			o := hurry(map[string]Settings{"demo": settings})
			o.Answer = func(_ context.Context, q Question) (Answer, error) {
				return Answer{Accept: q.Message == want.Message && q.Server == "demo", Values: map[string]any{"name": "Ada"}}, nil
			}
			s, _ = open(t, o).Server("demo")
			if r, err := s.Call(t.Context(), "ask", nil); err != nil || r.Text != `accept: Ada, state "s1"` {
				t.Errorf("answered: %+v, %v", r, err)
			}
			o.Answer = func(context.Context, Question) (Answer, error) { return Answer{}, errors.New("nobody there") }
			s, _ = open(t, o).Server("demo")
			if r, err := s.Call(t.Context(), "ask", nil); err == nil {
				t.Errorf("nobody answered, and yet: %+v", r)
			}
		})
	}
}

// A question that comes as an error names the page's host, not the whole URL.
func TestQuestionByError(t *testing.T) {
	t.Parallel()
	url := stranger{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":{"code":-32042,"message":"m","data":{"elicitations":[
			{"mode":"url","elicitationId":"e","url":"https://pay.example/card?token=hush","message":"Pay first"}]}}}`))
	}}.start(t)
	s := openOne(t, at(url))
	_, err := s.Call(t.Context(), "look", nil)
	if q := errorAs[*QuestionError](err); q == nil || len(q.Questions) != 1 || q.Questions[0].URL == "" || q.Questions[0].Message != "Pay first" {
		t.Errorf("%#v, want a question with a URL", err)
	}
	if err = tell(err); !strings.Contains(err.Error(), "pay.example") || strings.Contains(err.Error(), "hush") {
		t.Errorf("the model is told %v", err)
	}
}

// A question whose form refers to itself is declined: checking an answer by it
// would never end.
func TestQuestionThatLoops(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	url := stranger{"tools/call": func(w http.ResponseWriter, _ *http.Request, id, params json.RawMessage) {
		var p struct {
			InputResponses map[string]struct{ Action string } `json:"inputResponses"`
		}
		_ = json.Unmarshal(params, &p)
		if a, ok := p.InputResponses["q"]; ok {
			got.Store(a.Action)
			answer(w, id, `{"resultType":"complete","content":[]}`)
			return
		}
		answer(w, id, `{"resultType":"input_required","requestState":"s","inputRequests":{"q":{"method":"elicitation/create","params":{
			"mode":"form","message":"m","requestedSchema":{"type":"object","$Ref":"#","properties":{"a":{"type":"string"}}}}}}}`)
	}}.start(t)
	o := hurry(map[string]Settings{"demo": at(url)})
	o.Answer = func(context.Context, Question) (Answer, error) {
		return Answer{Accept: true, Values: map[string]any{"a": "b"}}, nil
	}
	s, _ := open(t, o).Server("demo")
	if _, err := s.Call(t.Context(), "look", nil); err != nil || got.Load() != "decline" {
		t.Errorf("%v, answered %v", err, got.Load())
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	away := Settings{URL: "http://127.0.0.1:1/mcp?key=hush", Headers: map[string]string{"Authorization": "Bearer hush"}}
	_, err := Open(t.Context(), hurry(map[string]Settings{"away": away, "wrong": {}}))
	if err == nil || !strings.Contains(err.Error(), `mcp server "wrong": want either url or command`) || strings.Contains(err.Error(), "away") {
		t.Errorf("wrong settings: %v", err)
	}
	_, err = Open(t.Context(), hurry(map[string]Settings{"away": away}))
	if err == nil || !strings.Contains(err.Error(), `mcp server "away": `) || strings.Contains(err.Error(), "hush") {
		t.Errorf("a server that is needed and away: %v", err)
	}
	away.Optional = true
	s, _ := open(t, hurry(map[string]Settings{"away": away})).Server("away")
	if st := s.Status(); st.Connected || !strings.Contains(st.Err, "refused") || strings.Contains(st.Err, "hush") {
		t.Errorf("status %+v", st)
	}
	_, err = s.Read(t.Context(), "x://y")
	if e := errorAs[*ConnError](err); e == nil || e.Sent || strings.Contains(err.Error(), "hush") {
		t.Errorf("call of a server that is away: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, hurry(map[string]Settings{"deaf": program(t, "deaf")})); !errors.Is(err, context.Canceled) {
		t.Errorf("opening was called off: %v", err)
	}
}

// An optional server that never answers holds the start up for a moment only, and
// one that is needed is waited for; what fails later is no error of the start.
func TestOptionalIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	deaf := program(t, "deaf")
	deaf.Optional = true
	o := hurry(map[string]Settings{"deaf": deaf, "demo": at(serve(t, demo("d"), true).URL)})
	o.Connect, o.pace.optional = time.Hour, 10*time.Millisecond
	s, _ := open(t, o).Server("demo")
	if st := s.Status(); !st.Connected {
		t.Errorf("the server that is needed: %+v", st)
	}
}

func TestStatusAndRefresh(t *testing.T) {
	t.Parallel()
	d := demo("d")
	h := serve(t, d, true)
	ss := open(t, hurry(map[string]Settings{"demo": at(h.URL), "away": {Command: "/nonexistent/program", Optional: true}}))
	st := ss.Status()
	if len(st) != 2 || st[0].Name != "away" || st[1].Name != "demo" || len(st[1].Tools) != 11 || !st[1].Resources || !st[1].Prompts {
		t.Errorf("status %+v", st)
	}
	s, _ := ss.Server("demo")
	if err := s.Refresh(t.Context()); err != nil {
		t.Errorf("refresh: %v", err)
	}
	if err := ss.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), `"away"`) {
		t.Errorf("refresh with a server that is away: %v", err)
	}
	ss.Close()
	if err := s.Refresh(t.Context()); err == nil {
		t.Error("refresh after the end")
	}
	if _, err := s.Call(t.Context(), "pid", nil); errorAs[*ConnError](err) == nil {
		t.Errorf("call after the end: %v", err)
	}
	if _, ok := ss.Server("none"); ok {
		t.Error("a server that is not in the settings is there")
	}
}

// A program sees little of our environment, says little, and does not outlive us.
func TestPrograms(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "hush") // so not parallel
	settings := program(t, "d")
	settings.Env["GIVEN"] = "yes"
	ss := open(t, hurry(map[string]Settings{"demo": settings}))
	s, _ := ss.Server("demo")
	r, err := s.Call(t.Context(), "env", nil)
	if err != nil || strings.Contains(r.Text, "hush") || !strings.Contains(r.Text, "GIVEN=yes") || !strings.Contains(r.Text, "PATH=") {
		t.Errorf("environment %q, %v", r.Text, err)
	}
	r, err = s.Call(t.Context(), "pid", nil)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(r.Text)
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the program is in group %d, %v; want one of its own", group, err)
	}
	ss.Close()
	if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Error("the program outlived us")
	}
}

// Programs that do not behave are cut off, and others go on.
func TestProgramsThatDoNotBehave(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"stderr", "deaf", "chatter", "flood"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			bad := program(t, role)
			bad.Optional = true
			o := hurry(map[string]Settings{"bad": bad, "good": at(serve(t, demo("d"), true).URL)})
			o.Connect = time.Second
			began := time.Now()
			ss := open(t, o)
			good, _ := ss.Server("good")
			if _, err := good.Call(t.Context(), "pid", nil); err != nil {
				t.Errorf("the good server: %v", err)
			}
			s, _ := ss.Server("bad")
			if len(mounted(t, s, "E1", chat.Admin).Tools) != 0 {
				t.Error("it has tools")
			}
			st := s.Status()
			if st.Connected || st.Err == "" || len(st.Stderr) > maxStderr {
				t.Errorf("status %+v", st)
			}
			if role == "stderr" && (!strings.Contains(st.Stderr, "the end[0m") || !strings.Contains(st.Err, "exit status 3")) {
				t.Errorf("its last words are %q, it ended by %q", st.Stderr[max(0, len(st.Stderr)-20):], st.Err)
			}
			ss.Close()
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// A server that is not there is a mistake of the agent's author.
func TestUseOfNoServer(t *testing.T) {
	t.Parallel()
	_, err := harness.Render(func(c *harness.Context) string { Use(c, nil); return "" }, harness.Snapshot{Agent: "a", Model: "fast"})
	if want := `agent "a": mcp.Use: there is no such server; name one`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
