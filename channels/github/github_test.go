package github

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/channeltest"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/github"
)

const secret = "webhook-secret-" + channeltest.Canary

// keys is a hub whose key all tests may use: making one takes time.
var keys = fake.New(fake.Options{})

func sign(secret, event string, body []byte) http.Header {
	h := fake.New(fake.Options{Secret: secret}).Sign(event, body).Header
	h.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	return h
}

func harness(app bool) channeltest.Harness {
	good := `{"action":"created","issue":{"id":1,"node_id":"I_1","number":1,"title":"t","user":{"id":77,"login":"p"}},` +
		`"comment":{"id":2,"node_id":"IC_2","user":{"id":77,"login":"p"},"body":"@heddle ` + channeltest.Canary + `"},` +
		`"repository":{"id":5,"full_name":"fake/repo"},"sender":{"id":77,"login":"p"}}`
	refused := func(status int, message string, want channels.Verdict) channeltest.Answer {
		return channeltest.Answer{Name: fmt.Sprint(status, " ", message), Status: status, Body: `{"message":"` + message + `"}`, Want: want}
	}
	limited := func(status int, message string, h http.Header, after time.Duration) channeltest.Answer {
		return channeltest.Answer{Name: fmt.Sprint(status, " ", message, h), Status: status, Header: h, Body: `{"message":"` + message + `"}`, Want: channels.Limited, RetryAfter: after}
	}
	unauthorized := channels.Rejected
	if app {
		unauthorized = channels.NotMade // another token may do
	}
	return channeltest.Harness{
		New: func(t testing.TB, apiURL string) channeltest.Channel {
			o := Options{WebhookSecrets: []string{secret}, Token: "github_pat_" + channeltest.Canary, APIURL: apiURL}
			if app {
				o.Token, o.AppID, o.PrivateKey = "", "7", keys.PrivateKey()
			}
			return known(newChannel(t, o))
		},
		Route: routeWebhook, Payloads: "testdata", Good: []byte(good), Signed: []string{"X-Hub-Signature-256"}, AnyCase: true,
		Sign: func(body []byte, _ time.Time) http.Header { return sign(secret, eventOf(body), body) },
		Post: chat.Post{Key: "t/1/0", Thread: chat.Thread{Channel: Name, Account: "5", Room: "issue:1"}, Text: channeltest.Canary},
		Aside: func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.HasSuffix(r.URL.Path, "/installation"):
				fmt.Fprint(w, `{"id":9}`)
			case strings.HasSuffix(r.URL.Path, "/access_tokens"):
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, `{"token":"ghs_%s","expires_at":%q}`, channeltest.Canary, time.Now().Add(time.Hour).Format(time.RFC3339))
			case strings.HasSuffix(r.URL.Path, "/repositories/5"):
				fmt.Fprint(w, `{"full_name":"fake/repo"}`)
			default:
				return false
			}
			return true
		},
		Accept: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"id":3,"node_id":"IC_3"}`)
		},
		Ref: "IC_3", PartLimit: 65_000, PartSize: utf8.RuneCountInString,
		Live: func(p string) (string, bool) {
			shown := strings.ReplaceAll(p, `\<`, "")
			for _, s := range []string{"@everyone", "@here", "@U0BOSS", "<script", "](javascript", "](<javascript", "![", "<!--"} {
				if strings.Contains(shown, s) {
					return s, true
				}
			}
			return "", false
		},
		Answers: []channeltest.Answer{
			limited(429, "slow down", nil, slow),
			limited(429, "slow down", http.Header{"Retry-After": {"2"}}, 2*time.Second),
			limited(403, "You have exceeded a secondary rate limit.", nil, slow),
			limited(403, "You have exceeded a secondary rate limit.", http.Header{"Retry-After": {"7"}}, 7*time.Second),
			limited(403, "You have triggered an abuse detection mechanism.", nil, slow),
			limited(403, "API rate limit exceeded", http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"}}, time.Second),
			refused(401, "Bad credentials", unauthorized),
			refused(403, "Resource not accessible by integration", channels.Rejected),
			refused(403, "Unable to create comment because issue is locked.", channels.Rejected),
			refused(404, "Not Found", channels.Rejected),
			refused(410, "Issues are disabled for this repo", channels.Rejected),
			refused(422, "Body is too long (maximum is 65536 characters)", channels.Rejected),
			refused(451, "Repository access blocked", channels.Rejected),
			refused(502, "Server Error", channels.Unknown),
			refused(202, "", channels.Unknown),
		},
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	channeltest.Run(t, harness(true))
}

func TestSuiteWithToken(t *testing.T) {
	t.Parallel()
	channeltest.Run(t, harness(false))
}

func FuzzReceive(f *testing.F) { channeltest.Fuzz(f, harness(true)) }

func newChannel(t testing.TB, o Options) *Channel {
	t.Helper()
	if o.WebhookSecrets == nil {
		o.WebhookSecrets = []string{"fake-webhook-secret"}
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// known tells a channel who it is.
func known(c *Channel) *Channel {
	c.self.Store(&identity{Slug: "heddle", User: 7000})
	return c
}

// All of the examples that GitHub's own tools are tested with are taken or ignored with a reason.
func TestOctokitExamples(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/octokit/examples.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	c := known(newChannel(t, Options{AppID: "7", PrivateKey: keys.PrivateKey()}))
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	n, topics, reasons := 0, map[string]int{}, map[string]int{}
	for lines.Scan() {
		var x struct {
			Event string
			Body  json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		n++
		in, err := c.Receive(routeWebhook, sign("fake-webhook-secret", x.Event, x.Body), x.Body, time.Time{})
		if err != nil || len(in.Events)+len(in.Ignored) == 0 {
			t.Errorf("example %d, %s: %d events, %v", n, x.Event, len(in.Events), err)
		}
		for _, e := range in.Events {
			topics[e.Topic]++
			if e.At.IsZero() && e.Kind != chat.Action || e.Facts["repository"] == "" || !strings.HasPrefix(e.ID, "72d3162e") {
				t.Errorf("example %d, %s: %+v", n, x.Event, e)
			}
		}
		for _, i := range in.Ignored {
			reasons[i.Reason]++
		}
	}
	if err := lines.Err(); err != nil || n != 329 {
		t.Fatalf("%d examples, want 329 (%v)", n, err)
	}
	got, err := json.MarshalIndent(map[string]any{"topics": topics, "ignored": reasons}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/octokit/outcome.golden")
	if err != nil || !bytes.Equal(bytes.TrimSpace(want), got) {
		t.Errorf("outcome %v: %s\n%s", err, cmp.Diff(string(bytes.TrimSpace(want)), string(got)), got)
	}
}

func TestMention(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"@heddle look":                      "look",
		"@HEDDLE: look":                     "look",
		"@heddle[bot], look":                "look",
		"hey @heddle look":                  "hey look",
		"hey @heddle":                       "hey",
		"thanks @heddle, again":             "thanks, again",
		"(@heddle)":                         "()",
		"a\n@heddle b":                      "a\nb",
		"@heddle":                           "",
		"@heddle. And more":                 ". And more",
		"@heddle.":                          ".",
		"- @heddle x":                       "- x",
		"**@heddle** x":                     "**** x",
		"<!-- a --> @heddle x":              "<!-- a --> x",
		"```\n@heddle\n```\n@heddle y":      "```\n@heddle\n```\ny",
		"````\n```\n@heddle\n````\n@heddle": "````\n```\n@heddle\n````\n",
		"`` ` @heddle `` @heddle":           "`` ` @heddle ``",
		"one ` tick @heddle":                "one ` tick",
		// none
		"heddle look":         "-",
		"x@heddle.com":        "-",
		"@heddle-other":       "-",
		"@heddles":            "-",
		"@heddle/team":        "-",
		"@org/heddle":         "-",
		"a/@heddle":           "-",
		"\\@heddle":           "-",
		"`@heddle`":           "-",
		"~~~\n@heddle\n~~~":   "-",
		"```\n@heddle":        "-",
		"> @heddle said":      "-",
		" > @heddle said":     "-",
		"    @heddle in code": "-",
		"<!-- @heddle -->":    "-",
		"<!--\n@heddle\n-->":  "-",
		"@@heddle":            "-",
		"é@heddle":            "-",
		"@heddle_x":           "-",
		"":                    "-",
	} {
		rest, found := mention(in, "heddle")
		if !found {
			rest = "-"
		}
		if rest != want {
			t.Errorf("%q: %q, want %q", in, rest, want)
		}
	}
	if _, found := mention("@ x", ""); found {
		t.Error("a mention of nobody")
	}
}

