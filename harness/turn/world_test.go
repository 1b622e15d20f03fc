package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

var thread = chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "1"}

// A world is an engine with everything around it under the test's control. Its
// agent is called "tested"; who is not in roles is a member.
type world struct {
	t      testing.TB
	store  *mem.Store
	log    state.Log // what the engine sees of the store
	model  *scripted.Provider
	wary   *wary
	opts   Options
	engine *Engine
	boxes  *boxKind
	logged *buffer

	mu    sync.Mutex
	timed bool // the time is that of the bubble
	now   time.Time
	roles map[string]chat.Role
	blind int // so many look-ups of roles fail
	said  int

	steered int
}

func newWorld(t testing.TB, agent harness.Agent, steps ...scripted.Step) *world {
	t.Helper()
	return worldOf(t, agent, scripted.New(steps...))
}

func worldOf(t testing.TB, agent harness.Agent, p *scripted.Provider) *world {
	t.Helper()
	w := &world{t: t, model: p, roles: map[string]chat.Role{}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), boxes: newBoxKind("memory"), logged: &buffer{}}
	w.wary = &wary{Provider: p, t: t, stable: true}
	w.store = mem.Open(w.clock)
	w.log = w.store
	names, err := model.NewNames([]model.Provider{w.wary}, map[string]string{"fast": "scripted/fast-1", "strong": "scripted/strong-1"},
		map[string]model.Spec{"scripted/fast-1": {Window: 10_000_000, MaxOut: 100, In: 1, Out: 10}})
	if err != nil {
		t.Fatal(err)
	}
	w.opts = Options{
		Values: w.store,
		Agents: map[string]harness.Agent{"tested": agent}, Models: names,
		Sandboxes: map[string]sandbox.Provider{"memory": w.boxes},
		Role:      w.role, Talk: chat.Outsider, Clock: w.clock,
		Compose: func(_ chat.Thread, markdown string, _ chat.Role) ([]string, bool) {
			return strings.Split(markdown, "\n---\n"), false
		},
		Logger: slog.New(slog.NewTextHandler(w.logged, nil)),
	}
	w.restart()
	return w
}

// restart makes a new engine on the same store, as a new process does.
func (w *world) restart() {
	w.t.Helper()
	w.opts.Log = w.log
	e, err := New(w.opts)
	if err != nil {
		w.t.Fatal(err)
	}
	w.engine = e
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timed {
		return time.Now()
	}
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) role(_ context.Context, _ chat.Thread, a chat.Author) (chat.Role, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blind > 0 {
		w.blind--
		return chat.Outsider, errors.New("nobody can be looked up")
	}
	if r, ok := w.roles[a.ID]; ok {
		return r, nil
	}
	return chat.Member, nil
}

func (w *world) setRole(author string, r chat.Role) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles[author] = r
}

// say admits a message.
func (w *world) say(author, text string) { w.admit(author, text, thread, false) }

func (w *world) admit(author, text string, t chat.Thread, quiet bool) {
	w.mu.Lock()
	w.said++
	e := chat.Event{ID: fmt.Sprint("E", w.said), Thread: t, Kind: chat.Message, Topic: "thread", Text: text, Author: chat.Author{ID: author}}
	w.mu.Unlock()
	w.event(e, quiet)
}

func (w *world) event(e chat.Event, quiet bool) {
	if _, err := w.store.Admit(context.Background(), []state.Admit{{Event: e, Agent: "tested", Quiet: quiet}}); err != nil {
		w.t.Error(err)
	}
}

// try claims and runs one conversation. It fails with state.ErrNone if none is ready.
func (w *world) try() error {
	l, err := w.store.Claim(context.Background(), "test", time.Minute)
	if err != nil {
		return err
	}
	return w.engine.Run(context.Background(), context.Background(), l)
}

