package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/client"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
	"github.com/heddlehq/heddle/ui"
)

const token = "a-token-of-the-tests"

// A world is the real API over a store, and a worker that answers each event
// with a turn of its own.
type world struct {
	t       *testing.T
	store   *mem.Store
	client  *client.Client
	handler atomic.Pointer[http.Handler] // before the API, to spoil what it does
	api     http.Handler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w, stop := start()
	w.t = t
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// start makes a world; stop ends it and says what went wrong with the worker.
func start() (w *world, stop func() error) {
	w = &world{store: mem.Open(nil)}
	w.api = ui.NewAPI(ui.Options{
		Store: w.store, Agents: []string{"assistant"}, Tokens: []string{token}, Logger: slog.New(slog.DiscardHandler),
		Fits: func(string, chat.Event, bool) error { return nil },
		Files: func(context.Context, state.ID) (map[string][]byte, error) {
			return map[string][]byte{"virtual/a dir/b?.txt": []byte("hi")}, nil
		},
	})
	w.handler.Store(&w.api)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { (*w.handler.Load()).ServeHTTP(rw, r) }))
	ctx, cancel := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- w.work(ctx) }()
	w.client = &client.Client{URL: srv.URL, Token: token}
	return w, func() error {
		cancel()
		err := <-worked
		srv.CloseClientConnections()
		srv.Close()
		return err
	}
}

