package config_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/config"
)

var (
	token   = config.Var{Name: "SLACK_BOT_TOKEN", Doc: "The bot's token.", Secret: true, Example: "xoxb-1-2-abc"}
	signing = config.Var{Name: "SLACK_SIGNING_SECRET", Doc: "The signing secret.", Secret: true}
	listen  = config.Var{Name: "HEDDLE_LISTEN", Doc: "Where to listen.", Default: ":8080"}
)

// open reads a settings file with that text under an environment.
func open(t testing.TB, yaml string, env map[string]string) *config.Settings {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Open(path, lookup(env))
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "s3cr3t-value\n")
	long := file("long", strings.Repeat("a", 1<<20+1))
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
		err  string // part of the problem, "" for none
	}{
		"set":          {env: map[string]string{"SLACK_BOT_TOKEN": "s3cr3t-value"}, want: "s3cr3t-value"},
		"from a file":  {env: map[string]string{"SLACK_BOT_TOKEN_FILE": good}, want: "s3cr3t-value"},
		"one newline":  {env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("two", "s3cr3t-value\r\n\r\n")}, want: "s3cr3t-value\r\n"},
		"empty beside": {env: map[string]string{"SLACK_BOT_TOKEN_FILE": good, "SLACK_BOT_TOKEN": ""}, want: "s3cr3t-value"},
		"both":         {env: map[string]string{"SLACK_BOT_TOKEN_FILE": good, "SLACK_BOT_TOKEN": "other-value"}, want: "other-value", err: "SLACK_BOT_TOKEN: found both SLACK_BOT_TOKEN and SLACK_BOT_TOKEN_FILE; want one of them"},
		"no file":      {env: map[string]string{"SLACK_BOT_TOKEN_FILE": filepath.Join(dir, "none")}, err: "SLACK_BOT_TOKEN_FILE: found open"},
		"large file":   {env: map[string]string{"SLACK_BOT_TOKEN_FILE": long}, err: "more than 1048576 bytes"},
		"empty file":   {env: map[string]string{"SLACK_BOT_TOKEN_FILE": file("empty", "\n")}, err: "SLACK_BOT_TOKEN: found nothing (in the file"},
		"missing":      {err: "SLACK_BOT_TOKEN: found nothing (it is not set); want The bot's token. Example: xoxb-1-2-abc"},
		"empty":        {env: map[string]string{"SLACK_BOT_TOKEN": ""}, err: "SLACK_BOT_TOKEN: found nothing (it is empty)"},
		"placeholder":  {env: map[string]string{"SLACK_BOT_TOKEN": "xoxb-your-token"}, want: "xoxb-your-token", err: "SLACK_BOT_TOKEN: found a placeholder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := config.Open(os.DevNull, lookup(tt.env))
			if got := s.Need(token); got != tt.want {
				t.Errorf("Need = %q, want %q", got, tt.want)
			}
			err := text(s.Err())
			if (tt.err == "") != (err == "") || !strings.Contains(err, tt.err) {
				t.Errorf("Err = %q, want %q in it", err, tt.err)
			}
			if strings.Contains(err, "s3cr3t") || strings.Contains(err, "other-value") || strings.Contains(err, "xoxb-your") {
				t.Errorf("Err shows the secret: %q", err)
			}
		})
	}
}

func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for secret, bad := range map[string]bool{
		"changeme": true, "CHANGE_ME": true, "change-me!": true, "replace-me": true, "xxx": true, "XXXXXXXX": true,
		"xoxb-xxx": true, "xoxb-xxxx-xxxx": true, "your-signing-secret": true, "xoxb-your-token": true, "<token>": true,
		"TODO": true, "  ": true, "...": true, "****": true, "secret": true, "sk_live_xxx": true, "my-secret": true, "whsec_...": true,
		"8f742231b10e8888abcd99yyyzzz85a5": false, "xoxb-123-456-AbCdXxx": false, "sk-proj-xxA9yourfoo": false, "todo-list-7f": false,
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": false, "-----BEGIN RSA PRIVATE KEY-----\nMII": false,
	} {
		s := config.Open(os.DevNull, lookup(map[string]string{"SLACK_SIGNING_SECRET": secret}))
		s.Need(signing)
		if got := s.Err() != nil; got != bad {
			t.Errorf("Need of %q refused = %t, want %t (%v)", secret, got, bad, s.Err())
		}
	}
}

