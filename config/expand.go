package config

import (
	"errors"
	"fmt"
	"strings"
)

// expand replaces ${NAME} and ${NAME:-default} by what value says; "$$" is a
// dollar sign, and so is a "$" before anything else. An empty value counts as
// not set, which is an error without default. Defaults and values are not
// expanded again. An error holds names only, never a value.
func expand(text string, value func(name string) string) (string, error) {
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			b.WriteString(text)
			return b.String(), nil
		}
		b.WriteString(text[:i])
		switch text[i+1] {
		case '$':
			b.WriteByte('$')
			text = text[i+2:]
			continue
		case '{':
		default:
			b.WriteByte('$')
			text = text[i+1:]
			continue
		}
		inner, rest, ok := strings.Cut(text[i+2:], "}")
		if !ok {
			return "", errors.New("a ${ without its }")
		}
		name, fallback, hasFallback := strings.Cut(inner, ":-")
		if !isName(name) {
			return "", errors.New("a ${...} that names no variable")
		}
		v := value(name)
		if v == "" && !hasFallback {
			return "", fmt.Errorf("${%s}, which is not set", name)
		}
		if v == "" {
			v = fallback
		}
		b.WriteString(v)
		text = rest
	}
}

// isName says whether s can name an environment variable.
func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
