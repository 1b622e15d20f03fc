package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	fake "github.com/heddlehq/heddle/fakes/stripe"
)

// direct hands requests to a handler without a network, so that time can be made up.
type direct struct{ http.Handler }

func (d direct) RoundTrip(r *http.Request) (res *http.Response, err error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	defer func() {
		if recover() == http.ErrAbortHandler {
			err = errors.New("connection cut")
		}
	}()
	rec := httptest.NewRecorder()
	d.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// beside makes a channel that talks to a fake Stripe.
func beside(t testing.TB, s *fake.Server, o Options) *Channel {
	o.APIKey, o.Client = s.Options().APIKey, &http.Client{Transport: direct{s}}
	if o.Secrets == nil {
		o.Secrets = []string{s.Options().Secret}
	}
	return newChannel(t, o)
}

func TestCall(t *testing.T) {
	t.Parallel()
	faults := map[string]fake.Fault{
		"in use":      {Status: 409, Code: "idempotency_key_in_use"},
		"lock":        {Status: 429, Code: "lock_timeout"},
		"limited":     {Status: 429, Code: "rate_limit", RetryAfter: "7"},
		"broken":      {Status: 500, Code: "api_error"},
		"lost":        {Lose: true},
		"cut":         {Cut: true},
		"bad":         {Status: 400, Code: "parameter_invalid_integer"},
		"never again": {Status: 402, Code: "card_declined"},
	}
	for _, tc := range []struct {
		name   string
		faults []string // of the calls, in order; those after behave
		want   string   // error, "" for none
		calls  int
		took   time.Duration
	}{
		{"good", nil, "", 1, 0},
		{"T31 cut", []string{"cut"}, "", 2, 250 * time.Millisecond},
		{"lost", []string{"lost"}, "", 2, 250 * time.Millisecond},
		{"T33 in use", []string{"in use"}, "", 2, 250 * time.Millisecond},
		{"T34 lock", []string{"lock", "lock"}, "", 3, 750 * time.Millisecond},
		{"T34 limited", []string{"limited"}, "", 2, 7 * time.Second},
		{"broken for long", []string{"broken", "broken", "broken", "broken", "broken"}, "stripe answered 500 (api_error), unknown", 5, 3750 * time.Millisecond},
		{"no answer for long", []string{"lost", "lost", "lost", "lost", "lost"}, "stripe was not asked or gave no answer: no answer that can be read, unknown", 5, 3750 * time.Millisecond},
		{"bad", []string{"bad"}, "stripe answered 400 (parameter_invalid_integer)", 1, 0},
		{"declined", []string{"never again"}, "stripe answered 402 (card_declined)", 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var calls []fake.Call
				s := fake.New(fake.Options{Hook: func(c fake.Call) fake.Fault {
					calls = append(calls, c)
					if len(calls) > len(tc.faults) {
						return fake.Fault{}
					}
					return faults[tc.faults[len(calls)-1]]
				}})
				s.Put("", fake.Object{"id": "pi_1", "object": "payment_intent", "amount": 100, "currency": "eur"})
				began := time.Now()
				_, err := beside(t, s, Options{}).Call(t.Context(), "", "POST", "/v1/refunds", url.Values{"payment_intent": {"pi_1"}}, "turn/call")
				text := ""
				if ce := (*CallError)(nil); errors.As(err, &ce) {
					if text = ce.Error(); ce.Unknown() {
						text += ", unknown"
					}
				} else if err != nil {
					t.Fatalf("error %v is no CallError", err)
				}
				if text != tc.want || len(calls) != tc.calls || time.Since(began) != tc.took {
					t.Errorf("%q after %d calls and %v; want %q, %d, %v", text, len(calls), time.Since(began), tc.want, tc.calls, tc.took)
				}
				for _, c := range calls {
					if c.Key != Own+"turn/call" || c.Form["payment_intent"] != "pi_1" {
						t.Errorf("call %+v", c)
					}
				}
				if n := len(s.Writes()); n > 1 || n != 1 && tc.want == "" {
					t.Errorf("%d effects", n)
				}
			})
		})
	}
}

