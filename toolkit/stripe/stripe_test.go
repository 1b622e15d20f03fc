package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/channels/stripe"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/stripe"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/harnesstest"
)

// direct hands requests to a handler without a network, so that time can be made up.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		if recover() == http.ErrAbortHandler {
			err = errors.New("connection cut")
		}
	}()
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, r)
	return rec.Result(), nil
}

func apiOf(t *testing.T, s *fake.Server) API {
	t.Helper()
	c, err := stripe.New(stripe.Options{Secrets: []string{"whsec_5e1d77aa"}, APIKey: s.Options().APIKey, Client: &http.Client{Transport: direct{s}}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// memos outlive scopes, as those of the log do.
type memos map[string]json.RawMessage

func (m memos) Get(call, step string) (json.RawMessage, bool, error) {
	v, ok := m[call+"/"+step]
	return v, ok, nil
}

func (m memos) Put(_ context.Context, call, step string, value json.RawMessage) error {
	m[call+"/"+step] = value
	return nil
}

var thread = chat.Thread{Channel: "stripe", Account: "self.test", Room: "cus_1"}

// run calls a tool as a step would.
func run(t *testing.T, tools []harness.Tool, m harness.Memos, in chat.Thread, name, id, args string) (string, error) {
	t.Helper()
	for _, tool := range tools {
		if tool.Name == name {
			scope := harness.NewScope(harness.Snapshot{Turn: "turn1", Thread: in}, nil)
			scope.Remember(m)
			return tool.Run(t.Context(), scope.Call(id, name), json.RawMessage(args))
		}
	}
	t.Fatalf("no tool %q", name)
	return "", nil
}

func TestRead(t *testing.T) {
	t.Parallel()
	s := fake.New(fake.Options{Accounts: []string{"acct_1"}, Denied: []string{"payouts"}})
	s.Put("", fake.Object{"id": "cus_1", "object": "customer", "email": "anna@example.com", "name": nil, "address": map[string]any{"city": ""}})
	s.Put("", fake.Object{"id": "pi_1", "object": "payment_intent", "customer": "cus_1", "client_secret": "pi_1_secret_x", "amount": 100})
	for _, id := range []string{"in_1", "in_2", "in_3"} {
		s.Put("", fake.Object{"id": id, "object": "invoice", "customer": "cus_1", "status": "open", "description": strings.Repeat("long ", 2000)})
	}
	s.Put("acct_1", fake.Object{"id": "cus_shop", "object": "customer"})
	shop := chat.Thread{Channel: "stripe", Account: "acct_1.test", Room: "cus_shop"}
	slack := chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "1"}
	tools := read(apiOf(t, s))
	for _, tc := range []struct {
		name       string
		in         chat.Thread
		tool, args string
		want       string // in the result, or in the error after "error: "
		not        string
	}{
		{"get", thread, "stripe_get", `{"id":"cus_1"}`, `"email":"anna@example.com"`, "address"},
		{"get elsewhere", slack, "stripe_get", `{"id":"cus_1"}`, `"email":"anna@example.com"`, ""},
		{"get a secret", thread, "stripe_get", `{"id":"pi_1"}`, `"amount":100`, "secret"},
		{"get in an account", shop, "stripe_get", `{"id":"cus_shop"}`, `cus_shop`, ""},
		{"get of another account", shop, "stripe_get", `{"id":"cus_1"}`, `error: stripe answered 404 (resource_missing): No such object: 'cus_1'`, ""},
		{"get in live mode with a test key", chat.Thread{Channel: "stripe", Account: "self"}, "stripe_get", `{"id":"cus_1"}`, "error: stripe was not asked", ""},
		{"get nonsense", thread, "stripe_get", `{"id":"cus_1/../../x"}`, "error: the arguments do not fit", ""},
		{"get a kind that is not there", thread, "stripe_get", `{"id":"whsec_1"}`, "error: the arguments do not fit", ""},
		{"list", thread, "stripe_list", `{"kind":"payment_intents","customer":"cus_1"}`, `"pi_1"`, "client_secret"},
		{"list too much", thread, "stripe_list", `{"kind":"invoices","customer":"cus_1","limit":3}`, `"has_more":true`, "in_1"},
		{"list nothing", thread, "stripe_list", `{"kind":"charges","customer":"cus_9"}`, `"has_more":false`, "ch_"},
		{"list by what does not narrow", thread, "stripe_list", `{"kind":"payouts","customer":"cus_1"}`, "error: the arguments do not fit: payouts cannot be narrowed by customer, only by status", ""},
		{"list what is no kind", thread, "stripe_list", `{"kind":"events"}`, "error: the arguments do not fit: kind", ""},
		{"list without the right", thread, "stripe_list", `{"kind":"payouts"}`, "error: stripe answered 403", ""},
		{"search", thread, "stripe_search", `{"kind":"customers","query":"email:'anna@example.com'"}`, `"cus_1"`, ""},
		{"search badly", thread, "stripe_search", `{"kind":"customers","query":"anna"}`, "error: stripe answered 400 (invalid_request_error): We were unable to parse", ""},
		{"search what is no kind", thread, "stripe_search", `{"kind":"events","query":"x:'y'"}`, "error: the arguments do not fit: kind", ""},
	} {
		text, err := run(t, tools, memos{}, tc.in, tc.tool, "c1", tc.args)
		if err != nil {
			text = "error: " + err.Error()
		}
		if !strings.Contains(text, tc.want) || tc.not != "" && strings.Contains(text, tc.not) || len(text) > most+100 {
			t.Errorf("%s: %.300s (%d bytes), want %q", tc.name, text, len(text), tc.want)
		}
	}
	if n := len(s.Writes()); n != 0 {
		t.Errorf("reading wrote %d times", n)
	}
}

// The model sees how things are now, whatever the event says, and in which way
// that is out of date (T21, T24).
func TestNewest(t *testing.T) {
	t.Parallel()
	s := fake.New(fake.Options{})
	api := apiOf(t, s)
	s.Put("", fake.Object{"id": "in_1", "object": "invoice", "status": "paid"})
	s.Put("", fake.Object{"id": "sub_1", "object": "subscription", "status": "active"})
	s.Put("", fake.Object{"id": "cus_1", "object": "customer", "deleted": true})
	s.Put("", fake.Object{"id": "mtr_1", "object": "billing.meter", "status": "active"})
	now := time.Unix(1700000000, 0)
	facts := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	for _, tc := range []struct {
		name  string
		event chat.Event
		want  string // "" for no citation
		not   string
	}{
		{"as it was", chat.Event{Facts: facts("kind", "subscription", "object", "sub_1", "status", "active"), At: now}, `"status":"active"`, "event is"},
		{"since paid", chat.Event{Facts: facts("kind", "invoice", "object", "in_1", "status", "open"), At: now}, `The event is out of date: it says "open", and the status is "paid" now.`, "old"},
		{"late", chat.Event{Facts: facts("kind", "subscription", "object", "sub_1"), At: now.Add(-3 * time.Hour)}, "The event is 3h0m0s old.", "out of date"},
		{"deleted", chat.Event{Facts: facts("kind", "customer", "object", "cus_1"), At: now}, "this was deleted since", ""},
		{"gone", chat.Event{Facts: facts("kind", "invoice", "object", "in_9"), At: now}, "It could not be read, so the event may be out of date: stripe answered 404", ""},
		{"thin", chat.Event{Facts: facts("kind", "billing.meter", "object", "mtr_1", "path", "/v1/billing/meters/mtr_1"), At: now}, `"mtr_1"`, "event is"},
		{"nothing to read", chat.Event{Facts: facts("kind", "balance"), At: now}, "", ""},
		{"a kind that cannot be read", chat.Event{Facts: facts("kind", "brand_new_thing", "object", "bnt_1"), At: now}, "", ""},
	} {
		tc.event.Thread = thread
		snap := harness.Snapshot{Turn: "turn1", Thread: thread, Event: tc.event, Now: now}
		m, err := harness.Render(func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			UseRead(c, api)
			return "x"
		}, snap)
		if err != nil || len(m.Starts) != 1 || len(m.Tools) != 3 {
			t.Fatalf("manifest %+v, %v", m, err)
		}
		scope := harness.NewScope(snap, nil)
		if err := m.Starts[0].Run(t.Context(), scope.Call("start", "")); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		cited := scope.Citations()
		if tc.want == "" {
			if len(cited) != 0 {
				t.Errorf("%s: %v", tc.name, cited)
			}
			continue
		}
		if len(cited) != 1 || !strings.Contains(cited[0].Text, tc.want) || tc.not != "" && strings.Contains(cited[0].Text, tc.not) {
			t.Errorf("%s: %v", tc.name, cited)
		}
	}
	other := harness.Snapshot{Thread: thread, Event: chat.Event{Thread: chat.Thread{Channel: "slack", Account: "T1"}, Facts: facts("object", "in_1")}, Now: now}
	scope := harness.NewScope(other, nil)
	m, err := harness.Render(func(c *harness.Context) string { harness.UseModel(c, "fast"); UseRead(c, api); return "x" }, other)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Starts[0].Run(t.Context(), scope.Call("start", "")); err != nil || len(scope.Citations()) != 0 {
		t.Errorf("an event of another channel: %v, %v", scope.Citations(), err)
	}
}

func TestPure(t *testing.T) {
	t.Parallel()
	harnesstest.Pure(t, ".")
}

// paid is a Stripe with something of each kind to change.
func paid(hook func(fake.Call) fake.Fault) *fake.Server {
	s := fake.New(fake.Options{Hook: hook})
	s.Put("", fake.Object{"id": "pi_1", "object": "payment_intent", "amount": 100, "currency": "eur"})
	s.Put("", fake.Object{"id": "in_1", "object": "invoice", "status": "open"})
	s.Put("", fake.Object{"id": "sub_1", "object": "subscription", "status": "active"})
	s.Put("", fake.Object{"id": "cus_1", "object": "customer"})
	return s
}

var writes = []struct{ tool, args string }{
	{"stripe_refund", `{"payment_intent":"pi_1","amount":10}`},
	{"stripe_void_invoice", `{"invoice":"in_1"}`},
	{"stripe_cancel_subscription", `{"subscription":"sub_1"}`},
	{"stripe_cancel_subscription", `{"subscription":"sub_1","at_period_end":true}`},
	{"stripe_note", `{"id":"cus_1","text":"asked to be called"}`},
}

// T31, T35: a write whose answer never came has its effect once, when it is run
// again, with what it asked first; so has one that Stripe has forgotten (T32).
func TestWriteOnce(t *testing.T) {
	t.Parallel()
	for _, later := range []time.Duration{time.Minute, 25 * time.Hour} {
		for _, w := range writes {
			t.Run(w.tool+" "+later.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					cut := true
					s := paid(func(fake.Call) fake.Fault { return fake.Fault{Cut: cut} })
					log := memos{}
					if text, err := run(t, Write(apiOf(t, s)), log, thread, w.tool, "c1", w.args); !errors.Is(err, harness.ErrUnknown) {
						t.Fatalf("%s, %v: want an unknown outcome", text, err)
					}
					cut = false
					timer := time.NewTimer(later)
					<-timer.C
					text, err := run(t, Write(apiOf(t, s)), log, thread, w.tool, "c1", w.args)
					if err != nil || !strings.Contains(text, `"id"`) {
						t.Errorf("again: %s, %v", text, err)
					}
					if all := s.Writes(); len(all) != 1 || all[0].Key != stripe.Own+"turn1/c1" {
						t.Errorf("effects %+v", all)
					}
				})
			})
		}
	}
}

