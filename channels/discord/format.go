package discord

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels/text"
	"github.com/heddlehq/heddle/chat"
)

// Compose renders Markdown as Discord's, in texts that fit a message.
func (c *Channel) Compose(markdown string, trust chat.Role) []string {
	return text.Discord.For(trust).Compose(markdown)
}

// tokens are what Discord writes for mentions, emoji and the like.
var tokens = regexp.MustCompile(`<(@&|@!?|#|t:|/|id:|a?:)([^<>\s:][^<>\n]*)>`)

// markdown turns Discord's text into Markdown: tokens into what a reader sees,
// the bot's own mention gone.
func markdown(s, bot, role string) string {
	s = valid(s)
	if !strings.Contains(s, "<") {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	for s != "" {
		at := tokens.FindStringSubmatchIndex(s)
		if at == nil {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at[0]])
		kind, body := s[at[2]:at[3]], s[at[4]:at[5]]
		s = s[at[1]:]
		if bot != "" && body == bot && kind[0] == '@' || role != "" && body == role && kind == "@&" {
			s = without(&b, s)
			continue
		}
		b.WriteString(readable(kind, body))
	}
	return strings.TrimSpace(b.String())
}

// addressed is the person whom Discord's text names first of all, "" for none.
func addressed(s string) string {
	at := tokens.FindStringSubmatchIndex(s)
	if at == nil || strings.TrimSpace(s[:at[0]]) != "" || s[at[2]:at[3]] != "@" && s[at[2]:at[3]] != "@!" {
		return ""
	}
	return s[at[4]:at[5]]
}

// without closes the gap that a mention leaves between what is written and rest,
// and returns the rest.
func without(b *strings.Builder, rest string) string {
	before := b.String()
	switch {
	case strings.TrimSpace(before) == "":
		return strings.TrimLeft(rest, " ,:")
	case strings.HasSuffix(before, " ") && (rest == "" || strings.IndexByte(" ,.;:!?)", rest[0]) >= 0):
		b.Reset()
		b.WriteString(before[:len(before)-1])
	}
	return rest
}

// readable shows one token. People, roles and channels keep their ids: a name is
// text that anybody may choose.
func readable(kind, body string) string {
	switch kind {
	case "#", "/":
		name, _, _ := strings.Cut(body, ":")
		return kind + name
	case "t:":
		at, _, _ := strings.Cut(body, ":")
		if n, err := strconv.ParseInt(at, 10, 64); err == nil && n > 0 && n < 1<<40 {
			return time.Unix(n, 0).UTC().Format("2006-01-02 15:04 UTC")
		}
		return at
	case ":", "a:":
		name, _, _ := strings.Cut(body, ":")
		return ":" + name + ":"
	case "id:":
		return "#" + body
	}
	return "@" + body
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