// What cannot be asked is not, and no error tells a secret.
func TestCallRefused(t *testing.T) {
	t.Parallel()
	s := fake.New(fake.Options{APIKey: "rk_test_" + channeltest.Canary, Accounts: []string{"acct_1"}})
	c := beside(t, s, Options{})
	for _, tc := range []struct{ name, account, method, path, key, want string }{
		{"no such thing", "", "GET", "/v1/customers/cus_9", "", "stripe answered 404 (resource_missing): No such object: 'cus_9'"},
		{"T22 live account, test key", "self", "GET", "/v1/customers/cus_9", "", "another mode"},
		{"account", "acct_2.test", "GET", "/v1/customers/cus_9", "", "account_invalid"},
		{"a path out of the API", "", "GET", "/v1/../files", "", "no path"},
		{"a path with a query", "", "GET", "/v1/events?x=1", "", "no path"},
		{"another host", "", "GET", "//evil.test/v1/", "", "no path"},
		{"a write without a key", "", "POST", "/v1/refunds", "", "idempotency key"},
		{"a write with a long key", "", "POST", "/v1/refunds", strings.Repeat("k", 241), "idempotency key"},
	} {
		_, err := c.Call(t.Context(), tc.account, tc.method, tc.path, nil, tc.key)
		var ce *CallError
		if !errors.As(err, &ce) || !strings.Contains(ce.Told(), tc.want) || strings.Contains(ce.Told(), channeltest.Canary) || ce.Unknown() {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if n := len(s.Calls()); n != 1 {
		t.Errorf("calls %v", s.Calls())
	}
	none := newChannel(t, Options{})
	if _, err := none.Call(t.Context(), "", "GET", "/v1/events", nil, ""); err == nil {
		t.Error("asked without a key")
	}
	if err := errors.Join(none.Missed(t.Context(), now, nil, nil), none.Listen(t.Context(), nil)); err != nil {
		t.Errorf("without a key: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Call(ctx, "", "GET", "/v1/events", nil, ""); err == nil {
		t.Error("asked after the end")
	}
}

func TestIdentify(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o    fake.Options
		key  string // of the channel, "" for the right one
		want string
	}{
		"good":            {fake.Options{}, "", ""},
		"wrong key":       {fake.Options{}, "rk_test_other", "rejected: invalid_request_error"},
		"without a right": {fake.Options{Denied: []string{"events"}}, "", "unknown: the key may not read events, so missed ones are not found"},
		"declined":        {fake.Options{Hook: func(fake.Call) fake.Fault { return fake.Fault{Status: 400, Code: "nonsense"} }}, "", "unknown: nonsense"},
	} {
		s := fake.New(tc.o)
		c := beside(t, s, Options{})
		if tc.key != "" {
			c.key = tc.key
		}
		text := ""
		if err := c.Identify(t.Context()); err != nil {
			text = err.Error()
		}
		if text != tc.want {
			t.Errorf("%s: %q, want %q", name, text, tc.want)
		}
	}
	if err := newChannel(t, Options{}).Identify(t.Context()); err != nil {
		t.Errorf("without a key: %v", err)
	}
}

// T38: an account that took itself away is not asked again and again.
func TestClosedAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := fake.New(fake.Options{Accounts: []string{"acct_1"}})
		c := beside(t, s, Options{})
		ask := func() error {
			_, err := c.Call(t.Context(), "acct_1.test", "GET", "/v1/invoices", nil, "")
			return err
		}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		s.Close("acct_1")
		for range 3 {
			if err := ask(); err == nil {
				t.Error("the account answers")
			}
		}
		if n := s.Calls()["GET /v1/invoices"]; n != 2 {
			t.Errorf("%d calls, want one with and one without the right", n)
		}
		timer := time.NewTimer(closedFor)
		<-timer.C
		if err := ask(); err == nil || s.Calls()["GET /v1/invoices"] != 3 {
			t.Errorf("later: %v, %v", err, s.Calls())
		}
	})
}