// run works until nothing is ready.
func (w *world) run() {
	w.t.Helper()
	for {
		err := w.try()
		if errors.Is(err, state.ErrNone) {
			return
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// ask says something and runs.
func (w *world) ask(author, text string) {
	w.t.Helper()
	w.say(author, text)
	w.run()
}

func (w *world) records() []record.Body { return w.recordsOf(thread) }

func (w *world) recordsOf(t chat.Thread) []record.Body {
	w.t.Helper()
	v, err := w.store.Load(context.Background(), state.ConversationID("tested", t), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []record.Body
	for _, r := range v.Records {
		b, err := record.Decode(r)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// of returns the entries of one kind.
func of[B record.Body](bodies []record.Body) []B {
	var out []B
	for _, b := range bodies {
		if b, ok := b.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

// trace names the entries of a log: "heard rendered said settled".
func trace(bodies []record.Body) string {
	var out []string
	for _, b := range bodies {
		switch b.(type) {
		case record.Rested, record.Resumed:
			continue // how often work was taken up is another matter
		}
		name := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", b), "record."))
		switch b := b.(type) {
		case record.Did:
			name += ":" + string(b.End)
		case record.Settled:
			name += ":" + string(b.Outcome)
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func (w *world) posts() []string {
	w.t.Helper()
	ps, err := w.store.Posts(context.Background(), state.ConversationID("tested", thread))
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, p := range ps {
		out = append(out, p.Post.Text)
	}
	return out
}

// request is the n-th request that the model got, from 0; negative from the end.
func (w *world) request(n int) model.Request {
	w.t.Helper()
	rs := w.model.Requests()
	if n < 0 {
		n += len(rs)
	}
	if n < 0 || n >= len(rs) {
		w.t.Fatalf("no request %d of %d", n, len(rs))
	}
	return rs[n]
}

// offered names the tools of a request.
func offered(r model.Request) string {
	var out []string
	for _, t := range r.Tools {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

// transcript is all text of a request's messages.
func transcript(r model.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "[%s] %s%s\n", m.Role, p.Text, p.Args)
		}
	}
	return b.String()
}

// notices are the announcements in a request, in order.
func notices(r model.Request) []string {
	var out []string
	for _, m := range r.Messages {
		if text, ok := strings.CutPrefix(m.Parts[0].Text, "<notice from=\"heddle\">\n"); ok && m.Role == model.User {
			out = append(out, strings.TrimSuffix(text, "\n</notice>"))
		}
	}
	return out
}

// wary refuses requests that a strict provider would refuse, and, while stable
// is set, those that do not repeat the beginning of the one before.
type wary struct {
	model.Provider
	t      testing.TB
	stable bool
	mu     sync.Mutex
	last   []string
	order  []string
}

func (p *wary) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	if err := check(r); err != nil {
		p.t.Errorf("request refused: %v\n%s", err, transcript(r))
	}
	if p.stable {
		p.compare(r)
	}
	return p.Provider.Stream(ctx, r, on)
}

func (p *wary) compare(r model.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now, order []string
	for _, m := range r.Messages {
		text := string(m.Role)
		for _, p := range m.Parts {
			// Byte for byte: encoding would even out what a provider is sent.
			text += fmt.Sprintf("\n%s %q %q %q %q %q %q %q %t", p.Kind, p.Text, p.Opaque, p.From, p.CallID, p.Name, p.Args, p.BadArgs, p.Failed)
		}
		now = append(now, text)
	}
	for _, t := range r.Tools {
		order = append(order, t.Name)
	}
	if len(now) < len(p.last) || !slices.Equal(now[:len(p.last)], p.last) {
		p.t.Errorf("the request does not begin as the one before:\n%s\n\n%s", strings.Join(p.last, "\n"), strings.Join(now, "\n"))
	}
	if a, b := common(p.order, order), common(order, p.order); !slices.Equal(a, b) {
		p.t.Errorf("kept tools changed their order: %v, then %v", a, b)
	}
	p.last, p.order = now, order
}

// common is what of a is in b.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}

// check is a strict provider's look at a request: every call is answered once
// and at once, nothing else is answered, ids and names are unique, the model is
// asked by people or results.
func check(r model.Request) error {
	tools, ids := map[string]bool{}, map[string]bool{}
	for _, t := range r.Tools {
		if tools[t.Name] || !json.Valid(t.Schema) {
			return fmt.Errorf("tool %q is there twice or has no schema", t.Name)
		}
		tools[t.Name] = true
	}
	open := map[string]bool{}
	before := model.Role("")
	for i, m := range r.Messages {
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if m.Role != model.Results && len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %v", i, slices.Collect(maps.Keys(open)))
		}
		if m.Role == before && m.Role != model.User || i == 0 && m.Role != model.User {
			return fmt.Errorf("message %d is of %s after %q", i, m.Role, before)
		}
		for _, p := range m.Parts {
			switch {
			case (p.Kind == model.Result) != (m.Role == model.Results) && p.Kind != model.Image, p.Kind == model.Call && m.Role != model.Assistant:
				return fmt.Errorf("message %d of %s has a %s", i, m.Role, p.Kind)
			case p.Kind == model.Call && (ids[p.CallID] || p.CallID == "" || !json.Valid(p.Args)):
				return fmt.Errorf("call %q is there twice or malformed", p.CallID)
			case p.Kind == model.Call:
				ids[p.CallID], open[p.CallID] = true, true
			case p.Kind == model.Result && !open[p.CallID]:
				return fmt.Errorf("result of %q, which is not open", p.CallID)
			case p.Kind == model.Result:
				delete(open, p.CallID)
			}
		}
		before = m.Role
	}
	if before == model.Assistant || len(open) > 0 {
		return fmt.Errorf("the last message is of %s, open calls: %d", before, len(open))
	}
	return nil
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var _ io.Writer = (*buffer)(nil)

// boxKind is a provider of sandboxes in memory. A shell command "touch NAME"
// makes a file; "die" breaks the sandbox.
type boxKind struct {
	name   string
	mu     sync.Mutex
	opened int
	open   int
	exec   func(ctx context.Context, b *memBox, script string) (sandbox.Result, error) // nil: see above
	read   func()                                                                      // happens after a file was read, nil for nothing
}

func newBoxKind(name string) *boxKind { return &boxKind{name: name} }

func (k *boxKind) Name() string { return k.name }
func (k *boxKind) Close() error { return nil }

func (k *boxKind) Open(_ context.Context, _ string, snapshot []byte) (sandbox.Sandbox, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened++
	k.open++
	b := &memBox{kind: k, files: map[string]string{}}
	if snapshot != nil {
		if err := json.Unmarshal(snapshot, &b.files); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (k *boxKind) counts() (opened, open int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.opened, k.open
}

type memBox struct {
	kind   *boxKind
	mu     sync.Mutex
	files  map[string]string
	broken bool
	closed bool
}

func (b *memBox) Dir() string      { return "/" }
func (b *memBox) Describe() string { return "files in memory" }

func (b *memBox) Exec(ctx context.Context, c sandbox.Command) (sandbox.Result, error) {
	if b.kind.exec != nil {
		return b.kind.exec(ctx, b, c.Script)
	}
	verb, name, _ := strings.Cut(c.Script, " ")
	if verb == "die" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.broken = true
		return sandbox.Result{}, fmt.Errorf("exec: %w", sandbox.ErrBroken)
	}
	return sandbox.Result{}, b.WriteFile(ctx, name, nil)
}

func (b *memBox) ReadFile(_ context.Context, p string) ([]byte, error) {
	b.mu.Lock()
	s, ok := b.files[p]
	b.mu.Unlock()
	if b.kind.read != nil {
		b.kind.read()
	}
	if !ok {
		return nil, fmt.Errorf("read %s: %w", p, fs.ErrNotExist)
	}
	return []byte(s), nil
}

func (b *memBox) WriteFile(_ context.Context, p string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken || b.closed {
		return sandbox.ErrBroken
	}
	b.files[p] = string(data)
	return nil
}

func (b *memBox) List(context.Context, string) ([]sandbox.Info, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []sandbox.Info
	for _, name := range slices.Sorted(maps.Keys(b.files)) {
		out = append(out, sandbox.Info{Name: name})
	}
	return out, nil
}

func (b *memBox) Stat(ctx context.Context, p string) (sandbox.Info, error) {
	if p == "." {
		return sandbox.Info{Name: ".", Mode: fs.ModeDir}, nil
	}
	_, err := b.ReadFile(ctx, p)
	return sandbox.Info{Name: p}, err
}

func (b *memBox) Snapshot(context.Context) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return nil, sandbox.ErrBroken
	}
	return json.Marshal(b.files)
}

func (b *memBox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.kind.mu.Lock()
		b.kind.open--
		b.kind.mu.Unlock()
	}
	return nil
}

// plain is an agent with some tools and nothing else.
func plain(tools ...harness.Tool) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		for _, t := range tools {
			harness.UseTool(c, t)
		}
		return "Help."
	}
}

// act is a tool without arguments.
func act(name string, f func(ctx context.Context, c *harness.Call) (string, error)) harness.Tool {
	return harness.NewTool(name, "Does it.", func(ctx context.Context, c *harness.Call, _ struct{}) (string, error) { return f(ctx, c) })
}

// call is an answer that calls tools without arguments, side by side.
func call(names ...string) scripted.Step {
	var parts []model.Part
	for _, n := range names {
		parts = append(parts, scripted.ToolCall(n, "{}"))
	}
	return scripted.Answer(parts...)
}

// window gives both models a window of so many tokens; compaction then changes
// how requests begin.
func (w *world) window(tokens int) {
	w.t.Helper()
	spec := model.Spec{Window: tokens, MaxOut: 100, In: 1, Out: 10}
	names, err := model.NewNames([]model.Provider{w.wary}, map[string]string{"fast": "scripted/fast-1", "strong": "scripted/strong-1"},
		map[string]model.Spec{"scripted/fast-1": spec, "scripted/strong-1": spec})
	if err != nil {
		w.t.Fatal(err)
	}
	w.opts.Models, w.wary.stable = names, false
	w.restart()
}
