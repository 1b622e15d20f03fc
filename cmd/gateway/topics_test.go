package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/heddlehq/heddle/config"
)

func TestIsTopic(t *testing.T) {
	t.Parallel()
	topics := []string{"slack.mention", "slack.*", "stripe.TYPE", "stripe.*"}
	for on, want := range map[string]bool{
		"slack.mention": true, "slack.*": true, "slack.shout": false, "slack.mention.x": false, "slack.": false,
		"stripe.invoice.paid": true, "stripe.invoice.*": true, "stripe.*": true, "stripe.TYPE": true, "stripe.": false, "stripe": false,
		"stripe.invoice.*.x": false, "stripe.a b": false, "*": false, "": false, "stripes.x": false,
	} {
		if got := isTopic(topics, on); got != want {
			t.Errorf("%q: %v, want %v", on, got, want)
		}
	}
}

// TestEventGuides checks that the settings of the guides to channels are accepted as they stand there.
func TestEventGuides(t *testing.T) {
	t.Parallel()
	vars := map[string]string{
		"SLACK_BOT_TOKEN": "xoxb-1-2-abc", "SLACK_SIGNING_SECRET": "abc-1-2", "OPENAI_API_KEY": "sk-1-2-abc",
		"DISCORD_BOT_TOKEN": "MTIz.abc.def", "STRIPE_WEBHOOK_SECRET": "whsec_12ab", "STRIPE_API_KEY": "rk_live_12ab", "ALERTS_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	}
	for _, g := range []struct{ file, begin string }{{"../../docs/stripe.md", "agents:"}, {"../../docs/webhooks.md", "webhooks:\n  alerts:"}, {"../../docs/discord.md", "access:"}, {"../../docs/discord.md", "routes:"}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "gateway.yaml")
		if err := errors.Join(
			os.WriteFile(path, []byte(block(t, g.file, "yaml", g.begin)), 0o600),
			os.Mkdir(filepath.Join(dir, "prompts"), 0o700), os.WriteFile(filepath.Join(dir, "prompts", "billing.md"), []byte("Bill."), 0o600),
		); err != nil {
			t.Fatal(err)
		}
		s := config.Open(path, func(name string) (string, bool) { v, ok := vars[name]; return v, ok })
		p := partsOf(s)
		p.close()
		if err := s.Err(); err != nil {
			t.Errorf("%s: %v", g.file, err)
		}
	}
}