// T37: what did not arrive is found once, with the ids that a webhook would have had.
func TestMissed(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return now }
	s := fake.New(fake.Options{Clock: clock, Accounts: []string{"acct_1"}})
	what := func(n int, w fake.What) fake.Delivery {
		w.Type, w.Created = "invoice.paid", now.Unix()+int64(n)
		w.Object = fake.Object{"id": fmt.Sprint("in_", n), "object": "invoice", "customer": "cus_1", "amount_due": 100, "currency": "eur"}
		return s.Event(w)
	}
	what(-9000, fake.What{Missed: true}) // long ago
	what(1, fake.What{})                 // it arrived
	var want []string
	webhooks := map[string]fake.Delivery{}
	for n := range 230 {
		d := what(n+2, fake.What{Missed: true})
		want = append(want, d.EventID)
		webhooks[d.EventID] = d
	}
	d := what(500, fake.What{Missed: true, Account: "acct_1"})
	webhooks[d.EventID], want = d, append(want, d.EventID)
	what(501, fake.What{Missed: true, Account: "acct_9"}) // not ours

	c := beside(t, s, Options{Clock: clock, Accounts: []string{"acct_1"}})
	var ids []string
	err := c.Missed(t.Context(), now, nil, func(_ context.Context, in channels.Inbound) error {
		for _, e := range in.Events {
			ids = append(ids, e.ID)
			sent, err := c.Receive("webhook", sign(s.Options().Secret, webhooks[e.ID].Body, now), webhooks[e.ID].Body, now)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(sent.Events[0], e); d != "" {
				t.Errorf("%s differs from its webhook: %s", e.ID, d)
			}
		}
		return nil
	})
	if d := cmp.Diff(want, ids); err != nil || d != "" {
		t.Errorf("error %v, events %s", err, d)
	}
	failed := errors.New("the store is down")
	if err := c.Missed(t.Context(), now, nil, func(context.Context, channels.Inbound) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
}

// T37: while Heddle runs, it asks now and then for what did not arrive.
func TestSweep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down, refused atomic.Bool
		s := fake.New(fake.Options{Hook: func(fake.Call) fake.Fault {
			switch {
			case refused.Load():
				return fake.Fault{Status: 401, Code: "api_key_expired"}
			case down.Load():
				return fake.Fault{Status: 503, Code: "api_error"}
			}
			return fake.Fault{}
		}})
		c := beside(t, s, Options{})
		ids, ended := make(chan string, 10), make(chan error, 1)
		go func() {
			ended <- c.Listen(t.Context(), func(_ context.Context, in channels.Inbound) error {
				for _, e := range in.Events {
					ids <- e.ID
				}
				return nil
			})
		}()
		pass := func(d time.Duration) {
			timer := time.NewTimer(d)
			<-timer.C
			synctest.Wait()
		}
		event := func() string {
			return s.Event(fake.What{Type: "invoice.paid", Object: fake.Object{"id": "in_1", "object": "invoice"}, Missed: true}).EventID
		}
		pass(sweepEvery + time.Minute)
		first := event()
		pass(sweepEvery)
		down.Store(true)
		second := event()
		pass(3 * sweepEvery)
		down.Store(false)
		pass(2 * sweepEvery)
		if a, b := <-ids, <-ids; a != first || b != second || len(ids) > 0 {
			t.Errorf("events %s, %s and %d more; want %s, %s", a, b, len(ids), first, second)
		}
		refused.Store(true)
		pass(2 * sweepEvery)
		if err := <-ended; !errors.Is(err, channels.ErrFatal) {
			t.Errorf("ended with %v", err)
		}
	})
}
