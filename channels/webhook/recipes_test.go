package webhook

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/config"
)

// recipes are the sources of the guide, as it stands there.
func recipes(t *testing.T) map[string]Settings {
	t.Helper()
	guide, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "## Recipes")
	_, after, _ = strings.Cut(after, "```yaml\n")
	yaml, _, ok := strings.Cut(after, "\n```")
	if !ok {
		t.Fatal("the guide has no recipes")
	}
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s := config.Open(path, func(name string) (string, bool) {
		switch name {
		case "CLERK_SECRET", "OPENAI_WEBHOOK_SECRET":
			sender, _, _ := strings.Cut(strings.ToLower(name), "_")
			return "whsec_" + base64.StdEncoding.EncodeToString([]byte(sender+"-secret-of-24-bytes-or-more")), true
		}
		sender, ok := strings.CutSuffix(name, "_SECRET")
		return strings.ToLower(sender) + "-secret-5e1d77aa", ok
	})
	var m map[string]Settings
	s.Section(Section, &m)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRecipes sends each source of the guide what its sender sends: headers and
// body in testdata/recipes, signed by other code than ours.
func TestRecipes(t *testing.T) {
	t.Parallel()
	settings := recipes(t)
	c, err := New(settings)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][3]string{}
	for name := range settings {
		request, err := os.ReadFile("testdata/recipes/" + name + ".http")
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(bytes.NewReader(request))
		header, err := textproto.NewReader(r).ReadMIMEHeader()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		in, err := c.Receive(name, http.Header(header), body, time.Unix(1764500000, 0))
		if err != nil || len(in.Events) != 1 {
			t.Errorf("%s: %+v, %v", name, in, err)
			continue
		}
		e := in.Events[0]
		got[name] = [3]string{e.Thread.Room, e.Text, ""}
		if id := strings.TrimPrefix(e.ID, name+"/"); len(id) != 32 { // else it is the content
			got[name] = [3]string{e.Thread.Room, e.Text, id}
		}
		if in, err := c.Receive(name, http.Header(header), append(body, ' '), time.Unix(1764500000, 0)); err == nil || len(in.Events) > 0 {
			t.Errorf("%s: a changed body was taken", name)
		}
	}
	want := map[string][3]string{
		"linear":       {"2174add1", "Issue create: Login fails https://linear.app/acme/issue/ENG-42", "000042e3/1764500000000"},
		"sentry":       {"1170820242", "Issue created: ReferenceError: x is not defined (WEB-1)", ""},
		"shopify":      {"820982911946154508", "Order #9999 for 414.95 USD", ""},
		"typeform":     {"lT4Z3j", "text: It works\nemail: lian@example.com", "LtWXD3crgy"},
		"pagerduty":    {"PGR0VU2", "incident.triggered: A little bump in the road (triggered)", "01BWB26E9BBZZ"},
		"bitbucket":    {"{673a6070}/7", "Pull request 7 of acme/web: Add retries (OPEN)", ""},
		"gitea":        {"5/3", "Issue opened in acme/web: Crash at start\n\nIt says\npanic", ""},
		"intercom":     {"147", "conversation.user.created: <p>Help me</p>", "notif_ccd8a4d0"},
		"vercel":       {"prj_1", "deployment.error: web web-1.vercel.app", "uev_1"},
		"notion":       {"153104cd", "page.content_updated of page 153104cd", "367cba44"},
		"calcom":       {"bFJeNb2uX8ANpT3JL5EfXw", "BOOKING_CREATED: 60min between Pro Example and John Doe at 2026-12-01T09:00:00Z", ""},
		"lemonsqueezy": {"1", "order_created: $9.99 by luke@example.com", ""},
		"terraform":    {"ws-1", "Run Errored (errored) in web: https://app.terraform.io/app/acme/web/runs/run-1", ""},
		"circleci":     {"github/acme/web", "build failed: https://app.circleci.com/pipelines/1", "3888f21b"},
		"clerk":        {"user_29w83", "user.created: Ada Lovelace", "msg_2f"},
		"openai":       {"resp_abc123", "response.completed: resp_abc123", "msg_2f"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
