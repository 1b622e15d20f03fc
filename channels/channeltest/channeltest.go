// Package channeltest is the suite that every adapter passes: nothing unsigned
// gets in, equal bytes give equal events, every answer of the provider has its
// verdict, and no error tells a secret or what people wrote.
package channeltest

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

var update = flag.Bool("update", false, "write the golden files")

// Canary is a word that the suite hides in what must not be shown.
const Canary = "canary-7f3a"

// A Channel is what the suite needs an adapter to be. One that is a
// channels.Sender as well is also held to what those promise.
type Channel interface {
	channels.Webhook
}

// A Harness describes an adapter to the suite.
type Harness struct {
	New      func(t testing.TB, apiURL string) Channel   // its secrets hold Canary; apiURL may be ""
	Route    string                                      // route that the payloads come by
	Sign     func(body []byte, at time.Time) http.Header // as the provider does
	Signed   []string                                    // headers that must be there exactly once
	AnyCase  bool                                        // their letters may be of either case
	Window   time.Duration                               // how far a request may be off, both ways; 0 if its time is not signed
	Good     []byte                                      // a body that leads to an event; holds Canary as people's words
	Payloads string                                      // folder of *.json, each with its *.golden; "" for a further route

	// The rest is for a channels.Sender.
	Post      chat.Post                                     // one that the provider accepts; its text holds Canary
	Aside     func(http.ResponseWriter, *http.Request) bool // answers what is asked before Post is made, which does not count; nil if nothing is
	Accept    http.HandlerFunc                              // the provider's answer to Post
	Ref       string                                        // the id in that answer
	Answers   []Answer                                      // the provider's own refusals
	PartLimit int                                           // largest part of Compose
	PartSize  func(string) int                              // as the provider counts
	Live      func(part string) (token string, found bool)  // what would notify somebody or be a script
}

// An Answer is a refusal with the verdict that it must lead to.
type Answer struct {
	Name       string
	Status     int
	Header     http.Header
	Body       string
	Want       channels.Verdict
	RetryAfter time.Duration // with Limited
}

// now is the time at which the suite receives.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Run("Receive", func(t *testing.T) {
		t.Parallel()
		h.receive(t)
	})
	t.Run("Tampering", func(t *testing.T) {
		t.Parallel()
		h.tampering(t)
	})
	t.Run("Malformed", func(t *testing.T) {
		t.Parallel()
		h.malformed(t)
	})
	if h.Payloads != "" {
		t.Run("Golden", func(t *testing.T) {
			t.Parallel()
			h.golden(t)
		})
	}
	t.Run("Abilities", func(t *testing.T) {
		t.Parallel()
		h.abilities(t)
	})
	if _, posts := h.New(t, "").(channels.Sender); !posts {
		return
	}
	t.Run("Send", func(t *testing.T) {
		t.Parallel()
		h.send(t)
	})
	t.Run("Opened", func(t *testing.T) {
		t.Parallel()
		h.opened(t)
	})
	t.Run("Compose", func(t *testing.T) {
		t.Parallel()
		h.compose(t)
	})
}

func (h Harness) receive(t *testing.T) {
	c := h.New(t, "")
	if n := c.Name(); n == "" || n != strings.ToLower(n) || strings.ContainsAny(n, "/ ") {
		t.Errorf("name %q is no lower-case URL segment", n)
	}
	found := false
	for _, r := range c.Routes() {
		found = found || r.Name == h.Route
		if r.MaxBytes <= 0 || len(r.MediaTypes) == 0 {
			t.Errorf("route %q has no body limit or no media types", r.Name)
		}
	}
	if !found {
		t.Errorf("route %q is not among Routes", h.Route)
	}
	header := h.Sign(h.Good, now)
	body, before := append([]byte(nil), h.Good...), header.Clone()
	first, err := c.Receive(h.Route, header, body, now)
	if err != nil || len(first.Events) == 0 {
		t.Fatalf("a good request gives %d events, error %v", len(first.Events), err)
	}
	for _, e := range first.Events {
		if err := e.Thread.Validate(); err != nil || e.ID == "" || e.Topic == "" || e.Kind == "" || e.Thread.Channel != c.Name() {
			t.Errorf("event %+v lacks something (%v)", e, err)
		}
	}
	second, err := c.Receive(h.Route, header, body, now.Add(h.Window/2))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, second); d != "" {
		t.Errorf("the same bytes give other events: %s", d)
	}
	if d := cmp.Diff(before, header); d != "" || string(body) != string(h.Good) {
		t.Errorf("Receive changed the request: %s", d)
	}
	if _, err := c.Receive("no-such-route", header, body, now); err == nil {
		t.Error("a route that is not there was accepted")
	}
	if s, ok := c.(channels.Signer); ok {
		if in, err := c.Receive(h.Route, s.Sign(h.Route, h.Good, now), h.Good, now); err != nil || len(in.Events) != len(first.Events) {
			t.Errorf("what the channel signed itself gives %d events, error %v", len(in.Events), err)
		}
	}
	if h.Window == 0 {
		return
	}
	for _, off := range []time.Duration{-h.Window + time.Second, h.Window - time.Second, -h.Window, h.Window} {
		if _, err := c.Receive(h.Route, h.Sign(h.Good, now.Add(off)), h.Good, now); err != nil {
			t.Errorf("%v off: %v", off, err)
		}
	}
	for _, off := range []time.Duration{-h.Window - time.Second, h.Window + time.Second, -24 * time.Hour} {
		in, err := c.Receive(h.Route, h.Sign(h.Good, now.Add(off)), h.Good, now)
		h.refused(t, in, err, channels.ErrStale)
	}
}

