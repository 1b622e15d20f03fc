package github

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
)

const (
	routeWebhook = "webhook"
	maxBytes     = 26 << 20 // GitHub sends 25 MB at most
	formType     = "application/x-www-form-urlencoded"
)

// Topics are what events are about, as routes name them; Usual those that are
// answered without routes. LABEL is the name of a label in small letters, with
// "-" for blanks.
var (
	Topics = []string{
		"github.mention", "github.thread", "github.assigned", "github.review_requested", "github.labeled.LABEL", "github.unlabeled.LABEL",
		"github.issues.opened", "github.issues.reopened", "github.issues.closed",
		"github.pull_request.opened", "github.pull_request.reopened", "github.pull_request.closed", "github.pull_request.ready_for_review",
		"github.pull_request.synchronize", "github.discussion.created", "github.discussion.answered", "github.check_run.requested_action", "github.*",
	}
	Usual = []string{"github.mention", "github.thread"}
)

// Routes has the one route of webhooks.
func (c *Channel) Routes() []channels.Route {
	return []channels.Route{{Name: routeWebhook, MediaTypes: []string{"application/json", formType}, MaxBytes: maxBytes}}
}

// Receive verifies and reads one delivery. GitHub signs no time, so a copy of a
// delivery verifies for ever: what it says is known by the delivery's id, which
// is not signed either, and by what it is about (Event.Same), which is.
func (c *Channel) Receive(route string, h http.Header, body []byte, _ time.Time) (channels.Inbound, error) {
	if route != routeWebhook {
		return channels.Inbound{}, fmt.Errorf("route %q: %w", route, channels.ErrMalformed)
	}
	if err := c.verify(h, body); err != nil {
		return channels.Inbound{}, err
	}
	event, err := header(h, "X-GitHub-Event", 64)
	if err != nil {
		return channels.Inbound{}, err
	}
	id, err := header(h, "X-GitHub-Delivery", 128)
	if err != nil {
		return channels.Inbound{}, err
	}
	if media, _, _ := mime.ParseMediaType(h.Get("Content-Type")); media == formType {
		form, err := url.ParseQuery(string(body))
		if err != nil || len(form["payload"]) != 1 {
			return channels.Inbound{}, fmt.Errorf("form without one payload: %w", channels.ErrMalformed)
		}
		body = []byte(form.Get("payload"))
	}
	d := delivery{id: id, event: event, digest: digest(body), self: c.identity(), app: c.appID, ours: c.ours, first: c.first}
	// A wrong type spoils its field only: an event that is not used may use our
	// names for other things.
	err = json.Unmarshal(body, &d.payload)
	var wrong *json.UnmarshalTypeError
	if err != nil && (!errors.As(err, &wrong) || wrong.Field == "") {
		return channels.Inbound{}, fmt.Errorf("body is no JSON object: %w", channels.ErrMalformed)
	}
	if strings.TrimSpace(string(body)) == "null" {
		return channels.Inbound{}, fmt.Errorf("body is no JSON object: %w", channels.ErrMalformed)
	}
	in, err := d.inbound(wrong != nil)
	switch {
	case err != nil:
	case d.self.Slug == "" && len(in.Events) > 0:
		in.Then = func(context.Context) error { return errUnknownSelf }
	default:
		c.transferred(&d, &in)
	}
	return in, err
}

// errUnknownSelf is why nothing is taken before GitHub has said who we are: what
// mentions us would pass for talk among others. GitHub counts it as failed, so it
// is asked for again.
var errUnknownSelf = errors.New("github has not said yet who we are")

// verify accepts exactly one signature, over the raw bytes, made with any of the
// secrets. Its hex digits may be of either case. A delivery for another App is
// not for us, whoever signed it.
func (c *Channel) verify(h http.Header, body []byte) error {
	sigs := h.Values("X-Hub-Signature-256")
	if len(sigs) != 1 {
		return fmt.Errorf("want one signature, got %d: %w", len(sigs), channels.ErrUnverified)
	}
	digits, ok := strings.CutPrefix(sigs[0], "sha256=")
	got, err := hex.DecodeString(digits)
	if !ok || err != nil || len(got) != sha256.Size {
		return fmt.Errorf("signature is no sha256: %w", channels.ErrUnverified)
	}
	var signed bool
	for _, s := range c.secrets {
		signed = hmac.Equal(got, signature(s, body)) || signed
	}
	if !signed {
		return fmt.Errorf("signature does not match: %w", channels.ErrUnverified)
	}
	if c.appID != 0 && h.Get("X-GitHub-Hook-Installation-Target-Type") == "integration" &&
		h.Get("X-GitHub-Hook-Installation-Target-ID") != strconv.FormatInt(c.appID, 10) {
		return fmt.Errorf("delivery is for another app: %w", channels.ErrUnverified)
	}
	return nil
}

func signature(secret, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return mac.Sum(nil)
}

// Sign returns the headers of a body: its signature and, which GitHub does not
// sign, what event it is, by its fields, and an id, the same for the same body.
func (c *Channel) Sign(_ string, body []byte, _ time.Time) http.Header {
	return http.Header{
		"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(signature(c.secrets[0], body))},
		"X-Github-Event":      {eventOf(body)}, "X-Github-Delivery": {digest(body)},
	}
}

// shapes are by which fields a body is of an event that is used.
var shapes = [...]struct{ fields, event string }{
	{"issue comment", "issue_comment"},
	{"pull_request comment", "pull_request_review_comment"},
	{"discussion comment", "discussion_comment"},
	{"pull_request review", "pull_request_review"},
	{"pull_request thread", "pull_request_review_thread"},
	{"check_run", "check_run"},
	{"discussion", "discussion"},
	{"pull_request", "pull_request"},
	{"issue", "issues"},
	{"zen", "ping"},
}

func eventOf(body []byte) string {
	var has map[string]json.RawMessage
	_ = json.Unmarshal(body, &has) // what is no object has no fields
	for _, s := range shapes {
		first, second, _ := strings.Cut(s.fields, " ")
		if has[first] != nil && (second == "" || has[second] != nil) {
			return s.event
		}
	}
	return "unknown"
}

// header returns the one value of a header, which is short and has nothing odd.
func header(h http.Header, name string, most int) (string, error) {
	vs := h.Values(name)
	if len(vs) != 1 || vs[0] == "" || len(vs[0]) > most || strings.ContainsFunc(vs[0], func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("header %s: %w", name, channels.ErrMalformed)
	}
	return vs[0], nil
}

// digest is short, and the same for the same bytes only.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

func ignored(id, reason string) channels.Inbound {
	return channels.Inbound{Ignored: []channels.Ignored{{ID: id, Reason: reason}}}
}