// A secret that nobody needs is no placeholder either, and showing it is no use of it.
func TestGetRefusesPlaceholders(t *testing.T) {
	t.Parallel()
	s := config.Open(os.DevNull, lookup(map[string]string{"SLACK_BOT_TOKEN": "xoxb-..."}))
	if s.Explain(token); s.Refused() != 0 {
		t.Errorf("Explain refused: %v", s.Err())
	}
	s.Get(token)
	s.Need(token)
	if got := text(s.Err()); s.Refused() != 1 || !strings.HasPrefix(got, "SLACK_BOT_TOKEN: found a placeholder; want ") {
		t.Errorf("Err = %q, want one problem", got)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	base := config.Var{Name: "BASE", Default: "https://api.test/v1"}
	const want = "; want an address such as https://host/path, without user and query"
	for value, found := range map[string]string{
		"": "", "http://127.0.0.1:8000": "", "https://h.test/a/v1/": "", "http://[::1]:80/v1": "",
		"h.test/v1": `"h.test/v1"`, "ftp://h.test": `"ftp://h.test"`, "http://": `"http://"`, "http://:80": `"http://:80"`,
		"https://h.test/v1?key=a": `"https://h.test/v1?key=a"`, "https://h.test/#a": `"https://h.test/#a"`, "http://h test": `"http://h test"`,
		"https://me:hidden@h.test/v1": `"https://[secret]@h.test/v1"`, "https://me:hid den@h.test": `"https://[secret]@h.test"`,
		"https://me:hid/den@h.test": `"https://[secret]@h.test"`, "me:hidden@h.test": `"[secret]@h.test"`,
	} {
		s := config.Open(os.DevNull, lookup(map[string]string{"BASE": value}))
		if got := s.URL(base); got != cmp.Or(value, base.Default) {
			t.Errorf("URL of %q = %q", value, got)
		}
		if got := text(s.Err()); found != "" && got != "BASE: found "+found+want || found == "" && got != "" {
			t.Errorf("%q: Err = %q, want %q found", value, got, found)
		}
		if got := s.Explain(base); strings.Contains(value, "://") && strings.Contains(got, "hid") {
			t.Errorf("Explain shows a password: %s", got)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	s := config.Open(os.DevNull, lookup(nil))
	s.Warn("BASE", "odd")
	s.Warn("BASE", "odd")
	if d := gocmp.Diff([]string{"BASE: odd"}, s.Warnings()); d != "" || s.Err() != nil {
		t.Errorf("Warnings (-want +got):\n%s, Err %v", d, s.Err())
	}
}

func TestNeedList(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		value string
		want  []string
		err   string
	}{
		"one":         {"aaaabbbb", []string{"aaaabbbb"}, ""},
		"two":         {"aaaabbbb, ccccdddd", []string{"aaaabbbb", "ccccdddd"}, ""},
		"empty":       {"", nil, "nothing (it is empty)"},
		"hole":        {"aaaabbbb,", []string{"aaaabbbb", ""}, "an empty element between commas"},
		"placeholder": {"aaaabbbb,changeme", []string{"aaaabbbb", "changeme"}, "a placeholder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := config.Open(os.DevNull, lookup(map[string]string{"SLACK_SIGNING_SECRET": tt.value}))
			if d := gocmp.Diff(tt.want, s.NeedList(signing)); d != "" {
				t.Errorf("NeedList (-want +got):\n%s", d)
			}
			if err := text(s.Err()); (tt.err == "") != (err == "") || !strings.Contains(err, tt.err) {
				t.Errorf("Err = %q, want %q in it", err, tt.err)
			}
			var out bytes.Buffer
			fmt.Fprint(s.Redact(&out), "got aaaabbbb ccccdddd")
			if strings.Contains(out.String(), "aaaabbbb") && tt.want != nil {
				t.Errorf("an element is not redacted: %q", out.String())
			}
		})
	}
}

func TestGetAndExplain(t *testing.T) {
	t.Parallel()
	s := config.Open(os.DevNull, lookup(map[string]string{"SLACK_BOT_TOKEN": "s3cr3t-value", "EMPTY": "", "PORT": "1"}))
	for _, tt := range []struct {
		v       config.Var
		value   string
		has     bool
		explain string
	}{
		{listen, ":8080", false, `":8080", default`},
		{config.Var{Name: "PORT"}, "1", true, `"1", from the environment`},
		{config.Var{Name: "EMPTY"}, "", true, "nothing (it is empty)"},
		{config.Var{Name: "EMPTY", Default: "x"}, "x", true, `"x", default`},
		{config.Var{Name: "NONE"}, "", false, "nothing (it is not set)"},
		{token, "s3cr3t-value", true, "set, 12 bytes, from the environment"},
	} {
		if got := s.Get(tt.v); got != tt.value {
			t.Errorf("Get(%s) = %q, want %q", tt.v.Name, got, tt.value)
		}
		if got := s.Has(tt.v); got != tt.has {
			t.Errorf("Has(%s) = %t, want %t", tt.v.Name, got, tt.has)
		}
		if got := s.Explain(tt.v); got != tt.explain {
			t.Errorf("Explain(%s) = %q, want %q", tt.v.Name, got, tt.explain)
		}
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err = %v, want none", err)
	}
}

type level uint8

func (l *level) UnmarshalText(b []byte) error {
	if string(b) != "low" && string(b) != "high" {
		return fmt.Errorf("level %q: want low or high", b)
	}
	*l = level(len(b))
	return nil
}

type rung struct {
	Name string        `yaml:"name"`
	For  time.Duration `yaml:"for" doc:"How long | it lasts."`
}

type section struct {
	rung
	Prompt string             `yaml:"prompt" doc:"A file."`
	Ladder []rung             `yaml:"ladder" doc:"Rungs, lowest first."`
	Day    float64            `yaml:"day"`
	Count  int                `yaml:"count"`
	On     []string           `yaml:"on"`
	Yes    bool               `yaml:"yes"`
	Level  level              `yaml:"level"`
	Maybe  *rung              `yaml:"maybe"`
	Named  map[string]float64 `yaml:"named"`
	Levels []level            `yaml:"levels"`
	Plain  string
}

func TestSection(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DAY": "2.5", "PROMPT": "a: b # c\n- d", "N": "7", "OPENAI_API_KEY": "k-123456789"}
	for name, tt := range map[string]struct {
		yaml string
		want section
		err  string // the whole text of Err
	}{
		"all": {
			yaml: "s:\n  name: top\n  prompt: \"p\"\n  ladder: [{name: a, for: 90s}, {name: b}]\n  day: 50\n  count: -3\n" +
				"  on: [x, 12]\n  yes: true\n  level: high\n  maybe: {name: m}\n  named: {a: 1, b: 2e1}\n  levels: [low]\n  plain: |\n    two\n    lines\n",
			want: section{
				rung: rung{Name: "top"}, Prompt: "p", Ladder: []rung{{Name: "a", For: 90 * time.Second}, {Name: "b"}}, Day: 50, Count: -3,
				On: []string{"x", "12"}, Yes: true, Level: 4, Maybe: &rung{Name: "m"}, Named: map[string]float64{"a": 1, "b": 20}, Levels: []level{3}, Plain: "two\nlines\n",
			},
		},
		"nothing":          {yaml: "", want: section{Day: 9}},
		"comments only":    {yaml: "# none\n", want: section{Day: 9}},
		"empty section":    {yaml: "s:\n", want: section{Day: 9}},
		"null keeps":       {yaml: "s: {day: null}", want: section{Day: 9}},
		"default kept":     {yaml: "s: {count: 1}", want: section{Day: 9, Count: 1}},
		"list of one":      {yaml: "s: {on: x, levels: low}", want: section{Day: 9, On: []string{"x"}, Levels: []level{3}}},
		"expanded":         {yaml: "s: {day: '${DAY}', prompt: \"<${PROMPT}> $$5 ${NO:-none}\", count: '${N}'}", want: section{Day: 2.5, Prompt: "<a: b # c\n- d> $5 none", Count: 7}},
		"unset":            {yaml: "s:\n  prompt: x ${NO} y\n", want: section{Day: 9}, err: "gateway.yaml:2:3: s.prompt: found ${NO}, which is not set; want text"},
		"unknown key":      {yaml: "s:\n  maybe:\n    naem: x\n", want: section{Day: 9, Maybe: &rung{}}, err: "gateway.yaml:3:5: s.maybe.naem: found an unknown key; want one of name, for"},
		"unknown section":  {yaml: "modles: {}\ns: {count: 1}", want: section{Day: 9, Count: 1}, err: "gateway.yaml:1:1: modles: found an unknown section; want one of s"},
		"text for number":  {yaml: "s: {day: much}", want: section{Day: 9}, err: `gateway.yaml:1:5: s.day: found "much"; want a number`},
		"not finite":       {yaml: "s: {day: .inf}", want: section{Day: 9}, err: `gateway.yaml:1:5: s.day: found ".inf"; want a number`},
		"bad duration":     {yaml: "s: {for: 90}", want: section{Day: 9}, err: `gateway.yaml:1:5: s.for: found "90"; want a duration such as 90s or 1h`},
		"list for text":    {yaml: "s: {prompt: [a]}", want: section{Day: 9}, err: "gateway.yaml:1:5: s.prompt: found a list; want text"},
		"text for mapping": {yaml: "s: {maybe: a}", want: section{Day: 9, Maybe: &rung{}}, err: `gateway.yaml:1:5: s.maybe: found "a"; want a mapping`},
		"mapping for list": {yaml: "s: {on: {a: b}}", want: section{Day: 9}, err: "gateway.yaml:1:5: s.on: found a mapping; want a list"},
		"bool for text":    {yaml: "s: {prompt: true}", want: section{Day: 9}, err: `gateway.yaml:1:5: s.prompt: found "true"; want text`},
		"too large":        {yaml: "s: {count: 99999999999999999999}", want: section{Day: 9}, err: `gateway.yaml:1:5: s.count: found "99999999999999999999"; want a whole number`},
		"bad level":        {yaml: "s: {level: middle}", want: section{Day: 9}, err: `gateway.yaml:1:5: s.level: found "middle"; want low or high`},
		"hidden value":     {yaml: "s: {level: '${OPENAI_API_KEY}', day: '${OPENAI_API_KEY}'}", want: section{Day: 9}, err: "gateway.yaml:1:5: s.level: found \"${OPENAI_API_KEY}\"; want a level\ngateway.yaml:1:33: s.day: found \"${OPENAI_API_KEY}\"; want a number"},
		"anchor":           {yaml: "s:\n  prompt: &a x\n", want: section{Day: 9}, err: "gateway.yaml:2:3: s.prompt: found an anchor, alias, merge or tag; want plain YAML"},
		"two at once":      {yaml: "s: {on: {}, yes: 1}", want: section{Day: 9}, err: "gateway.yaml:1:5: s.on: found a mapping; want a list\ngateway.yaml:1:13: s.yes: found \"1\"; want true or false"},
		"list at the top":  {yaml: "- a\n", want: section{Day: 9}, err: "GATEWAY: found something else; want one document of sections, such as \"models:\""},
		"two documents":    {yaml: "s: {}\n---\ns: {}\n", want: section{Day: 9}, err: "GATEWAY: found something else; want one document of sections, such as \"models:\""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, tt.yaml, env)
			got := section{Day: 9}
			s.Section("s", &got)
			if d := gocmp.Diff(tt.want, got, gocmp.AllowUnexported(section{})); d != "" {
				t.Errorf("Section (-want +got):\n%s", d)
			}
			if d := gocmp.Diff(strings.ReplaceAll(tt.err, "GATEWAY", s.Path()), text(s.Err())); d != "" {
				t.Errorf("Err (-want +got):\n%s", d)
			}
		})
	}
}

