package github

import (
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	fake "github.com/heddlehq/heddle/fakes/github"
)

const setupToken = "canary-setup-token-0123456789"

// G37: an App is made by who has the token, with a state of ours and a code that
// is fresh and was not used.
func TestInstaller(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	h := fake.New(fake.Options{Clock: clock})
	srv := httptest.NewServer(h)
	defer srv.Close()
	i, err := NewInstaller(setupToken, srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	i.now = clock
	open := func(path string) (int, string, http.Header) {
		suffix, _, _ := strings.Cut(path, "?")
		w := httptest.NewRecorder()
		i.Pages()[suffix](w, httptest.NewRequest(http.MethodGet, "https://heddle.test/github/"+path, nil))
		return w.Code, w.Body.String(), w.Header()
	}
	for _, path := range []string{"setup", "setup?token=", "setup?token=wrong", "setup?token=" + setupToken + "&org=a/b"} {
		if code, body, _ := open(path); code != http.StatusNotFound || strings.Contains(body, "form") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	field := func(body, pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(body)
		if m == nil {
			t.Fatalf("no %s in %s", pattern, body)
		}
		return html.UnescapeString(m[1])
	}
	begin := func(query string) (action *url.URL, manifest map[string]any) {
		code, body, header := open("setup?token=" + setupToken + query)
		if code != http.StatusOK || header.Get("Cache-Control") != "no-store" || header.Get("Referrer-Policy") != "no-referrer" {
			t.Fatalf("%d %v", code, header)
		}
		action, err := url.Parse(field(body, `action="([^"]*)"`))
		if err != nil || json.Unmarshal([]byte(field(body, `value="([^"]*)"`)), &manifest) != nil {
			t.Fatal(err, body)
		}
		return action, manifest
	}
	action, manifest := begin("&org=acme")
	if action.Path != "/organizations/acme/settings/apps/new" {
		t.Errorf("action %s", action)
	}
	hook, _ := manifest["hook_attributes"].(map[string]any)
	if hook["url"] != "https://heddle.test/github/webhook" || manifest["redirect_url"] != "https://heddle.test/github/setup/done" || manifest["public"] != false {
		t.Errorf("manifest %v", manifest)
	}
	action, _ = begin("")
	state := action.Query().Get("state")
	used := h.Manifest()
	for name, q := range map[string]url.Values{
		"no state":    {"code": {used}},
		"wrong state": {"code": {used}, "state": {state[:len(state)-1] + "x"}},
		"other time":  {"code": {used}, "state": {"9" + state[1:]}},
		"no code":     {"state": {state}},
	} {
		if code, body, _ := open("setup/done?" + q.Encode()); code != http.StatusForbidden || strings.Contains(body, "PRIVATE") {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if n := h.Calls()["convert"]; n != 0 {
		t.Errorf("%d codes were traded", n)
	}
	done := "setup/done?" + url.Values{"code": {used}, "state": {state}}.Encode()
	code, body, header := open(done)
	if code != http.StatusOK || header.Get("Cache-Control") != "no-store" || !strings.Contains(body, h.PrivateKey()) ||
		!strings.Contains(body, "GITHUB_APP_ID=7\nGITHUB_WEBHOOK_SECRET=fake-webhook-secret\n") || !strings.Contains(body, "/apps/heddle/installations/new") {
		t.Errorf("%d %v %s", code, header, body)
	}
	if code, body, _ := open(done); code != http.StatusBadGateway || !strings.Contains(body, "used already") || strings.Contains(body, "PRIVATE") {
		t.Errorf("a second time: %d %s", code, body)
	}
	late := h.Manifest()
	action, _ = begin("")
	pass(61 * time.Minute)
	if code, _, _ := open("setup/done?" + url.Values{"code": {late}, "state": {action.Query().Get("state")}}.Encode()); code != http.StatusForbidden {
		t.Errorf("a state of an hour ago: %d", code)
	}
	action, _ = begin("")
	if code, _, _ := open("setup/done?" + url.Values{"code": {late}, "state": {action.Query().Get("state")}}.Encode()); code != http.StatusBadGateway {
		t.Errorf("a code of an hour ago: %d", code)
	}
	for _, bad := range []string{"", "short", "changeme"} {
		if _, err := NewInstaller(bad, ""); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("token %q: %v", bad, err)
		}
	}
}
