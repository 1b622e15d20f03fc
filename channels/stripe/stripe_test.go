package stripe

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v79/webhook"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/stripe"
)

const secret = "whsec_" + channeltest.Canary

func sign(secret string, body []byte, at time.Time) http.Header {
	stamp := fmt.Sprint(at.Unix())
	return http.Header{"Stripe-Signature": {"t=" + stamp + ",v1=" + fake.Signature(secret, stamp, body)}}
}

func newChannel(t testing.TB, o Options) *Channel {
	t.Helper()
	if o.Secrets == nil {
		o.Secrets = []string{secret}
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func harness() channeltest.Harness {
	return channeltest.Harness{
		New: func(t testing.TB, apiURL string) channeltest.Channel {
			return newChannel(t, Options{APIKey: "key_" + channeltest.Canary, APIURL: apiURL}) // of no known mode, so both are taken
		},
		Route:  "webhook",
		Sign:   func(body []byte, at time.Time) http.Header { return sign(secret, body, at) },
		Signed: []string{"Stripe-Signature"},
		Window: channels.Window,
		Good: []byte(`{"id":"evt_1","object":"event","type":"invoice.paid","livemode":true,"created":1764500000,` +
			`"data":{"object":{"id":"in_1","object":"invoice","description":"` + channeltest.Canary + `"}}}`),
		Payloads: "testdata",
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Run(t, harness())
}

func FuzzReceive(f *testing.F) { channeltest.Fuzz(f, harness()) }

var now = time.Unix(1700000000, 0)

const event = `{"id":"evt_1","object":"event","type":"invoice.paid","livemode":true,"created":1700000000,"data":{"object":{"id":"in_1","object":"invoice","customer":"cus_1"}}}`

// TestSignatures is every way in which a signature can be good or not.
func TestSignatures(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{Secrets: []string{"whsec_gwtest"}})
	good := fake.Signature("whsec_gwtest", "1700000000", []byte(event))
	bad := strings.Repeat("0", 64)
	changed := func(s string) string { return s[:10] + string(s[10]^1) + s[11:] }
	at := func(stamp string) string {
		return "t=" + stamp + ",v1=" + fake.Signature("whsec_gwtest", stamp, []byte(event))
	}
	for _, tc := range []struct {
		name   string
		header []string
		ok     bool
	}{
		{"T01 good", []string{"t=1700000000,v1=" + good}, true},
		{"T01 good, in the middle of the window", []string{at("1700000200")}, true},
		{"T02 a digit changed", []string{"t=1700000000,v1=" + changed(good)}, false},
		{"T03 301 s old", []string{at("1699999699")}, false},
		{"T03 301 s early", []string{at("1700000301")}, false},
		{"T03 300 s old", []string{at("1699999700")}, true},
		{"T04 bad and good", []string{"t=1700000000,v1=" + bad + ",v1=" + good}, true},
		{"T04 good and bad", []string{"t=1700000000,v1=" + good + ",v1=" + bad}, true},
		{"T05 200 wrong ones", []string{"t=1700000000" + strings.Repeat(",v1="+bad, 200)}, false},
		{"T06 v0 only", []string{"t=1700000000,v0=" + good}, false},
		{"T07 two times, signed for the last", []string{"t=1600000000,t=1700000000,v1=" + good}, false},
		{"T07 two times, signed for the first", []string{"t=1700000000,t=1600000000,v1=" + good}, false},
		{"T07 no time", []string{"v1=" + good}, false},
		{"T07 odd time", []string{"t=now,v1=" + fake.Signature("whsec_gwtest", "now", []byte(event))}, false},
		{"T07 negative time", []string{"t=-5,v1=" + fake.Signature("whsec_gwtest", "-5", []byte(event))}, false},
		{"T08 blank after the comma", []string{"t=1700000000, v1=" + good}, false},
		{"T09 two headers", []string{"t=1700000000,v1=" + good, "t=1700000000,v1=" + good}, false},
		{"T10 another endpoint's secret", []string{"t=1700000000,v1=" + fake.Signature("whsec_connect", "1700000000", []byte(event))}, false},
		{"T39 a captured one, 6 minutes later", []string{at("1699999640")}, false},
		{"upper case", []string{"t=1700000000,v1=" + strings.ToUpper(good)}, false},
		{"no header", nil, false},
	} {
		in, err := c.Receive("webhook", http.Header{"Stripe-Signature": tc.header}, []byte(event), now)
		if (err == nil) != tc.ok || (len(in.Events) == 1) != tc.ok {
			t.Errorf("%s: error %v, %d events", tc.name, err, len(in.Events))
		}
	}
}

// T01: the vector that was worked out elsewhere, and the library's own signature.
func TestVectors(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{Secrets: []string{"whsec_gwtest"}})
	h := http.Header{"Stripe-Signature": {"t=1700000000,v1=13509809ee5565220352c007a18cb4adb6a2687e3799c5e2bad0007b1b1ccf43"}}
	in, err := c.Receive("webhook", h, []byte(`{"id":"evt_1","object":"event"}`), now)
	if err != nil || len(in.Events) != 0 || len(in.Ignored) != 1 {
		t.Errorf("vector: %+v, %v", in, err)
	}
	p := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: []byte(event), Secret: "whsec_gwtest", Timestamp: now})
	if in, err = c.Receive("webhook", http.Header{"Stripe-Signature": {p.Header}}, []byte(event), now); err != nil || len(in.Events) != 1 {
		t.Errorf("library: %+v, %v", in, err)
	}
}

