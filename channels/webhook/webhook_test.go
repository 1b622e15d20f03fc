package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	"github.com/heddlehq/heddle/chat"
)

const key = "key-of-at-least-16-bytes-" + channeltest.Canary

var whsec = "whsec_" + base64.StdEncoding.EncodeToString([]byte(key))

func mac(key, text string) []byte {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte(text))
	return m.Sum(nil)
}

func signStandard(key, id string, body []byte, at time.Time) http.Header {
	stamp := fmt.Sprint(at.Unix())
	h := http.Header{}
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac(key, id+"."+stamp+"."+string(body))))
	return h
}

func signPlain(key string, body []byte) http.Header {
	return http.Header{"X-Signature": {"sha256=" + hex.EncodeToString(mac(key, string(body)))}}
}

func newChannel(t testing.TB, s Settings) *Channel {
	t.Helper()
	c, err := New(map[string]Settings{"alerts": s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// usual are the templates of the tests; the payloads in testdata are for them.
func usual(s Settings) Settings {
	s.Template = "**{{.title}}** is {{.status}}{{with .labels}} ({{range $k, $v := .}}{{$k}}={{$v}} {{end}}){{end}}"
	s.ID, s.Thread, s.Coalesce = "{{.id}}", "{{.service}}", "{{.service}}/{{.status}}/{{.round}}"
	return s
}

func harness(s Settings, sign func([]byte, time.Time) http.Header) channeltest.Harness {
	h := channeltest.Harness{
		New:   func(t testing.TB, _ string) channeltest.Channel { return newChannel(t, usual(s)) },
		Route: "alerts", Sign: sign, Payloads: "testdata",
		Good: []byte(`{"id":"a1","title":"` + channeltest.Canary + `","status":"firing","service":"db","round":1,"labels":null}`),
	}
	for name := range sign(nil, time.Time{}) {
		h.Signed = append(h.Signed, name)
	}
	return h
}

var (
	standardSettings = Settings{Secret: whsec}
	plainSettings    = Settings{Secret: key, Scheme: "hmac", Header: "X-Signature", Prefix: "sha256="}
)

func standardHarness() channeltest.Harness {
	h := harness(standardSettings, func(body []byte, at time.Time) http.Header { return signStandard(key, "msg_1", body, at) })
	h.Window = channels.Window
	return h
}

func plainHarness() channeltest.Harness {
	return harness(plainSettings, func(body []byte, _ time.Time) http.Header { return signPlain(key, body) })
}

func TestSuite(t *testing.T) {
	t.Parallel()
	t.Run("standard", func(t *testing.T) {
		t.Parallel()
		channeltest.Run(t, standardHarness())
	})
	t.Run("hmac", func(t *testing.T) {
		t.Parallel()
		channeltest.Run(t, plainHarness())
	})
}

func FuzzReceive(f *testing.F) { channeltest.Fuzz(f, standardHarness()) }

func FuzzPlain(f *testing.F) { channeltest.Fuzz(f, plainHarness()) }

// The vector of the Standard Webhooks specification.
func TestVector(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Settings{Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Template: "{{.test}}"})
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	in, err := c.Receive("alerts", h, []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0))
	if err != nil || len(in.Events) != 1 || in.Events[0].Text != "2432232314" || in.Events[0].ID != "alerts/msg_p5jXN8AQM9LWM0D4loKWxJek" {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestSignatures(t *testing.T) {
	t.Parallel()
	now, body := time.Unix(1700000000, 0), []byte(`{"a":1}`)
	other := newChannel(t, Settings{Secret: whsec + ", " + "whsec_" + base64.StdEncoding.EncodeToString([]byte("an-older-key-of-16-bytes")), Template: "{{.a}}"})
	odd := newChannel(t, Settings{Secret: whsec, Header: "svix", Template: "{{.a}}"})
	single := newChannel(t, Settings{Secret: key + ",older-key", Scheme: "hmac", Header: "X-Signature", Prefix: "v1=", Template: "{{.a}}"})
	good := signStandard(key, "m", body, now)
	svix := http.Header{"Svix-Id": good["Webhook-Id"], "Svix-Timestamp": good["Webhook-Timestamp"], "Svix-Signature": good["Webhook-Signature"]}
	with := func(name, value string) http.Header {
		h := good.Clone()
		h.Set(name, value)
		return h
	}
	sig := good.Get("Webhook-Signature")
	v1 := func(keys ...string) http.Header {
		var list []string
		for _, k := range keys {
			list = append(list, "v1="+hex.EncodeToString(mac(k, string(body))))
		}
		return http.Header{"X-Signature": {strings.Join(list, ",")}}
	}
	for _, tc := range []struct {
		name string
		c    *Channel
		h    http.Header
		ok   bool
	}{
		{"good", other, good, true},
		{"older key", other, signStandard("an-older-key-of-16-bytes", "m", body, now), true},
		{"other key", other, signStandard("another-key-of-16-bytes", "m", body, now), false},
		{"among others", other, with("Webhook-Signature", "v1a,xx v1,AAAA "+sig), true},
		{"another version only", other, with("Webhook-Signature", "v2"+sig[2:]), false},
		{"another id", other, with("Webhook-Id", "n"), false},
		{"another time", other, with("Webhook-Timestamp", "1700000001"), false},
		{"names of Svix", odd, svix, true},
		{"names of Svix, not sent", odd, good, false},
		{"plain", single, v1(key), true},
		{"plain, older key", single, v1("older-key"), true},
		{"plain, several", single, v1("x", key), true},
		{"plain, none of several", single, v1("x", "y"), false},
	} {
		in, err := tc.c.Receive("alerts", tc.h, body, now)
		if (err == nil) != tc.ok || (len(in.Events) == 1) != tc.ok {
			t.Errorf("%s: error %v, %d events", tc.name, err, len(in.Events))
		}
	}
}

// A key of coalescing makes one event of many, for a period where the time is signed.
func TestCoalesce(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Settings{Secret: whsec, Template: "{{.a}}", Coalesce: "{{.k}}", Within: 10 * time.Minute})
	at := time.Unix(1700000400, 0) // the beginning of a period
	same := func(id, body string, at time.Time) string {
		t.Helper()
		in, err := c.Receive("alerts", signStandard(key, id, []byte(body), at), []byte(body), at)
		if err != nil || len(in.Events) != 1 {
			t.Fatalf("%+v, %v", in, err)
		}
		return in.Events[0].Same
	}
	first := same("1", `{"a":1,"k":"x"}`, at)
	for name, tc := range map[string]struct {
		got  string
		want bool
	}{
		"later in the period": {same("2", `{"a":2,"k":"x"}`, at.Add(9*time.Minute)), true},
		"in the next period":  {same("3", `{"a":1,"k":"x"}`, at.Add(10*time.Minute)), false},
		"another key":         {same("4", `{"a":1,"k":"y"}`, at), false},
		"no key":              {same("5", `{"a":1,"k":""}`, at), false},
	} {
		if (tc.got == first) != tc.want {
			t.Errorf("%s: %q and %q", name, tc.got, first)
		}
	}
	if s := same("6", `{"a":1,"k":""}`, at); s != "" {
		t.Errorf("no key: %q", s)
	}
}

// What a payload holds as null is nothing: it names no event, thread or key, and so
// makes no two of them one.
func TestNull(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Settings{Secret: whsec, Template: "{{.a}} {{.b}}!", ID: "{{.id}}", Thread: "{{.service}}", Coalesce: "{{.k}}"})
	for body, want := range map[string]chat.Event{
		`{"a":1,"b":2,"id":"x","service":"db","k":"y"}`:     {ID: "alerts/x", Same: "alerts/y", Thread: chat.Thread{Room: "db"}, Text: "1 2!"},
		`{"a":1,"b":null,"id":"x","service":null,"k":null}`: {ID: "alerts/x", Text: "1 !"},
		`{"a":1,"b":2,"id":null,"service":"db","k":"y"}`:    {},
	} {
		now := time.Unix(1700000400, 0)
		in, err := c.Receive("alerts", signStandard(key, "m", []byte(body), now), []byte(body), now)
		if err != nil {
			t.Fatal(err)
		}
		if want.ID == "" {
			if len(in.Events) != 0 || len(in.Ignored) != 1 || in.Ignored[0].Reason != "no event id" {
				t.Errorf("%s: %+v", body, in)
			}
			continue
		}
		if len(in.Events) != 1 {
			t.Fatalf("%s: %+v", body, in)
		}
		if e := in.Events[0]; e.ID != want.ID || e.Same != want.Same || e.Thread.Room != want.Thread.Room || e.Text != want.Text {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, want string
		change     func(*Settings)
	}{
		{"good", "", func(*Settings) {}},
		{"hmac", "", func(s *Settings) { s.Scheme, s.Header, s.Hash, s.Encoding = "hmac", "X-Sig", "sha512", "base64" }},
		{"no secret", ".secret", func(s *Settings) { s.Secret = "" }},
		{"empty secret", ".secret", func(s *Settings) { s.Secret += "," }},
		{"placeholder", ".secret", func(s *Settings) { s.Secret = "whsec_..." }},
		{"not base64", ".secret", func(s *Settings) { s.Secret = "whsec_" + channeltest.Canary }},
		{"short key", ".secret", func(s *Settings) { s.Secret = "whsec_c2hvcnQ=" }},
		{"scheme", ".scheme", func(s *Settings) { s.Scheme = "md5" }},
		{"hmac without a header", ".header", func(s *Settings) { s.Scheme = "hmac" }},
		{"standard with a prefix", "prefix", func(s *Settings) { s.Prefix = "v1=" }},
		{"prefix with a comma", ".prefix", func(s *Settings) { s.Scheme, s.Header, s.Prefix = "hmac", "X", "a," }},
		{"encoding", ".encoding", func(s *Settings) { s.Scheme, s.Header, s.Encoding = "hmac", "X", "rot13" }},
		{"hash", ".hash", func(s *Settings) { s.Scheme, s.Header, s.Hash = "hmac", "X", "md5" }},
		{"no template", ".template", func(s *Settings) { s.Template = "" }},
		{"template that does not parse", ".template", func(s *Settings) { s.Template = "{{.a" }},
		{"template with an unknown function", ".template", func(s *Settings) { s.Template = "{{env \"HOME\"}}" }},
		{"thread that does not parse", ".thread", func(s *Settings) { s.Thread = "{{if}}" }},
		{"period without a key", ".within", func(s *Settings) { s.Within = time.Hour }},
		{"period without a time", ".within", func(s *Settings) { s.Scheme, s.Header, s.Coalesce, s.Within = "hmac", "X", "{{.a}}", time.Hour }},
		{"short period", ".within", func(s *Settings) { s.Coalesce, s.Within = "{{.a}}", time.Millisecond }},
	} {
		s := Settings{Secret: whsec, Template: "{{.a}}"}
		tc.change(&s)
		_, err := New(map[string]Settings{"alerts": s})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), "webhooks.alerts") || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), channeltest.Canary) {
			t.Errorf("%s: error shows a secret: %v", tc.name, err)
		}
	}
	for _, name := range []string{"", "Alerts", "a/b", "a b", strings.Repeat("a", 65), "thread"} {
		if _, err := New(map[string]Settings{name: {Secret: whsec, Template: "x"}}); err == nil {
			t.Errorf("a source called %q", name)
		}
	}
}
