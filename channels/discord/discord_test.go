package discord

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Ids of the payloads.
const (
	app    = "900000000000000001"
	bot    = "900000000000000002"
	guild  = "100000000000000001"
	anna   = "300000000000000001"
	person = `"member":{"user":{"id":"` + anna + `","username":"anna"},"roles":[]}`
)

func keyOf(seed string) (ed25519.PrivateKey, string) {
	sum := sha256.Sum256([]byte(seed))
	k := ed25519.NewKeyFromSeed(sum[:])
	return k, hex.EncodeToString(k.Public().(ed25519.PublicKey))
}

func sign(seed string, body []byte, at time.Time) http.Header {
	return fake.New(fake.Options{Seed: seed, Clock: func() time.Time { return at }}).Sign(body).Header
}

func harness() channeltest.Harness {
	good := `{"id":"1300000000000000001","application_id":"` + app + `","type":2,"token":"t","channel_id":"200","guild_id":"` + guild + `",` + person +
		`,"channel":{"id":"200","type":0},"data":{"name":"agent","options":[{"name":"ask","type":1,"options":[{"name":"text","type":3,"value":"` + channeltest.Canary + `"}]}]}}`
	answer := func(status, code int, want channels.Verdict) channeltest.Answer {
		return channeltest.Answer{
			Name: fmt.Sprint(status, " ", code), Status: status, Want: want,
			Body: fmt.Sprintf(`{"code":%d,"message":"%s"}`, code, channeltest.Canary),
		}
	}
	limited := func(name, body string, h http.Header, after time.Duration) channeltest.Answer {
		return channeltest.Answer{Name: name, Status: 429, Header: h, Body: body, Want: channels.Limited, RetryAfter: after}
	}
	h := channeltest.Harness{
		New: func(t testing.TB, apiURL string) channeltest.Channel {
			_, public := keyOf("key")
			c, err := New(Options{BotToken: "token-" + channeltest.Canary, ApplicationID: app, PublicKey: public, APIURL: apiURL})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Route:  "interactions",
		Sign:   func(body []byte, at time.Time) http.Header { return sign("key", body, at) },
		Signed: []string{"X-Signature-Ed25519", "X-Signature-Timestamp"},
		Window: 5 * time.Minute, Good: []byte(good), Payloads: "testdata",
		Post:   chat.Post{Key: "t/1/0", Thread: chat.Thread{Channel: Name, Account: direct, Room: "201"}, Text: channeltest.Canary},
		Accept: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"id":"1400","channel_id":"201"}`) },
		Ref:    "1400", PartLimit: 2000, PartSize: utf8.RuneCountInString,
		Live: func(p string) (string, bool) {
			for _, s := range []string{"<@", "<#", "@everyone", "@here", "](javascript", "<script"} {
				if i := strings.Index(p, s); i >= 0 && (i == 0 || p[i-1] != '\\') {
					return s, true
				}
			}
			return "", false
		},
		Answers: []channeltest.Answer{
			limited("limited without a time", "", nil, defaultRetryAfter),
			limited("limited with an odd time", `{"retry_after":"soon"}`, http.Header{"Retry-After": {"soon"}}, defaultRetryAfter),
			limited("limited for a negative time", `{"retry_after":-3}`, nil, defaultRetryAfter),
			limited("limited for parts of a second", `{"retry_after":1.5,"global":false}`, http.Header{"Retry-After": {"2"}}, 1500*time.Millisecond),
			limited("limited everywhere", `{"retry_after":0.25,"global":true}`, http.Header{"X-Ratelimit-Global": {"true"}}, 250*time.Millisecond),
			limited("limited by a proxy", "<html>"+channeltest.Canary, http.Header{"Retry-After": {"7"}}, 7*time.Second),
			answer(400, 20016, channels.Limited),
			answer(400, 40004, channels.NotMade),
			answer(503, 130000, channels.Unknown),
			answer(502, 0, channels.Unknown),
		},
	}
	for _, code := range []int{0, 10003, 10004, 10008, 10013, 20012, 30001, 40001, 40005, 50001, 50006, 50007, 50008, 50013, 50024, 50035, 50045, 50083, 160002, 160005, 160006, 999999} {
		for _, status := range []int{400, 401, 403, 404} {
			h.Answers = append(h.Answers, answer(status, code, channels.Rejected))
		}
	}
	return h
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Run(t, harness())
}

func FuzzReceive(f *testing.F) { channeltest.Fuzz(f, harness()) }

// The vector was computed by another implementation of Ed25519.
func testVector(t *testing.T) {
	t.Parallel()
	c, err := New(Options{BotToken: "token-5e1d", PublicKey: "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"})
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	h.Set("x-signature-ed25519", "c1098e97d711377f30225d53d94b89d43537f92e5b3afaddc590781b1f9f9d4b2eeab335d370be3b9a090bc61a85b86448bc140dcd195f1569c2bff181257607")
	h.Set("x-signature-timestamp", "1700000000")
	in, err := c.Receive("interactions", h, []byte(`{"type":1}`), time.Unix(1700000000, 0))
	if err != nil || string(in.Reply) != `{"type":1}` || in.ReplyType != "application/json" || len(in.Events) != 0 {
		t.Errorf("%+v, error %v", in, err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	_, public := keyOf("k")
	good := Options{BotToken: "MTIz.abcdef.ghijkl", ApplicationID: app, PublicKey: public}
	for _, tc := range []struct {
		name, want string
		change     func(*Options)
	}{
		{"good", "", func(*Options) {}},
		{"without interactions over HTTP", "", func(o *Options) { o.PublicKey, o.ApplicationID = "", "" }},
		{"no token", "DISCORD_BOT_TOKEN", func(o *Options) { o.BotToken = "" }},
		{"placeholder", "DISCORD_BOT_TOKEN", func(o *Options) { o.BotToken = "your-bot-token" }},
		{"unset variable", "DISCORD_BOT_TOKEN", func(o *Options) { o.BotToken = "${DISCORD_BOT_TOKEN}" }},
		{"blank", "DISCORD_BOT_TOKEN", func(o *Options) { o.BotToken += " " }},
		{"name of the application", "DISCORD_APPLICATION_ID", func(o *Options) { o.ApplicationID = "heddle" }},
		{"short key", "DISCORD_PUBLIC_KEY", func(o *Options) { o.PublicKey = public[2:] }},
		{"odd key", "DISCORD_PUBLIC_KEY", func(o *Options) { o.PublicKey = strings.Repeat("x", 64) }},
		{"address", "DISCORD_API_URL", func(o *Options) { o.APIURL = "localhost:9900/api" }},
		{"all maintainers", "access.discord.maintainers", func(o *Options) { o.Access.Maintainers = []string{"all"} }},
		{"name for an id", "access.discord.members", func(o *Options) { o.Access.Members = []string{"@everyone"} }},
		{"ids", "", func(o *Options) {
			o.Access = Access{Members: []string{"all", "1"}, Maintainers: []string{"2"}, Admins: []string{"3"}}
		}},
	} {
		o := good
		tc.change(&o)
		_, err := New(o)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if err != nil && len(o.BotToken) > 3 && strings.Contains(err.Error(), o.BotToken) {
			t.Errorf("%s: error shows the token: %v", tc.name, err)
		}
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" plain ":                          "plain",
		"<@1> hi":                          "hi",
		"<@!1>, hi":                        "hi",
		"<@&7>: hi":                        "hi",
		"hey <@1> you":                     "hey you",
		"ask <@1>":                         "ask",
		"thanks <@1>, again":               "thanks, again",
		"<@1>":                             "",
		"<@1> <@2> <@!3> <@&4>":            "@2 @3 @4",
		"in <#5>, by </agent ask:6>":       "in #5, by /agent ask",
		"<:ok:8> <a:spin:9>":               ":ok: :spin:",
		"at <t:1700000000:R>":              "at 2023-11-14 22:13 UTC",
		"at <t:99999999999999999:R>":       "at 99999999999999999",
		"see <id:browse>":                  "see #browse",
		"a < b > c, <https://x.test>, <b>": "a < b > c, <https://x.test>, <b>",
		"**bold** `<@1>`":                  "**bold** ``",
		"a\xffb":                           "a\uFFFDb",
		"":                                 "",
	} {
		if d := cmp.Diff(want, markdown(in, "1", "7")); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

func TestAddressed(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<@2> look": "2", " <@!2>, look": "2", "<@1> <@2>": "1", "look <@2>": "", "<@&7> look": "", "<#5> look": "", "": "",
	} {
		if got := addressed(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"<@1> <a|b>", "<", "<>", "<@>", "<t:>", "<a:b:c>", "<@1", "</x:1><#>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if out := markdown(s, "1", "7"); !utf8.ValidString(out) {
			t.Errorf("markdown(%q) = %q", s, out)
		}
	})
}
