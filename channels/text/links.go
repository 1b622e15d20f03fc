package text

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// address returns the link target if it may be a link: an absolute http, https
// or mailto address without anything that could end it early.
func address(s string) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }) {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return s, u.Host != ""
	case "mailto":
		return s, u.Opaque != ""
	}
	return "", false
}

// misleads tells whether a label shows an address or the name of a host other
// than that of u, which is an address.
func misleads(label, u string) bool {
	label = plainLabel.Replace(label)
	if label == u || "mailto:"+label == u {
		return false
	}
	host := hostOf(u)
	for _, f := range strings.Fields(label) {
		_, rest, absolute := strings.Cut(f, "://")
		if !absolute {
			rest = f
		}
		authority := strings.TrimLeft(rest, "/")
		if i := strings.IndexAny(authority, "/?#"); i >= 0 {
			authority = authority[:i]
		}
		names := strings.FieldsFunc(authority, func(r rune) bool { return r != '-' && r != '.' && !wordy(r) && !invisible(r) })
		for i, name := range names {
			name = trimHost(name)
			if name != host && (absolute && i == 0 || hostLike(name)) {
				return true
			}
		}
	}
	return false
}

// plainLabel writes what readers and browsers take for a dot or slash as one.
var plainLabel = strings.NewReplacer("\u2024", ".", "\u3002", ".", "\ufe52", ".", "\uff0e", ".", "\uff61", ".", "\uff0f", "/", "\\", "/")

// hostOf is the host of an address, or the domain of a mailto address.
func hostOf(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "" // unreachable: s is an address
	}
	if u.Opaque != "" {
		return trimHost(u.Opaque[strings.LastIndexByte(u.Opaque, '@')+1:]) // url.Parse took the query away
	}
	return trimHost(u.Hostname())
}

func trimHost(s string) string {
	s = strings.Map(func(r rune) rune {
		if invisible(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	return strings.TrimPrefix(strings.Trim(s, ".-_"), "www.")
}

// hostLike tells a name that ends in what may be a top-level domain.
func hostLike(name string) bool {
	i := strings.LastIndexByte(name, '.')
	if i < 1 {
		return false
	}
	switch end := name[i+1:]; end {
	case "conf", "cpp", "css", "csv", "go", "html", "js", "json", "log", "mod", "php", "rb", "sql", "sum", "toml", "ts",
		"txt", "xml", "yaml", "yml": // files; no such domains exist
		return false
	default:
		return utf8.RuneCountInString(end) > 1 && strings.IndexFunc(end, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) < 0
	}
}