// T33, T34: what may work later is waited for; another call is another effect.
func TestWriteWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := paid(func(c fake.Call) fake.Fault {
			return []fake.Fault{{}, {Status: 409, Code: "idempotency_key_in_use"}, {Status: 429, Code: "lock_timeout"}, {}, {}, {}}[c.N]
		})
		tools := Write(apiOf(t, s))
		for _, id := range []string{"c1", "c2", "c1"} {
			if text, err := run(t, tools, memos{}, thread, "stripe_refund", id, `{"payment_intent":"pi_1","amount":10}`); err != nil {
				t.Errorf("%s: %s, %v", id, text, err)
			}
		}
		if n := len(s.Writes()); n != 2 {
			t.Errorf("%d refunds, want one for each call", n)
		}
	})
}

func TestWriteRefused(t *testing.T) {
	t.Parallel()
	s := paid(nil)
	for name, tc := range map[string][2]string{
		"refund of nothing":      {"stripe_refund", `{}`},
		"refund of two":          {"stripe_refund", `{"payment_intent":"pi_1","charge":"ch_1"}`},
		"negative refund":        {"stripe_refund", `{"payment_intent":"pi_1","amount":-1}`},
		"refund of too much":     {"stripe_refund", `{"payment_intent":"pi_1","amount":101}`},
		"void something else":    {"stripe_void_invoice", `{"invoice":"sub_1"}`},
		"cancel something else":  {"stripe_cancel_subscription", `{"subscription":"in_1"}`},
		"note at nothing":        {"stripe_note", `{"id":"","text":"x"}`},
		"empty note":             {"stripe_note", `{"id":"cus_1","text":" "}`},
		"a path for an id":       {"stripe_void_invoice", `{"invoice":"in_1/pay"}`},
		"void what is not there": {"stripe_void_invoice", `{"invoice":"in_9"}`},
	} {
		if text, err := run(t, Write(apiOf(t, s)), memos{}, thread, tc[0], "c1", tc[1]); err == nil || errors.Is(err, harness.ErrUnknown) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if n := len(s.Writes()); n != 0 {
		t.Errorf("%d effects", n)
	}
}

// T36: a note of any length keeps within Stripe's limits and leaves room for others.
func TestNote(t *testing.T) {
	t.Parallel()
	s := paid(nil)
	keep := func(text string) map[string]any {
		t.Helper()
		args, err := json.Marshal(noteArgs{ID: "cus_1", Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(t, Write(apiOf(t, s)), memos{}, thread, "stripe_note", "c"+text[:1], string(args)); err != nil {
			t.Fatal(err)
		}
		o, _ := s.Get("", "cus_1")
		return o["metadata"].(map[string]any)
	}
	m := keep(strings.Repeat("a", 3000))
	if len(m) != 6 || m["heddle_note_6"] != strings.Repeat("a", 500) {
		t.Errorf("a long note: %d parts", len(m))
	}
	m = keep("字" + strings.Repeat("b", 9000))
	if last := []rune(m["heddle_note_10"].(string)); len(m) != 10 || len(last) != 500 || last[499] != '…' {
		t.Errorf("a note that is too long: %d parts", len(m))
	}
	if m = keep("short\x00 note"); len(m) != 1 || m["heddle_note_1"] != "short note" {
		t.Errorf("a short one after it: %v", m)
	}
}