func TestSyntaxErrorsHaveAPosition(t *testing.T) {
	t.Parallel()
	for _, yaml := range []string{"a: [1\nb: 2\n", "a: 1\na: 2\n", "a: \"x\n", "a:\n\t- x\n", "a: b: c\n"} {
		s := open(t, yaml, nil)
		var ps config.Problems
		if err := s.Err(); !errors.As(err, &ps) || len(ps) != 1 || !strings.HasPrefix(ps[0].At, "gateway.yaml:") {
			t.Errorf("%q: Err = %v, want one problem with a position", yaml, err)
		}
	}
}

func TestRefuseKnowsTheLine(t *testing.T) {
	t.Parallel()
	s := open(t, "agents:\n  a:\n    ladder:\n      - {name: x}\n      - name: y\n", nil)
	var into map[string]section
	if !s.Section("agents", &into) || s.Section("models", &into) {
		t.Fatal("Section says wrongly what the file has")
	}
	for range 2 { // said once
		s.Refuse("agents.a.ladder[1].name", `"y"`, "another name")
		s.Refuse("agents.a.ladder[1]", "a rung", "none")
	}
	want := "gateway.yaml:5:9: agents.a.ladder[1].name: found \"y\"; want another name\n" +
		"gateway.yaml:5:9: agents.a.ladder[1]: found a rung; want none"
	if d := gocmp.Diff(want, text(s.Err())); d != "" {
		t.Errorf("Err (-want +got):\n%s", d)
	}
}

