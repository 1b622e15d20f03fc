package stripe

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
)

const (
	routeWebhook = "webhook"
	maxBytes     = 2 << 20
)

// Routes has the one route of webhooks.
func (c *Channel) Routes() []channels.Route {
	return []channels.Route{{Name: routeWebhook, MediaTypes: []string{"application/json"}, MaxBytes: maxBytes}}
}

// Receive verifies and reads one webhook.
func (c *Channel) Receive(route string, h http.Header, body []byte, now time.Time) (channels.Inbound, error) {
	if route != routeWebhook {
		return channels.Inbound{}, fmt.Errorf("route %q: %w", route, channels.ErrMalformed)
	}
	if err := c.verify(h, body, now); err != nil {
		return channels.Inbound{}, err
	}
	o, err := parse(body)
	if err != nil {
		return channels.Inbound{}, err
	}
	return c.inbound(o)
}

// verify accepts exactly one header with one time and a signature over the raw
// bytes, made with any of the secrets. A stale request is told from a forged one
// only if it was signed. The library's own check takes a time of the future, an
// empty secret and two times.
func (c *Channel) verify(h http.Header, body []byte, now time.Time) error {
	lines := h.Values("Stripe-Signature")
	if len(lines) != 1 {
		return fmt.Errorf("want one signature header, got %d: %w", len(lines), channels.ErrUnverified)
	}
	var stamps, sigs []string
	for part := range strings.SplitSeq(lines[0], ",") {
		key, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || value == "" || strings.Contains(value, "="):
			return fmt.Errorf("signature header has no form: %w", channels.ErrUnverified)
		case key == "t":
			stamps = append(stamps, value)
		case key == "v1":
			sigs = append(sigs, value)
		}
	}
	if len(stamps) != 1 || len(sigs) == 0 {
		return fmt.Errorf("want one time and a v1 signature, got %d and %d: %w", len(stamps), len(sigs), channels.ErrUnverified)
	}
	at, ok := channels.Seconds(stamps[0])
	if !ok {
		return fmt.Errorf("timestamp is not decimal: %w", channels.ErrUnverified)
	}
	var signed bool
	for _, s := range c.secrets {
		want := []byte(signature(s, stamps[0], body))
		for _, sig := range sigs {
			signed = hmac.Equal([]byte(sig), want) || signed
		}
	}
	if !signed {
		return fmt.Errorf("signature does not match: %w", channels.ErrUnverified)
	}
	return channels.Fresh(at, now)
}

// signature is the v1 signature over the text of a time and a body.
func signature(secret []byte, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// Sign returns the headers that Stripe would send with a body.
func (c *Channel) Sign(_ string, body []byte, now time.Time) http.Header {
	stamp := strconv.FormatInt(now.Unix(), 10)
	return http.Header{"Stripe-Signature": {"t=" + stamp + ",v1=" + signature(c.secrets[0], stamp, body)}}
}

// An object is a JSON object; its numbers are json.Number.
type object map[string]any

// parse reads one JSON object and nothing after it.
func parse(body []byte) (object, error) {
	var o object
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&o) != nil || o == nil {
		return nil, fmt.Errorf("body is no JSON object: %w", channels.ErrMalformed)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("body goes on after its JSON: %w", channels.ErrMalformed)
	}
	return o, nil
}

// text is a field that is a text, "" if it is anything else.
func (o object) text(key string) string {
	s, _ := o[key].(string)
	return s
}

// object is a field that is an object, nil if it is anything else.
func (o object) object(key string) object {
	m, _ := o[key].(map[string]any)
	return m
}

// id is what a field names: an id, or an object that was expanded in its place.
func (o object) id(key string) string {
	s := o.text(key)
	if s == "" {
		s = o.object(key).text("id")
	}
	if !isID(s) {
		return ""
	}
	return s
}

func ignored(id, reason string) channels.Inbound {
	return channels.Inbound{Ignored: []channels.Ignored{{ID: id, Reason: reason}}}
}
