package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Slack is mrkdwn, the language of Slack's "text". Slack shows 4,000 characters
// of a text well; the rest is margin for its own way to count.
var Slack = Dialect{
	limit: 3500, size: utf8.RuneCountInString,
	plain: slackPlain.Replace, code: slackPlain.Replace,
	link: func(u, l string) string {
		u, l = slackAddress.Replace(u), slackPlain.Replace(l)
		if l == u {
			return "<" + u + ">"
		}
		return "<" + u + "|" + l + ">"
	},
	marks: [styles]string{bold: "*", italic: "_", strike: "~", code: "`"},
	joint: zeroWidth, fence: "```", fenceBroken: "`\u200b`\u200b`",
	quote: "> ", bullet: "• ", nest: "  ", rule: "———",
}

// Discord is Discord's Markdown. Its limit of 2,000 characters is counted in
// code points; the rest is margin. Mentions are made inert a second time by the
// request's allowed_mentions.
var Discord = Dialect{
	limit: 1900, size: utf8.RuneCountInString,
	word: func(_, w string, start bool) string {
		return lineStart(escape(discordMentions.Replace(w), "`*~|[]"), start)
	},
	code:  ticks.Replace,
	link:  markdownLink,
	bare:  func(u string) string { return "<" + u + ">" }, // without a preview
	marks: [styles]string{bold: "**", italic: "*", strike: "~~", code: "`"},
	joint: zeroWidth, flanks: true, fence: "```", fenceBroken: "`\u200b`\u200b`", names: true,
	headings: 3, quote: "> ", bullet: "- ", rule: "———",
}

// GFM is GitHub's Markdown, as comments have it. Their limit is 65,536
// characters; the rest is for what the adapter adds.
var GFM = Dialect{
	limit: 60_000, size: utf8.RuneCountInString,
	word: func(before, w string, start bool) string {
		w = escape(closing(before, mention(w)), "`*~[]$|")
		if strings.HasPrefix(w, "/") && start { // a command to some other bot
			return zeroWidth + w
		}
		return lineStart(w, start)
	},
	code:  ticks.Replace,
	link:  markdownLink,
	marks: [styles]string{bold: "**", italic: "*", strike: "~~", code: "`"},
	joint: "<!-- -->", flanks: true, fence: "```", fenceBroken: "`\u200b`\u200b`", names: true,
	headings: 6, tables: true, quote: "> ", bullet: "- ", rule: "---",
}

// Plain is text without any marks, for what shows none.
var Plain = Dialect{
	limit: 3500, size: utf8.RuneCountInString,
	link: func(u, l string) string {
		if l == u {
			return u
		}
		return l + " (" + u + ")"
	},
	quote: "> ", bullet: "- ", nest: "  ", rule: "———",
}

// zeroWidth parts what must not be read together.
const zeroWidth = "\u200b"

var (
	slackPlain   = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	slackAddress = strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60")

	// A tick would end a code span; this one looks the same.
	ticks = strings.NewReplacer("`", "ˋ")

	// Everything that notifies or is resolved by Discord begins so.
	discordMentions = strings.NewReplacer("<", "<"+zeroWidth, "@everyone", "@"+zeroWidth+"everyone", "@here", "@"+zeroWidth+"here")

	markdownAddress = strings.NewReplacer("<", "%3C", ">", "%3E", "\\", "%5C", "`", "%60", "|", "%7C")
)

// markdownLink is a link in Markdown, its target between angle brackets, which
// keeps Discord from showing a preview.
func markdownLink(u, l string) string {
	u = markdownAddress.Replace(u)
	if l == u || "mailto:"+l == u {
		return "<" + u + ">"
	}
	return "[" + escape(discordMentions.Replace(mention(l)), "`*~|[]") + "](<" + u + ">)"
}

// escape takes away the effect that a word's characters may have in Markdown,
// wherever it stands: of always, in any place; of underscores, at the edges of
// letters; and of what begins tags and entities.
func escape(w, always string) string {
	if !strings.ContainsAny(w, always+"\\_<&") {
		return w
	}
	var b strings.Builder
	prev := ' '
	for i, r := range w {
		next, _ := utf8.DecodeRuneInString(w[i+utf8.RuneLen(r):])
		switch {
		case r == '\\', strings.ContainsRune(always, r),
			r == '_' && !(plainLetter(prev) && plainLetter(next)),
			r == '<', r == '&' && (next == '#' || plainLetter(next)):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

func plainLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// lineStart takes away the effect of a word as the first of a line: a heading,
// quote, list, rule or underline.
func lineStart(w string, start bool) string {
	if !start || w == "" {
		return w
	}
	if strings.IndexByte("#>-+=", w[0]) >= 0 {
		return "\\" + w
	}
	if digits := len(w) - len(strings.TrimLeft(w, "0123456789")); digits > 0 && digits < len(w) && (w[digits] == '.' || w[digits] == ')') {
		return w[:digits] + "\\" + w[digits:]
	}
	return w
}

// mention parts the names that GitHub would notify. An @ within a word is part
// of an address.
func mention(w string) string {
	if !strings.Contains(w, "@") {
		return w
	}
	var b strings.Builder
	prev := ' '
	for i, r := range w {
		b.WriteRune(r)
		next, _ := utf8.DecodeRuneInString(w[i+utf8.RuneLen(r):])
		if r == '@' && !plainLetter(prev) && plainLetter(next) {
			b.WriteString(zeroWidth)
		}
		prev = r
	}
	return b.String()
}

// closing parts the number of an issue that the word before would close.
func closing(before, w string) string {
	switch strings.ToLower(strings.Trim(before, ":*_([")) {
	case "close", "closes", "closed", "fix", "fixes", "fixed", "resolve", "resolves", "resolved":
	default:
		return w
	}
	if i := strings.LastIndexByte(w, '#'); i >= 0 {
		return w[:i+1] + zeroWidth + w[i+1:]
	}
	if len(w) > 3 && strings.EqualFold(w[:3], "GH-") {
		return w[:3] + zeroWidth + w[3:]
	}
	return w
}
