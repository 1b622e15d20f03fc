package slack

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scopes are what the methods of the Web API want that this package calls.
var scopes = map[string][]string{
	"auth.test": nil, "users.info": {"users:read"}, "usergroups.users.list": {"usergroups:read"}, "conversations.info": {"channels:read"},
	"conversations.history":   {"channels:history", "groups:history", "im:history", "mpim:history"},
	"conversations.replies":   {"channels:history", "groups:history", "im:history", "mpim:history"},
	"users.conversations":     {"channels:read", "groups:read", "im:read", "mpim:read"},
	"conversations.open":      {"im:write"},
	"chat.postMessage":        {"chat:write"},
	"reactions.add":           {"reactions:write"},
	"assistant.threads":       {"assistant:write"},
	"files.info":              {"files:read"},
	"files.getUploadExternal": {"files:write"},
	"commands":                {"commands"},
	"app_mention":             {"app_mentions:read"},
	"reaction_added":          {"reactions:read"},
}

// The manifest asks for what the code needs and for nothing else.
func TestManifest(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := func(name string) (out []string) {
		_, after, ok := strings.Cut(string(b), name+":\n")
		if !ok {
			t.Fatalf("no %s", name)
		}
		for line := range strings.Lines(after) {
			item, ok := strings.CutPrefix(strings.TrimSpace(line), "- ")
			if !ok {
				break
			}
			item, _, _ = strings.Cut(item, " #")
			out = append(out, item)
		}
		slices.Sort(out)
		return out
	}
	var want []string
	for _, s := range scopes {
		want = append(want, s...)
	}
	slices.Sort(want)
	if got := list("    bot"); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("scopes %v, want %v", got, slices.Compact(want))
	}
	if !slices.Equal(wanted, list("    bot")) {
		t.Errorf("an installation asks for %v", wanted)
	}
	// Each event that is subscribed to is read, and each that leads to something is subscribed to.
	var code strings.Builder
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	for _, e := range list("    bot_events") {
		kind, _, _ := strings.Cut(e, ".")
		if !strings.Contains(code.String(), `"`+kind+`"`) {
			t.Errorf("event %s is not read", e)
		}
	}
	for _, e := range []string{"app_mention", "message.channels", "message.groups", "message.im", "message.mpim", "reaction_added", "reaction_removed", "channel_id_changed"} {
		if !slices.Contains(list("    bot_events"), e) {
			t.Errorf("event %s is not subscribed to", e)
		}
	}
	if !regexp.MustCompile(`command: /agent\b`).Match(b) || !strings.Contains(string(b), "interactivity: {is_enabled: true}") || !strings.Contains(string(b), "socket_mode_enabled: true") {
		t.Error("no command, interactivity or Socket Mode")
	}
}
