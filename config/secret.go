package config

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// placeholders match what people leave in a copied example, after the
// provider's prefix ("xoxb-", "sk_live_") is gone.
var placeholders = regexp.MustCompile(`(?i)^(<.*>|\$\{.*\}|none|null|\.{3,}|\*{3,}|x{3,}([-_]x+)*|todo|fixme|placeholder|secret|example|(change|replace)[-_ ]?(me|this)\W*|(my|your|the)[-_ ].*)$`)

var providerPrefix = regexp.MustCompile(`^(xox[a-z]|xapp|sk|pk|rk|ghp|whsec|AIza)([-_](live|test|ant|proj))?[-_]`)

// Placeholder says whether a value is one that nobody meant as a secret, such
// as "changeme" or "xoxb-your-token".
func Placeholder(secret string) bool {
	secret = strings.TrimSpace(secret)
	return secret == "" || placeholders.MatchString(secret) ||
		placeholders.MatchString(providerPrefix.ReplaceAllString(secret, ""))
}

// secretName says whether a variable that is expanded in the file holds a secret.
func secretName(name string) bool {
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD"}, func(end string) bool {
		return strings.HasSuffix(strings.ToUpper(name), end)
	})
}

// secretKey matches the path of a key of the file whose value is a secret: of an
// environment, of headers, of a log-in.
var secretKey = regexp.MustCompile(`(?i)[._-](key|token|secret|password|authorization|cookie)$`)

// minSecretBytes keeps a redactor from blotting out words.
const minSecretBytes = 4

type redactor struct {
	w       io.Writer
	replace *strings.Replacer
}

// newRedactor knows each secret as it is and as JSON, Go and URLs write it; of
// one with several lines, such as a private key, also each line.
func newRedactor(w io.Writer, secrets []string) *redactor {
	var forms []string
	for _, s := range secrets {
		for _, part := range append([]string{s}, strings.Split(s, "\n")...) {
			var j bytes.Buffer
			enc := json.NewEncoder(&j)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(part); err == nil {
				forms = append(forms, strings.Trim(j.String(), "\"\n"))
			}
			if b, err := json.Marshal(part); err == nil {
				forms = append(forms, strings.Trim(string(b), `"`))
			}
			q := strconv.Quote(part)
			forms = append(forms, part, q[1:len(q)-1], url.QueryEscape(part), url.PathEscape(part))
		}
	}
	forms = slices.DeleteFunc(forms, func(f string) bool { return len(f) < minSecretBytes })
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // a secret that holds another one goes first
	var pairs []string
	for _, f := range forms {
		pairs = append(pairs, f, "[secret]")
	}
	return &redactor{w: w, replace: strings.NewReplacer(pairs...)}
}

func (r *redactor) Write(p []byte) (int, error) {
	if _, err := r.replace.WriteString(r.w, string(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
