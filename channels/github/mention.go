package github

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mention returns the text without the mentions of slug, as a person or as a bot
// ("@slug[bot]"), and whether there was one. Names in code, quotes and comments
// that nobody sees do not count; nor do parts of words, addresses and teams.
func mention(text, slug string) (rest string, found bool) {
	if slug == "" || !strings.Contains(strings.ToLower(text), "@"+strings.ToLower(slug)) {
		return text, false
	}
	var out bytes.Buffer
	fence, hidden := "", false
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\r\n")
		trimmed := strings.TrimLeft(body, " \t")
		indented := strings.HasPrefix(body, "    ") || strings.HasPrefix(body, "\t")
		mark := fenceOf(trimmed)
		switch {
		case fence != "":
			if len(mark) >= len(fence) && mark[:1] == fence[:1] && strings.TrimSpace(trimmed) == mark {
				fence = ""
			}
			out.WriteString(line)
		case mark != "" && !indented && !hidden:
			fence = mark
			out.WriteString(line)
		case indented, strings.HasPrefix(trimmed, ">") && !hidden:
			out.WriteString(line)
		default:
			var had bool
			had, hidden = scan(&out, body, slug, hidden)
			found = found || had
			out.WriteString(line[len(body):])
		}
	}
	if !found {
		return text, false
	}
	return out.String(), true
}

// fenceOf returns the run of three or more ticks or tildes that begins a line.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 && (c == "~" || !strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// scan copies one line without the mentions in it. hidden tells whether an HTML
// comment is open.
func scan(out *bytes.Buffer, line, slug string, hidden bool) (found, stillHidden bool) {
	for i := 0; i < len(line); {
		rest := line[i:]
		n := 1
		switch {
		case hidden:
			if end := strings.Index(rest, "-->"); end >= 0 {
				n, hidden = end+3, false
			} else {
				n = len(rest)
			}
		case strings.HasPrefix(rest, "<!--"):
			n, hidden = 4, true
		case rest[0] == '`':
			n = codeSpan(rest)
		case rest[0] == '@' && separate(line[:i]):
			if m := named(rest[1:], slug); m > 0 {
				found = true
				i = gap(out, line, i+1+m)
				continue
			}
		}
		out.WriteString(rest[:n])
		i += n
	}
	return found, hidden
}

// codeSpan is the length of the code span that begins s, or of its ticks if none does.
func codeSpan(s string) int {
	ticks := len(s) - len(strings.TrimLeft(s, "`"))
	for i := ticks; i < len(s); {
		j := strings.IndexByte(s[i:], '`')
		if j < 0 {
			break
		}
		i += j
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if i += run; run == ticks {
			return i
		}
	}
	return ticks
}

// separate tells whether a name may begin after s.
func separate(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s == "" || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("_-./@`\\", r)
}

// named is the length of the name that begins s, 0 if it is another one.
func named(s, slug string) int {
	if len(s) < len(slug) || !strings.EqualFold(s[:len(slug)], slug) {
		return 0
	}
	n := len(slug)
	if bot := "[bot]"; len(s) >= n+len(bot) && strings.EqualFold(s[n:n+len(bot)], bot) {
		n += len(bot)
	}
	r, _ := utf8.DecodeRuneInString(s[n:])
	if n < len(s) && (unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune("-_/@", r)) {
		return 0
	}
	return n
}

// gap closes what a mention leaves and returns where the line goes on.
func gap(out *bytes.Buffer, line string, i int) int {
	before := out.Bytes()
	switch {
	case len(before) == 0 || before[len(before)-1] == '\n':
		for i < len(line) && strings.IndexByte(" ,:", line[i]) >= 0 {
			i++
		}
	case before[len(before)-1] == ' ' && (i == len(line) || strings.IndexByte(" ,.;:!?)", line[i]) >= 0):
		out.Truncate(len(before) - 1)
	}
	return i
}

var firstName = regexp.MustCompile(`^@([A-Za-z0-9][A-Za-z0-9-]*)`)

// addressed is whom a text addresses first, as "@name": GitHub does not tell who
// that is. "" if nobody.
func addressed(text string) string { return firstName.FindString(text) }

// plain is a text as people wrote it, with lines as everywhere.
func plain(s string) string {
	return strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD"))
}