func TestWhichFile(t *testing.T) { // changes the working directory, so not parallel
	t.Chdir(t.TempDir())
	if s := config.Open("", lookup(nil)); s.Path() != "" || s.Err() != nil {
		t.Errorf("without file: path %q, err %v", s.Path(), s.Err())
	}
	for _, name := range []string{"gateway.yaml", "other.yaml"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := map[string]string{"HEDDLE_CONFIG": "other.yaml"}
	for _, tt := range []struct {
		path string
		env  map[string]string
		want string
	}{{"", nil, "gateway.yaml"}, {"", env, "other.yaml"}, {"gateway.yaml", env, "gateway.yaml"}} {
		if s := config.Open(tt.path, lookup(tt.env)); s.Path() != tt.want || s.Err() != nil {
			t.Errorf("Open(%q) under %v: path %q, err %v, want %q", tt.path, tt.env, s.Path(), s.Err(), tt.want)
		}
	}
	if s := config.Open("none.yaml", lookup(nil)); s.Err() == nil {
		t.Error("a named file that does not exist is accepted")
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": `q"uo<te/+`,
		"LONG_KEY": "xoxb-1-and-more", "PEM": "-----BEGIN KEY-----\nMIIabc\n", "SHORT": "ab",
	}
	s := open(t, "s: {prompt: '${LONG_KEY}'}", secrets)
	for _, name := range []string{"SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "PEM", "SHORT"} {
		s.Get(config.Var{Name: name, Secret: true})
	}
	var into section
	s.Section("s", &into)
	var out bytes.Buffer
	w := s.Redact(&out)
	for _, h := range []slog.Handler{slog.NewJSONHandler(w, nil), slog.NewTextHandler(w, nil)} {
		log := slog.New(h).With("with", secrets["PEM"])
		log.Info("get https://x/?t=q%22uo%3Cte%2F%2B", "a", secrets["LONG_KEY"], slog.Group("g", "b", secrets["SLACK_SIGNING_SECRET"]),
			"err", fmt.Errorf("post %s: refused", secrets["SLACK_BOT_TOKEN"]), "fine", "about")
	}
	for _, leak := range []string{"xoxb", "and-more", "MIIabc", "BEGIN KEY", "te/+", "te%2F"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q is in the log:\n%s", leak, out.String())
		}
	}
	if n := strings.Count(out.String(), "fine") + strings.Count(out.String(), "about"); n != 4 {
		t.Errorf("harmless words are gone:\n%s", out.String())
	}
}

// What stands in the file itself under the name of a secret is not shown either.
func TestRedactKeysOfTheFile(t *testing.T) {
	t.Parallel()
	s := open(t, "servers:\n  docs:\n    headers: {Authorization: Bearer tell-nobody, X-Api-Key: hush-hush, Accept: text/plain}\n    monkey: {a: banana}\n", nil)
	var into map[string]map[string]map[string]string
	if !s.Section("servers", &into) || s.Err() != nil {
		t.Fatal(s.Err())
	}
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(s.Redact(&out), nil)).Info("sent Bearer tell-nobody", "b", "tell-nobody", "c", "hush-hush", "d", "text/plain", "e", "banana")
	if text := out.String(); strings.Contains(text, "nobody") || strings.Contains(text, "hush") || !strings.Contains(text, "text/plain") || !strings.Contains(text, "banana") {
		t.Errorf("logged %s", text)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	err := config.Markdown(&b, []config.Group{
		{Title: "Slack", Vars: []config.Var{token, listen}},
		{Title: "Agents", Doc: "Who answers.", Section: "agents", Type: map[string]section{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| `SLACK_BOT_TOKEN` | The bot's token. **Secret.** |  | `xoxb-1-2-abc` |",
		"| `HEDDLE_LISTEN` | Where to listen. | `:8080` |  |",
		"| `agents.NAME.prompt` | text | A file. |",
		"| `agents.NAME.ladder` | a list | Rungs, lowest first. |",
		"| `agents.NAME.ladder[].for` | a duration such as 90s or 1h | How long \\| it lasts. |",
		"| `agents.NAME.levels[]` | a level |  |",
		"| `agents.NAME.named.NAME` | a number |  |",
	} {
		if !strings.Contains(b.String(), line+"\n") {
			t.Errorf("no line %s in\n%s", line, b.String())
		}
	}
}
