package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	fakestripe "github.com/heddlehq/heddle/fakes/stripe"
	"github.com/heddlehq/heddle/state"
)

// stripeWorld is the fake Stripe of a script.
type stripeWorld struct {
	*fakestripe.Server
	sent map[string]fakestripe.Delivery
}

// stripe VERB ...: a fake Stripe.
//
//	on: starts it and sets the program's environment
//	event NAME TYPE FILE [missed|thin]: the object of FILE changed; the webhook must be taken, unless it is missed
//	again NAME [STATUS]: the same webhook once more, signed anew
//	put FILE: an object is as in FILE now, and nobody is told
//	raw STATUS FILE [HOW]: a body through the front door, as the command raw does
//	asked N METHOD PATH: the program has made so many calls
//	noted: waits until the store says since when Stripe is listened to
func cmdStripe(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 1, "stripe on|event|again|put|raw|asked ...")
	w, ctx := in(ts)
	if args[0] == "on" {
		w.stripe = &stripeWorld{fakestripe.New(fakestripe.Options{APIKey: "rk_test_canary", Secret: "whsec_canary"}), map[string]fakestripe.Delivery{}}
		api := httptest.NewServer(w.stripe)
		ts.Defer(api.Close)
		ts.Setenv("STRIPE_API_KEY", "rk_test_canary")
		ts.Setenv("STRIPE_WEBHOOK_SECRET", "whsec_canary")
		ts.Setenv("STRIPE_API_URL", api.URL)
		return
	}
	if w.stripe == nil {
		ts.Fatalf("stripe is not on")
	}
	rest := append(args[1:], "", "", "", "")
	switch args[0] {
	case "event":
		what := fakestripe.What{Type: rest[1], Object: stripeObject(ts, rest[2]), Missed: rest[3] == "missed", Thin: rest[3] == "thin"}
		w.stripe.sent[rest[0]] = w.stripe.Event(what)
		if !what.Missed {
			w.stripe.deliver(ts, w, rest[0], http.StatusOK)
		}
	case "again":
		want := http.StatusOK
		if rest[1] != "" {
			want, _ = strconv.Atoi(rest[1])
		}
		w.stripe.deliver(ts, w, rest[0], want)
	case "put":
		w.stripe.Put("", stripeObject(ts, rest[0]))
	case "raw":
		w.stripe.raw(ts, w, rest[0], []byte(ts.ReadFile(rest[1])), rest[2])
	case "asked":
		if n := w.stripe.Calls()[rest[1]+" "+rest[2]]; strconv.Itoa(n) != rest[0] {
			ts.Fatalf("%d calls of %s %s, want %s: %v", n, rest[1], rest[2], rest[0], w.stripe.Calls())
		}
	case "noted":
		w.look(ctx, ts, func(st state.Store) bool {
			at, err := st.Value(ctx, "listening", "stripe")
			return err == nil && at != nil
		})
	default:
		ts.Fatalf("stripe %s: no such verb", args[0])
	}
}

func stripeObject(ts *testscript.TestScript, file string) fakestripe.Object {
	var o fakestripe.Object
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), &o))
	return o
}

// deliver sends the webhook called name, signed now.
func (s *stripeWorld) deliver(ts *testscript.TestScript, w *world, name string, want int) {
	d, ok := s.sent[name]
	if !ok {
		ts.Fatalf("no event %q", name)
	}
	req, err := s.Again(d).Request(w.front + "/stripe/webhook")
	ts.Check(err)
	if status, text := answer(ts, req); status != want {
		ts.Fatalf("status %d (%s), want %d: %s", status, text, want, w.log)
	}
}

func answer(ts *testscript.TestScript, req *http.Request) (int, string) {
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	ts.Check(err)
	return res.StatusCode, strings.TrimSpace(string(text))
}

// raw sends a body in the way that how names; an answer without 200 must say nothing of the reason.
func (s *stripeWorld) raw(ts *testscript.TestScript, w *world, want string, body []byte, how string) {
	if how == "big" {
		body = append(body, bytes.Repeat([]byte(" "), 5<<20)...)
	}
	o := s.Options()
	switch how {
	case "stale":
		o.Clock = func() time.Time { return time.Now().Add(-6 * time.Minute) }
	case "other-secret":
		o.Secret = "whsec_another"
	}
	req, err := fakestripe.New(o).Sign(body).Request(w.front + "/stripe/webhook")
	ts.Check(err)
	switch how {
	case "unsigned":
		req.Header.Del("Stripe-Signature")
	case "type":
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	case "get":
		req.Method, req.Body, req.ContentLength = http.MethodGet, nil, 0
	case "", "big", "stale", "other-secret":
	default:
		ts.Fatalf("unknown way %q", how)
	}
	status, text := answer(ts, req)
	if strconv.Itoa(status) != want {
		ts.Fatalf("status %d, want %s: %s", status, want, w.log)
	}
	if status != http.StatusOK && text != http.StatusText(status) {
		ts.Fatalf("the answer says more than its status: %q", text)
	}
}
