package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// Settings are one server of the section mcp. A server has a URL or a command.
type Settings struct {
	URL     string            `yaml:"url" doc:"Endpoint of a server that speaks streamable HTTP."`
	Headers map[string]string `yaml:"headers" doc:"Sent with every request to the endpoint, such as Authorization: Bearer ${DOCS_TOKEN}."`
	OAuth   *OAuth            `yaml:"oauth" doc:"Log in by OAuth 2.1 where the server asks for it."`

	Command string            `yaml:"command" doc:"Program of a server that speaks over its standard input and output."`
	Args    []string          `yaml:"args" doc:"Arguments of the program."`
	Env     map[string]string `yaml:"env" doc:"Environment of the program, beside PATH, HOME, TMPDIR, TZ and the locale; nothing else is passed on."`
	Dir     string            `yaml:"dir" doc:"Folder the program runs in."`

	Optional   bool          `yaml:"optional" doc:"Start without the server if it cannot be reached."`
	Timeout    time.Duration `yaml:"timeout" doc:"Most that one call may take; 1m if not set."`
	Tools      []string      `yaml:"tools" doc:"The tools that may be mounted, by the server's names; @resources and @prompts for those. All if not set."`
	NewTools   bool          `yaml:"new_tools" doc:"Mount what the lock file does not name. What is seen first after a start is then the pin until the next start."`
	TrustHints bool          `yaml:"trust_hints" doc:"Believe the server when it calls a tool read-only or idempotent: such a call is made again after a lost connection."`
	Who        chat.Role     `yaml:"who" doc:"Least role of everybody in the thread for which the tools are mounted: outsider, member, maintainer or admin."`
	Approve    bool          `yaml:"approve" doc:"Reserved for approvals, which this version does not have: must be false."`
	Protocol   string        `yaml:"protocol" doc:"Newest revision of the protocol to speak: 2026-07-28, or 2025-11-25 for servers that answer the newer one wrongly."`
}

// OAuth are the settings of a log-in.
type OAuth struct {
	Client   string `yaml:"client" doc:"Client id at the authorization server, or the https URL of a client metadata document. Registered anew if not set."`
	Secret   string `yaml:"secret" doc:"Secret of the client id, if it has one."`
	Issuer   string `yaml:"issuer" doc:"The only authorization server that may see the client id."`
	Redirect string `yaml:"redirect" doc:"Where the authorization server sends people back to, for a client id that has a fixed address: http://127.0.0.1:PORT/PATH. A free port of the machine where somebody logs in if not set."`
	Private  bool   `yaml:"private" doc:"The authorization server is in a private network or speaks plain http."`
}

// serverName has no double underscore and no underscore at an end, so that
// mcp__NAME__TOOL reads in one way only.
var serverName = regexp.MustCompile(`^[a-z0-9]+([_-][a-z0-9]+)*$`)

const maxServerName = 24

// The names for [Settings].Tools of what is not a tool of the server.
const (
	allowResources = "@resources"
	allowPrompts   = "@prompts"
)

// Check says what is wrong with the settings of the server of that name.
func (s Settings) Check(name string) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("mcp server %q: "+format, append([]any{name}, args...)...))
	}
	if len(name) > maxServerName || !serverName.MatchString(name) {
		bad("its name must be up to %d lower case letters and digits with single - or _ between", maxServerName)
	}
	u, err := url.Parse(s.URL)
	switch {
	case (s.URL == "") == (s.Command == ""):
		bad("want either url or command")
	case s.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil):
		bad("its url must be http(s)://HOST/PATH without a user")
	case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		bad("args, env and dir are for a command, not for a url")
	case s.Command != "" && (len(s.Headers) > 0 || s.OAuth != nil):
		bad("headers and oauth are for a url, not for a command")
	}
	if s.OAuth != nil && s.OAuth.Redirect != "" {
		if u, err := url.Parse(s.OAuth.Redirect); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			bad("redirect must be http(s)://HOST/PATH")
		}
	}
	if s.Approve {
		bad("approve must be false: this version has no approvals, so calls would be made without them")
	}
	if s.Timeout < 0 {
		bad("timeout must not be negative")
	}
	if s.Protocol != "" && !slices.Contains([]string{"2026-07-28", "2025-11-25"}, s.Protocol) {
		bad("protocol must be 2026-07-28 or 2025-11-25")
	}
	for _, t := range s.Tools {
		if strings.HasPrefix(t, "@") && t != allowResources && t != allowPrompts {
			bad("tools names %q; want a tool, %s or %s", t, allowResources, allowPrompts)
		}
	}
	return errors.Join(errs...)
}

// allows says whether the operator let a tool be mounted.
func (s Settings) allows(tool string) bool {
	return len(s.Tools) == 0 || slices.Contains(s.Tools, tool)
}

func (s Settings) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return time.Minute
}