// work answers what is said until ctx ends.
func (w *world) work(ctx context.Context) error {
	for w.store.WaitReady(ctx) == nil {
		l, err := w.store.Claim(ctx, "test", time.Minute)
		if errors.Is(err, state.ErrNone) {
			continue
		}
		if err == nil {
			err = w.answer(ctx, l)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (w *world) answer(ctx context.Context, l state.Lease) error {
	v, err := w.store.Load(ctx, l.Conversation.ID, 0)
	if err != nil {
		return err
	}
	b := state.Batch{Release: true}
	for _, e := range v.Inbox {
		turn := state.TurnID(l.Conversation.ID, e.Seq)
		for _, body := range []record.Body{
			record.Heard{Turn: turn, Event: e.Event, Role: chat.Admin},
			record.Told{Turn: turn, Text: "internal"},
			record.Data{Turn: turn, Name: "last", Value: []byte(`{"words":1}`)},
			record.Said{Turn: turn, Step: 1, Parts: []model.Part{{Kind: model.Text, Text: "heard " + e.Event.Text}}},
			record.Settled{Turn: turn, Outcome: record.Answered, Steps: 1, Cost: 0.5},
		} {
			r, err := record.Encode(body)
			if err != nil {
				return err
			}
			b.Records = append(b.Records, r)
		}
		b.Taken = e.Seq
	}
	_, err = w.store.Commit(ctx, l, b)
	return err
}

// say sends a message and waits for its end.
func (w *world) say(r client.Ref, text string) client.Event {
	w.t.Helper()
	a, err := w.client.Send(w.t.Context(), r, client.Message{Text: text})
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := w.client.Wait(w.t.Context(), a.Channel, a.Event)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// Every verb does what it says, by both names of a conversation.
func TestVerbs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, c := t.Context(), w.client
	byAgent := client.Ref{Agent: "assistant", ID: "a/b c"}
	sent, err := c.Send(ctx, byAgent, client.Message{Text: "one", Data: map[string]int{"n": 1}, Result: map[string]string{"type": "object"}, Key: "k"})
	if err != nil || sent.Status != "admitted" || sent.Event != "api:k" {
		t.Fatal(sent, err)
	}
	e, err := c.Wait(ctx, sent.Channel, sent.Event)
	if err != nil || e.Status != "settled" || e.Answer != "heard one" || e.Outcome != "answered" || e.Cost != 0.5 || e.Conversation != sent.Conversation {
		t.Errorf("%+v, %v", e, err)
	}
	if got, err := c.Event(ctx, sent.Channel, sent.Event); err != nil || !cmp.Equal(got, e) {
		t.Errorf("%+v, %v", got, err)
	}
	byID := client.Ref{ID: sent.Conversation}
	if e := w.say(byID, "two"); e.Answer != "heard two" {
		t.Errorf("%+v", e)
	}
	head, err := c.Conversation(ctx, byAgent)
	if err != nil || head.ID != byID.ID || head.Thread.Room != "a/b c" || head.Turns != 2 || head.Status != "idle" || head.Seq != 10 || head.UpdatedAt.IsZero() {
		t.Errorf("%+v, %v", head, err)
	}
	data, err := c.Data(ctx, byID)
	if err != nil || string(data["last"].Value) != `{"words":1}` || data["last"].Seq != 8 {
		t.Errorf("%v, %v", data, err)
	}
	files, err := c.Files(ctx, byID)
	if err != nil || len(files) != 1 || files[0].Bytes != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	if b, err := c.File(ctx, byAgent, files[0].Path); err != nil || string(b) != "hi" {
		t.Errorf("%q, %v", b, err)
	}
	var turn struct{ Turn string }
	var kinds []string
	for r, err := range c.Records(ctx, byID, client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, r.Kind)
		if err := json.Unmarshal(r.Data, &turn); err != nil { // the last is of the first turn
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"settled", "said", "data", "heard", "settled", "said", "data", "heard"}, kinds); diff != "" {
		t.Error(diff)
	}
	fork, err := c.Fork(ctx, byID, turn.Turn, "")
	if err != nil || fork.Seq != 6 {
		t.Fatalf("%+v, %v", fork, err)
	}
	if head, err := c.Conversation(ctx, client.Ref{ID: fork.ID}); err != nil || head.Parent == nil || *head.Parent != (client.Parent{From: byID.ID, Seq: 5}) {
		t.Errorf("%+v, %v", head, err)
	}
	var ids []string
	for v, err := range c.Conversations(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, v.ID)
	}
	if !slices.Contains(ids, byID.ID) || !slices.Contains(ids, fork.ID) || len(ids) != 2 {
		t.Errorf("%v", ids)
	}
	for name, steer := range map[string]func() (client.Admission, error){
		"abort":  func() (client.Admission, error) { return c.Abort(ctx, byID, turn.Turn) },
		"pause":  func() (client.Admission, error) { return c.Pause(ctx, byID) },
		"resume": func() (client.Admission, error) { return c.Resume(ctx, byID) },
		"step":   func() (client.Admission, error) { return c.Step(ctx, byID) },
		"policy": func() (client.Admission, error) { return c.Policy(ctx, byID, "queue") },
	} {
		if a, err := steer(); err != nil || a.Status != "admitted" || a.Conversation != byID.ID {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// The head of a conversation tells what its calls ask people.
func TestQuestions(t *testing.T) {
	t.Parallel()
	st := mem.Open(nil)
	srv := httptest.NewServer(ui.NewAPI(ui.Options{
		Store: st, Agents: []string{"assistant"}, Tokens: []string{token}, Logger: slog.New(slog.DiscardHandler),
		Fits: func(string, chat.Event, bool) error { return nil },
	}))
	t.Cleanup(srv.Close)
	c, r := &client.Client{URL: srv.URL, Token: token}, client.Ref{Agent: "assistant", ID: "a"}
	if _, err := c.Send(t.Context(), r, client.Message{Text: "pay"}); err != nil {
		t.Fatal(err)
	}
	l, err := st.Claim(t.Context(), "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := client.Question{Turn: "t1", Step: 1, Call: "c1", Question: "Sure?", Who: "maintainer", Until: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), Default: "no"}
	b := state.Batch{Release: true, Taken: 1}
	for _, body := range []record.Body{
		record.Heard{Turn: "t1", Event: chat.Event{ID: "e", Text: "pay"}, Role: chat.Admin},
		record.Asked{Turn: "t1", Step: 1, Call: "c1", Name: "sure", Question: "Sure?", Who: chat.Maintainer, Until: want.Until, Default: "no"},
	} {
		rec, err := record.Encode(body)
		if err != nil {
			t.Fatal(err)
		}
		b.Records = append(b.Records, rec)
	}
	if _, err := st.Commit(t.Context(), l, b); err != nil {
		t.Fatal(err)
	}
	head, err := c.Conversation(t.Context(), r)
	if diff := cmp.Diff([]client.Question{want}, head.Questions); diff != "" || err != nil || head.Turn == nil {
		t.Errorf("%v, %s", err, diff)
	}
}

// A name is one segment of a path, whatever it holds.
func TestNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{".", "..", "a/../b", "%2e", "a//b", "a?b#c;d+e", " ", "ö", "o\u0308"} {
		r := client.Ref{Agent: "assistant", ID: id}
		a, err := w.client.Send(t.Context(), r, client.Message{Text: "x"})
		if err != nil {
			t.Errorf("%q: %v", id, err)
			continue
		}
		head, err := w.client.Conversation(t.Context(), r)
		if err != nil || head.ID != a.Conversation || head.Thread.Room != id {
			t.Errorf("%q: %+v, %v", id, head, err)
		}
		if _, err := w.client.Wait(t.Context(), a.Channel, a.Event); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, err := w.client.Conversation(t.Context(), client.Ref{Agent: "assistant"}); err == nil || !strings.Contains(err.Error(), "no_such_path") {
		t.Errorf("without an id: %v", err)
	}
}

// Lists go on page by page.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := client.Ref{Agent: "assistant", ID: "a"}
	const n = 30
	for i := range n {
		w.say(r, fmt.Sprint(i))
		w.say(client.Ref{Agent: "assistant", ID: fmt.Sprint("other ", i, "/", i)}, "x")
		w.say(client.Ref{Agent: "assistant", ID: fmt.Sprint("more ", i)}, "x")
	}
	want := int64(n * 5)
	for rec, err := range w.client.Records(t.Context(), r, client.Filter{Kinds: []string{"all"}}) {
		if err != nil || rec.Seq != want {
			t.Fatalf("record %d, %v, want %d", rec.Seq, err, want)
		}
		want--
	}
	if want != 0 {
		t.Errorf("%d records are missing", want)
	}
	seen := map[string]bool{}
	for c, err := range w.client.Conversations(t.Context()) {
		if err != nil || seen[c.ID] {
			t.Fatalf("%s, %v", c.ID, err)
		}
		seen[c.ID] = true
	}
	if len(seen) != 2*n+1 {
		t.Errorf("%d conversations, want %d", len(seen), 2*n+1)
	}
	for range w.client.Records(t.Context(), r, client.Filter{}) {
		break // a caller may have enough
	}
}

// What the gateway refuses is an *Error with its code; what may succeed later
// is tried again, and nothing is done twice.
func TestErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := client.Ref{Agent: "assistant", ID: "a"}
	for name, tc := range map[string]struct {
		do     func(*client.Client) error
		status int
		code   string
	}{
		"no token": {func(c *client.Client) error {
			_, err := (&client.Client{URL: c.URL}).Send(t.Context(), r, client.Message{Text: "x"})
			return err
		}, 401, "unauthorized"},
		"no conversation": {func(c *client.Client) error { _, err := c.Conversation(t.Context(), r); return err }, 404, "no_such_conversation"},
		"records": {func(c *client.Client) error {
			for _, err := range c.Records(t.Context(), r, client.Filter{}) {
				return err
			}
			return nil
		}, 404, "no_such_conversation"},
		"stream": {func(c *client.Client) error {
			for _, err := range c.Stream(t.Context(), client.Ref{Agent: "nobody", ID: "a"}, 0, client.Filter{}) {
				return err
			}
			return nil
		}, 404, "no_such_agent"},
		"no file":   {func(c *client.Client) error { _, err := c.Files(t.Context(), r); return err }, 404, "no_such_conversation"},
		"no event":  {func(c *client.Client) error { _, err := c.Wait(t.Context(), "api", "none"); return err }, 404, "no_such_event"},
		"no policy": {func(c *client.Client) error { _, err := c.Policy(t.Context(), r, "none"); return err }, 404, "no_such_conversation"},
	} {
		var e *client.Error
		if err := tc.do(w.client); !errors.As(err, &e) || e.Status != tc.status || e.Code != tc.code || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The first answer is lost after the event was stored, the second never comes.
	n := 0
	spoiled := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		switch n++; n {
		case 1:
			w.api.ServeHTTP(httptest.NewRecorder(), req)
			panic(http.ErrAbortHandler)
		case 2:
			http.Error(rw, "busy", http.StatusServiceUnavailable)
		default:
			w.api.ServeHTTP(rw, req)
		}
	}))
	w.handler.Store(&spoiled)
	if a, err := w.client.Send(t.Context(), r, client.Message{Text: "once"}); err != nil || a.Status != "duplicate" || n != 3 {
		t.Errorf("%+v, %v after %d requests", a, err, n)
	}
	never := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "<html>", http.StatusBadGateway) }))
	w.handler.Store(&never)
	var e *client.Error
	if _, err := w.client.Send(t.Context(), r, client.Message{Text: "x"}); !errors.As(err, &e) || e.Status != 502 {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.client.Send(ctx, r, client.Message{Text: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func Example() {
	w, stop := start()
	c := &client.Client{URL: w.client.URL, Token: token} // of the admin listener; one of HEDDLE_ADMIN_TOKEN
	ctx := context.Background()
	report := client.Ref{Agent: "assistant", ID: "report-7"}
	sent, err := c.Send(ctx, report, client.Message{Text: "the figures", Key: "report-7.1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for u, err := range c.Stream(ctx, report, 0, client.Filter{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if u.Kind == "settled" {
			break
		}
	}
	end, err := c.Wait(ctx, sent.Channel, sent.Event)
	fmt.Println(end.Outcome, end.Answer, end.Cost, err, stop())
	// Output: answered heard the figures 0.5 <nil> <nil>
}
