package slack

import (
	"strings"

	"github.com/heddlehq/heddle/channels/text"
	"github.com/heddlehq/heddle/chat"
)

// Compose renders Markdown as Slack's mrkdwn, in texts that are shown whole.
func (c *Channel) Compose(markdown string, trust chat.Role) []string {
	return text.Slack.For(trust).Compose(markdown)
}

var unescape = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// mentions tells whether Slack's text names the user.
func mentions(s, user string) bool {
	return user != "" && (strings.Contains(s, "<@"+user+">") || strings.Contains(s, "<@"+user+"|"))
}

// addressed is the user whom Slack's text names first of all, "" for none.
func addressed(s string) string {
	id, ok := strings.CutPrefix(strings.TrimLeft(s, " "), "<@")
	end := strings.IndexAny(id, "|>")
	if !ok || end < 0 {
		return ""
	}
	return id[:end]
}

// markdown turns Slack's text into Markdown: entities once, tokens into what a
// reader sees, the bot's own mention gone. Emphasis is left as it stands.
func markdown(s, bot string) string {
	if !strings.ContainsAny(s, "<&") {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '<')
		j := -1
		if i >= 0 {
			j = strings.IndexByte(s[i:], '>')
		}
		if j < 0 { // no further token
			b.WriteString(unescape.Replace(s))
			break
		}
		b.WriteString(unescape.Replace(s[:i]))
		body, label, _ := strings.Cut(s[i+1:i+j], "|")
		s = s[i+j+1:]
		if bot != "" && body == "@"+bot {
			s = without(&b, s)
			continue
		}
		b.WriteString(readable(unescape.Replace(body), unescape.Replace(label)))
	}
	return strings.TrimSpace(b.String())
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

// readable shows one token, the part between angle brackets.
func readable(body, label string) string {
	switch {
	case strings.HasPrefix(body, "@"):
		return body // the id: a name is text that anybody may choose
	case strings.HasPrefix(body, "#"):
		if label != "" {
			return "#" + label
		}
		return body
	case strings.HasPrefix(body, "!"):
		return special(body[1:], label)
	case label == "" || label == body || "mailto:"+label == body || "tel:"+label == body:
		if label != "" {
			return label
		}
		return body
	case !strings.Contains(body, ":"): // no link
		return body + " " + label
	}
	if strings.ContainsAny(body, "() ") {
		body = "<" + body + ">"
	}
	return "[" + strings.NewReplacer("[", `\[`, "]", `\]`).Replace(label) + "](" + body + ")"
}

// special shows "here", "subteam^S1", "date^1^{date}" and the like.
func special(command, label string) string {
	name, arg, _ := strings.Cut(command, "^")
	switch {
	case name == "subteam" && label == "":
		return "@" + arg
	case name == "here" || name == "channel" || name == "everyone":
		return "@" + name
	case label != "":
		return label
	}
	return command
}