// Whatever our check takes, the library's takes as well.
func FuzzVerify(f *testing.F) {
	f.Add("t=1700000000,v1=00", "whsec_a")
	f.Add("t=1,t=2,v1=0,v0=1", "b")
	f.Add(",==", "0")
	c, err := New(Options{Secrets: []string{"whsec_gwtest"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, header, body string) {
		for _, h := range []string{header, header + ",v1=" + fake.Signature("whsec_gwtest", "1700000000", []byte(body)), sign("whsec_gwtest", []byte(body), now)["Stripe-Signature"][0] + header} {
			err := c.verify(http.Header{"Stripe-Signature": {h}}, []byte(body), now)
			if lib := webhook.ValidatePayloadIgnoringTolerance([]byte(body), h, "whsec_gwtest"); err == nil && lib != nil {
				t.Errorf("%q: taken, but the library says %v", h, lib)
			}
		}
	})
}

// T11, T12: any of the configured secrets verifies, and no empty one is configured.
func TestSecrets(t *testing.T) {
	t.Parallel()
	c := newChannel(t, Options{Secrets: []string{"whsec_new1", "whsec_old1"}})
	for s, ok := range map[string]bool{"whsec_new1": true, "whsec_old1": true, "whsec_older": false, "": false, "new1": false} {
		if _, err := c.Receive("webhook", sign(s, []byte(event), now), []byte(event), now); (err == nil) != ok {
			t.Errorf("secret %q: %v", s, err)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{Secrets: []string{"whsec_5e1d77aa"}, APIKey: "rk_test_5e1d"}
	for _, tc := range []struct {
		name, want string
		change     func(*Options)
	}{
		{"good", "", func(*Options) {}},
		{"without a key", "", func(o *Options) { o.APIKey = "" }},
		{"T12 no secret", "STRIPE_WEBHOOK_SECRET", func(o *Options) { o.Secrets = nil }},
		{"T12 empty secret", "STRIPE_WEBHOOK_SECRET", func(o *Options) { o.Secrets = []string{"whsec_5e1d77aa", ""} }},
		{"T12 placeholder", "STRIPE_WEBHOOK_SECRET", func(o *Options) { o.Secrets = []string{"whsec_..."} }},
		{"key placeholder", "STRIPE_API_KEY", func(o *Options) { o.APIKey = "rk_live_xxx" }},
		{"publishable key", "STRIPE_API_KEY", func(o *Options) { o.APIKey = "pk_live_5e1d" }},
		{"address", "STRIPE_API_URL", func(o *Options) { o.APIURL = "localhost:9900" }},
		{"thread", "stripe.thread", func(o *Options) { o.Thread = "email" }},
		{"thread that does not parse", "stripe.thread", func(o *Options) { o.Thread = "{{.customer" }},
		{"thread that cannot be carried out", "stripe.thread", func(o *Options) { o.Thread = "{{template \"x\"}}" }},
		{"thread as a template", "", func(o *Options) { o.Thread = "{{or .invoice .customer .home}}" }},
		{"account", "stripe.accounts", func(o *Options) { o.Accounts = []string{"shop"} }},
	} {
		o := good
		tc.change(&o)
		_, err := New(o)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "5e1d") {
			t.Errorf("%s: error shows a secret: %v", tc.name, err)
		}
	}
}

// got receives a well signed body and returns what came of it: the thread key of
// the event, or why there is none.
func got(t *testing.T, c *Channel, body string) string {
	t.Helper()
	in, err := c.Receive("webhook", sign(secret, []byte(body), now), []byte(body), now)
	switch {
	case err != nil:
		return "malformed"
	case len(in.Events) == 1 && len(in.Ignored) == 0:
		return in.Events[0].Thread.Key()
	case len(in.Events) == 0 && len(in.Ignored) == 1:
		return "ignored: " + in.Ignored[0].Reason
	}
	t.Fatalf("%d events, %d ignored", len(in.Events), len(in.Ignored))
	return ""
}

// read is a recorded payload, changed.
func read(t *testing.T, name string, change func(o map[string]any)) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(o)
	}
	if b, err = json.Marshal(o); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMeaning is what bodies come to, by settings.
func TestMeaning(t *testing.T) {
	t.Parallel()
	signed := sign(secret, []byte(event), now)
	c := newChannel(t, Options{})
	if _, err := c.Receive("webhook", signed, []byte(strings.ReplaceAll(event, `":"`, `": "`)), now); err == nil {
		t.Error("T13: written anew after signing, and taken")
	}
	live := Options{APIKey: "rk_live_5e1d"}
	shops := Options{Accounts: []string{"acct_1QxShop"}}
	for _, tc := range []struct {
		name, body, want string
		o                Options
	}{
		{"T14 torn", `{"id":`, "malformed", Options{}},
		{"T14 empty", `{}`, "ignored: not an event", Options{}},
		{"T14 a list", `[]`, "malformed", Options{}},
		{"T17 a version that is to come", read(t, "invoice_newer_version", nil), "stripe/self.test/cus_QxAnna/", Options{}},
		{"T22 test mode where the key is live", read(t, "invoice_payment_failed", nil), "ignored: other mode than the key's", live},
		{"T22 live mode where the key is live", event, "stripe/self/cus_1/", live},
		{"T22 test mode without a key", read(t, "invoice_payment_failed", nil), "stripe/self.test/cus_QxAnna/", Options{}},
		{"no mode", `{"id":"evt_1","object":"event","type":"a","data":{"object":{}}}`, "ignored: no mode", Options{}},
		{"T23 an account that is not ours", read(t, "connect_account", func(o map[string]any) { o["account"] = "acct_1Other" }), "ignored: unknown account", shops},
		{"T23 an account that is", read(t, "connect_account", nil), "stripe/acct_1QxShop/pi_3QxCon/", shops},
		{"T23 our own", event, "stripe/self/cus_1/", shops},
		{"T24 thin", read(t, "thin", nil), "stripe/self.test/mtr_test_61/", Options{}},
		{"T24 thin, of an account", read(t, "thin_connect", nil), "stripe/acct_1QxShop/cus_QxThin/", Options{}},
		{"T24 thin, of a sandbox", read(t, "thin", nil), "ignored: other mode than the key's", live},
		{"T25 ping", read(t, "thin_ping", nil), "ignored: ping", Options{}},
		{"T26 unknown type", read(t, "unknown_type", nil), "stripe/self.test/cus_QxAnna/", Options{}},
		{"T27 own write", read(t, "own_write", nil), "ignored: own write", Options{}},
		{"T27 the same by somebody else", read(t, "own_write", func(o map[string]any) { o["request"] = map[string]any{"id": "req_1", "idempotency_key": "x"} }), "stripe/self.test/cus_QxAnna/", Options{}},
		{"T28 upcoming", read(t, "invoice_upcoming_without_customer", nil), "stripe/self.test/sub_1QxSub.1764500000/", Options{}},
		{"T29 expanded", read(t, "customer_expanded", nil), "stripe/self.test/cus_QxExp/", Options{}},
		{"T29 deleted", read(t, "customer_deleted_object", nil), "stripe/self.test/cus_QxGone/", Options{}},
		{"T29 null", read(t, "checkout_completed", nil), "stripe/self.test/cs_test_a1/", Options{}},
		{"T38 deauthorised", read(t, "deauthorized", nil), "stripe/acct_1QxShop//", Options{}},
		{"request as a text", read(t, "old_request_text", nil), "stripe/self.test/cus_QxOld/", Options{}},
		{"of the account", read(t, "balance_available", nil), "stripe/self.test//", Options{}},
		{"a dispute", read(t, "dispute_created", nil), "stripe/self/dp_1QxDp/", Options{}},
		{"a charge", read(t, "charge_refunded", nil), "stripe/self.test/pi_3QxRef/", Options{}},
		{"a refund", read(t, "refund_updated", nil), "stripe/self.test/ch_3QxRef/", Options{}},
		{"by subscription", read(t, "invoice_payment_failed", nil), "stripe/self.test/sub_1QxSub/", Options{Thread: "subscription"}},
		{"by subscription, newer form", read(t, "invoice_newer_version", nil), "stripe/self.test/sub_1QxNew/", Options{Thread: "subscription"}},
		{"by invoice", read(t, "invoice_payment_failed", nil), "stripe/self.test/in_1QxPay/", Options{Thread: "invoice"}},
		{"by payment", read(t, "invoice_payment_failed", nil), "stripe/self.test/pi_3QxPay/", Options{Thread: "payment_intent"}},
		{"by dispute", read(t, "dispute_created", nil), "stripe/self/dp_1QxDp/", Options{Thread: "dispute"}},
		{"by object", read(t, "subscription_updated", nil), "stripe/self.test/sub_1QxSub/", Options{Thread: "object"}},
		{"by a template", read(t, "invoice_payment_failed", nil), "stripe/self.test/open%20cus_QxAnna/", Options{Thread: "{{.status}} {{.customer}}"}},
		{"by a template that gives too much", read(t, "invoice_payment_failed", nil), "stripe/self.test/in_1QxPay/", Options{Thread: `{{printf "%300s" .customer}}`}},
	} {
		if got := got(t, newChannel(t, tc.o), tc.body); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func received(t *testing.T, body string) chat.Event {
	t.Helper()
	in, err := newChannel(t, Options{}).Receive("webhook", sign(secret, []byte(body), now), []byte(body), now)
	if err != nil || len(in.Events) != 1 {
		t.Fatalf("%+v, %v", in, err)
	}
	return in.Events[0]
}

// T20: two events about one change are one, and two changes are two.
func TestSame(t *testing.T) {
	t.Parallel()
	first := received(t, event)
	if first.ID != "evt_1" || first.Same == "" {
		t.Fatalf("event %+v", first)
	}
	for name, tc := range map[string]struct {
		old, new string
		same     bool
	}{
		"another event of the change": {"evt_1", "evt_2", true},
		"another type":                {"invoice.paid", "invoice.updated", false},
		"another object":              {"in_1", "in_2", false},
		"another second":              {"1700000000", "1700000001", false},
		"another state":               {`"customer":"cus_1"`, `"customer":"cus_1","status":"paid"`, false},
		"test mode":                   {`"livemode":true`, `"livemode":false`, false},
		"keys in another order":       {`{"id":"in_1","object":"invoice"`, `{"object":"invoice","id":"in_1"`, true},
	} {
		if e := received(t, strings.Replace(event, tc.old, tc.new, 1)); (e.Same == first.Same) != tc.same {
			t.Errorf("%s: %s and %s", name, first.Same, e.Same)
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ amount, currency, want string }{
		{"129900", "eur", "1299.00 EUR"},
		{"5", "usd", "0.05 USD"},
		{"0", "usd", "0.00 USD"},
		{"-7", "usd", "-0.07 USD"},
		{"5000", "jpy", "5000 JPY"},
		{"1000", "kwd", "1.000 KWD"},
		{"12", "", "12"},
		{"1e9", "usd", ""},
		{"1.5", "usd", ""},
	} {
		if got := money(json.Number(tc.amount), tc.currency); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.amount, tc.currency, got, tc.want)
		}
	}
}