// refused checks that nothing came out but an error that wraps one of want and
// tells nothing.
func (h Harness) refused(t *testing.T, in channels.Inbound, err error, want ...error) {
	t.Helper()
	if d := cmp.Diff(channels.Inbound{}, in); d != "" {
		t.Errorf("a refused request has an effect: %s", d)
	}
	for _, w := range want {
		if errors.Is(err, w) {
			quiet(t, err)
			return
		}
	}
	t.Errorf("error %v, want one of %v", err, want)
}

func quiet(t *testing.T, err error) {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), Canary) {
		t.Errorf("error tells what it must not: %v", err)
	}
}

// tampering changes a good request in every way a byte can be changed.
func (h Harness) tampering(t *testing.T) {
	c := h.New(t, "")
	try := func(t *testing.T, change func(http.Header, []byte) []byte) {
		t.Helper()
		header := h.Sign(h.Good, now)
		body := change(header, append([]byte(nil), h.Good...))
		in, err := c.Receive(h.Route, header, body, now)
		h.refused(t, in, err, channels.ErrUnverified)
	}
	for i := range h.Good {
		for bit := range 8 {
			try(t, func(_ http.Header, b []byte) []byte { b[i] ^= 1 << bit; return b })
		}
	}
	for _, change := range []func([]byte) []byte{
		func([]byte) []byte { return nil },
		func(b []byte) []byte { return append(b, ' ') },
		func(b []byte) []byte { return append(b, 0) },
		func(b []byte) []byte { return append([]byte("\ufeff"), b...) },
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { return b[1:] },
		func(b []byte) []byte { return append(b, b...) },
	} {
		try(t, func(_ http.Header, b []byte) []byte { return change(b) })
	}
	for _, name := range h.Signed {
		good := h.Sign(h.Good, now).Get(name)
		for i := range len(good) {
			for bit := range 8 {
				bad := []byte(good)
				bad[i] ^= 1 << bit
				if h.AnyCase && strings.EqualFold(string(bad), good) {
					continue
				}
				try(t, func(hd http.Header, b []byte) []byte { hd.Set(name, string(bad)); return b })
			}
		}
		for _, values := range [][]string{
			nil,
			{""},
			{good, good},
			{good, "x"},
			{"x", good},
			{"", good},
			{" " + good},
			{good + " "},
			{good + "0"},
			{good + ",x"},
			{good[:len(good)-1]},
			{"+" + good},
			{"1e9"},
			{strings.Repeat("9", 40)},
			{strings.ToUpper(good) + "X"},
			{"\x00"},
			{"é"},
		} {
			try(t, func(hd http.Header, b []byte) []byte { hd[http.CanonicalHeaderKey(name)] = values; return b })
		}
	}
}

// malformed signs what makes no sense: it is refused as such or ignored, and never an event.
func (h Harness) malformed(t *testing.T) {
	c := h.New(t, "")
	bodies := []string{
		"", "[]", "null", "{}", `"x"`, "1", "true", "{", `{"type":`, "{}{}", "\xff", `{"type":1}`, `{"type":"` + Canary + `"}`,
		`{"type":null}`, `{"event":[]}`, strings.Repeat("[", 10000), `{"a":` + strings.Repeat(`{"a":`, 9000),
	}
	if h.Good[0] == '{' { // a form with more in it is a form
		bodies = append(bodies, string(h.Good)+Canary)
	}
	for _, body := range bodies {
		in, err := c.Receive(h.Route, h.Sign([]byte(body), now), []byte(body), now)
		if err != nil {
			h.refused(t, in, err, channels.ErrMalformed)
			continue
		}
		if len(in.Events) > 0 || len(in.Ignored) == 0 {
			t.Errorf("%.40q: %d events, %d ignored", body, len(in.Events), len(in.Ignored))
		}
	}
}

// golden receives every payload and compares what comes out.
func (h Harness) golden(t *testing.T) {
	c := h.New(t, "")
	files, err := filepath.Glob(filepath.Join(h.Payloads, "*.json"))
	if err != nil || len(files) < 12 {
		t.Fatalf("%d payloads in %s, want 12 and more (%v)", len(files), h.Payloads, err)
	}
	for _, f := range files {
		body, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		in, err := c.Receive(h.Route, h.Sign(body, now), body, now)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		for _, g := range in.Ignored {
			if g.Reason == "" {
				t.Errorf("%s: ignored without a reason", f)
			}
		}
		got, err := json.MarshalIndent(struct {
			Events  []chat.Event       `json:"events,omitempty"`
			Ignored []channels.Ignored `json:"ignored,omitempty"`
			Reply   string             `json:"reply,omitempty"`
		}{in.Events, in.Ignored, string(in.Reply)}, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		name := strings.TrimSuffix(f, ".json") + ".golden"
		if *update {
			if err := os.WriteFile(name, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s: %s", f, d)
		}
	}
}

// Fuzz receives anything, correctly signed.
func Fuzz(f *testing.F, h Harness) {
	files, err := filepath.Glob(filepath.Join(h.Payloads, "*.json"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add(h.Good)
	c := h.New(f, "")
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := c.Receive(h.Route, h.Sign(body, now), body, now)
		if err != nil {
			h.refused(t, in, err, channels.ErrMalformed)
			return
		}
		if len(in.Events)+len(in.Ignored) == 0 && in.Reply == nil {
			t.Error("accepted, and nothing came of it")
		}
		for _, e := range in.Events {
			if e.Thread.Validate() != nil || e.ID == "" || e.Kind == "" || e.Topic == "" || strings.ToValidUTF8(e.Text, "") != e.Text {
				t.Errorf("event %+v", e)
			}
		}
	})
}
