package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

const (
	token = "canary-token-0123456789"
	other = "canary-token-abcdefghij" // valid as well
)

// A world is the API over a store with an engine at work. The model echoes the
// last words, after letting everybody in who waits at gate.
type world struct {
	t      *testing.T
	store  *mem.Store
	broken *flaky
	api    *API
	engine *turn.Engine
	log    bytes.Buffer
	logMu  sync.Mutex
	files  map[string][]byte

	mu   sync.Mutex
	step scripted.Step
}

// flaky is a store whose admissions fail when told to.
type flaky struct {
	state.Store
	mu  sync.Mutex
	err error
}

func (f *flaky) Admit(ctx context.Context, in []state.Admit) ([]state.Admission, error) {
	f.mu.Lock()
	err := f.err
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Store.Admit(ctx, in)
}

func (f *flaky) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (w *world) Write(p []byte) (int, error) {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.String()
}

// newWorld makes a world whose engine does not run yet.
func newWorld(t *testing.T, agents ...harness.Agent) *world {
	t.Helper()
	w := &world{t: t, store: mem.Open(nil), files: map[string][]byte{}, step: echo}
	w.broken = &flaky{Store: w.store}
	logger := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.api = NewAPI(Options{
		Store: w.broken, Agents: []string{"assistant", "other"}, Tokens: []string{token, other}, Logger: logger,
		Fits:  func(agent string, e chat.Event, first bool) error { return w.engine.Fits(agent, e, first) },
		Files: func(context.Context, state.ID) (map[string][]byte, error) { return w.files, nil },
	})
	p := scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
		w.mu.Lock()
		step := w.step
		w.mu.Unlock()
		return step(ctx, r)
	}, 0)
	names, err := model.NewNames([]model.Provider{p}, map[string]string{"fast": "scripted/fast-1"},
		map[string]model.Spec{"scripted/fast-1": {Window: 1_000_000, MaxOut: 100, In: 1, Out: 10}})
	if err != nil {
		t.Fatal(err)
	}
	agent := func(c *harness.Context) string { harness.UseModel(c, "fast"); return "You echo." }
	if len(agents) > 0 {
		agent = agents[0]
	}
	w.engine, err = turn.New(turn.Options{
		Log: w.store, Agents: map[string]harness.Agent{"assistant": agent, "other": agent}, Models: names,
		Sandboxes: map[string]sandbox.Provider{}, Talk: chat.Member, Clock: time.Now, Logger: logger,
		Role:    func(context.Context, chat.Thread, chat.Author) (chat.Role, error) { return chat.Admin, nil },
		Compose: func(chat.Thread, string, chat.Role) ([]string, bool) { return nil, false },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// plays sets what the model does.
func (w *world) plays(s scripted.Step) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step = s
}

// echo answers with the words of the newest message.
func echo(ctx context.Context, r model.Request) (model.Response, error) {
	last := r.Messages[len(r.Messages)-1].Parts
	_, text, _ := strings.Cut(last[len(last)-1].Text, ">\n")
	text, _, _ = strings.Cut(text, "\n</heard>")
	return scripted.Say("you said "+text)(ctx, r)
}

// work lets the engine work until the test ends; what it returns stops it earlier.
func (w *world) work() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			l, err := w.store.Claim(ctx, "test", time.Minute)
			if errors.Is(err, state.ErrNone) {
				err = w.store.WaitReady(ctx)
			} else if err == nil {
				err = w.engine.Run(ctx, ctx, l)
			}
			if err != nil && ctx.Err() == nil {
				w.t.Errorf("engine: %v", err)
				return
			}
		}
	})
	stop = func() { cancel(); wg.Wait() }
	w.t.Cleanup(stop)
	return stop
}

// serves serves the API at a real address until the test ends.
func (w *world) serves() string {
	srv := httptest.NewServer(w.api)
	w.t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL
}

// do makes one request without a network. A body that is no string is sent as JSON.
func (w *world) do(method, path string, body any) *httptest.ResponseRecorder {
	w.t.Helper()
	var r io.Reader
	if text, ok := body.(string); ok {
		r = strings.NewReader(text)
	} else if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			w.t.Fatal(err)
		}
		r = bytes.NewReader(data)
	}
	req := httptest.NewRequestWithContext(w.t.Context(), method, path, r)
	req.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, req)
	return rec
}

// want is do that must be answered with the status; it returns the answer.
func (w *world) want(status int, method, path string, body any) map[string]any {
	w.t.Helper()
	rec := w.do(method, path, body)
	if rec.Code != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, rec.Code, status, rec.Body)
	}
	var v map[string]any
	if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
		w.t.Fatalf("%s %s: %v: %s", method, path, err, rec.Body)
	}
	return v
}

// code is the code of an error that is answered.
func code(v map[string]any) string {
	e, _ := v["error"].(map[string]any)
	s, _ := e["code"].(string)
	return s
}

// obj is a JSON object.
type obj = map[string]any

// begin sends a message to assistant/id and waits until it is settled.
func (w *world) begin(id, text string) (conversation string) {
	w.t.Helper()
	got := w.want(http.StatusAccepted, "POST", "/api/v1/agents/assistant/conversations/"+id+"/messages", obj{"text": text})
	if s := w.want(http.StatusOK, "GET", "/api/v1/events/api/"+got["event"].(string)+"?wait=20s", nil); s["status"] != "settled" {
		w.t.Fatalf("%v", s)
	}
	return got["conversation"].(string)
}