func FuzzMention(f *testing.F) {
	for _, s := range []string{"@heddle x", "`@heddle", "> @heddle", "<!-- @heddle", "```\n@heddle"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rest, found := mention(s, "heddle")
		if !found && rest != s || found && len(rest) >= len(s) || utf8.ValidString(s) && !utf8.ValidString(rest) {
			t.Errorf("mention(%q) = %q, %v", s, rest, found)
		}
	})
}

// Keys never change over versions: conversations are found by them.
func TestThreadKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		spot spot
		room string
		root string
		key  string
	}{
		{spot{kind: kindIssue, number: 7}, "issue:7", "", "github/5/issue:7/"},
		{spot{kind: kindPull, number: 8}, "pr:8", "", "github/5/pr:8/"},
		{spot{kind: kindPull, number: 8, root: 30}, "pr:8", "30", "github/5/pr:8/30"},
		{spot{kind: kindDiscussion, number: 9}, "discussion:9", "", "github/5/discussion:9/"},
		{spot{kind: kindDiscussion, number: 9, root: 40}, "discussion:9", "40", "github/5/discussion:9/40"},
		{spot{kind: kindCommit, sha: strings.Repeat("b", 40)}, "commit:" + strings.Repeat("b", 40), "", "github/5/commit:" + strings.Repeat("b", 40) + "/"},
	} {
		th := chat.Thread{Channel: Name, Account: "5", Room: tc.room, Root: tc.root}
		if got, ok := spotOf(th); !ok || got != tc.spot || th.Key() != tc.key {
			t.Errorf("%s: %+v %v, key %s", tc.room, got, ok, th.Key())
		}
	}
	for _, room := range []string{"", "7", "issue:", "issue:0", "issue:-1", "issue:x", "wiki:7", "commit:xyz", "issue:7:8"} {
		if s, ok := spotOf(chat.Thread{Channel: Name, Account: "5", Room: room}); ok {
			t.Errorf("%q is %+v", room, s)
		}
	}
	for _, root := range []string{"x", "0", "-3"} {
		if s, ok := spotOf(chat.Thread{Channel: Name, Account: "5", Room: "pr:8", Root: root}); ok {
			t.Errorf("root %q is %+v", root, s)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	good := Options{WebhookSecrets: []string{"8f742231b10e8888abcd99yyyzzz85a5"}, AppID: "7", PrivateKey: keys.PrivateKey()}
	for _, tc := range []struct {
		name, want string
		change     func(*Options)
	}{
		{"good", "", func(*Options) {}},
		{"G05 no secret", "GITHUB_WEBHOOK_SECRET", func(o *Options) { o.WebhookSecrets = nil }},
		{"G05 empty secret", "GITHUB_WEBHOOK_SECRET", func(o *Options) { o.WebhookSecrets = []string{"8f742231b10e8888", ""} }},
		{"placeholder", "GITHUB_WEBHOOK_SECRET", func(o *Options) { o.WebhookSecrets = []string{"changeme"} }},
		{"no credentials", "GITHUB_APP_ID", func(o *Options) { o.AppID, o.PrivateKey = "", "" }},
		{"client id", "GITHUB_APP_ID", func(o *Options) { o.AppID = "Iv1.abc" }},
		{"no key", "GITHUB_APP_PRIVATE_KEY", func(o *Options) { o.PrivateKey = "" }},
		{"no PEM", "GITHUB_APP_PRIVATE_KEY", func(o *Options) { o.PrivateKey = "MIIEvQ" }},
		{"public key", "GITHUB_APP_PRIVATE_KEY", func(o *Options) { o.PrivateKey = "-----BEGIN PUBLIC KEY-----\nMFww\n-----END PUBLIC KEY-----" }},
		{"key without lines", "", func(o *Options) { o.PrivateKey = strings.ReplaceAll(o.PrivateKey, "\n", `\n`) }},
		{"both", "GITHUB_TOKEN", func(o *Options) { o.Token = "github_pat_x1" }},
		{"token", "", func(o *Options) { o.AppID, o.PrivateKey, o.Token = "", "", "github_pat_x1" }},
		{"token placeholder", "GITHUB_TOKEN", func(o *Options) { o.AppID, o.PrivateKey, o.Token = "", "", "changeme" }},
		{"address", "GITHUB_API_URL", func(o *Options) { o.APIURL = "github.com" }},
		{"address with user", "GITHUB_API_URL", func(o *Options) { o.APIURL = "https://u:p@ghe.test/api/v3" }},
		{"pace", "GITHUB_WRITE_EVERY", func(o *Options) { o.WriteEvery = -time.Second }},
		{"permission", "access.github.members", func(o *Options) { o.Access.Members = "push" }},
		{"maintainers", "access.github.maintainers", func(o *Options) { o.Access.Maintainers = "all" }},
		{"login for an id", "access.github.admins", func(o *Options) { o.Access.Admins = []string{"anna"} }},
		{"access", "", func(o *Options) { o.Access = Access{Members: "triage", Maintainers: "admin", Admins: []string{"77"}} }},
	} {
		o := good
		tc.change(&o)
		_, err := New(o)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}

// G40: where REST and GraphQL are, on github.com and on servers of one's own.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][2]string{
		"":                          {"https://api.github.com/", "https://api.github.com/graphql"},
		"https://api.github.com":    {"https://api.github.com/", "https://api.github.com/graphql"},
		"https://api.acme.ghe.com/": {"https://api.acme.ghe.com/", "https://api.acme.ghe.com/graphql"},
		"https://ghe.test":          {"https://ghe.test/api/v3/", "https://ghe.test/api/graphql"},
		"https://ghe.test/api/v3":   {"https://ghe.test/api/v3/", "https://ghe.test/api/graphql"},
		"http://127.0.0.1:1/github": {"http://127.0.0.1:1/github/", "http://127.0.0.1:1/github/graphql"},
	} {
		u, g, err := endpoint(in)
		if err != nil || u.String() != want[0] || g != want[1] {
			t.Errorf("%q: %v %q, %v", in, u, g, err)
		}
	}
}
