package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	maxBytes     = 1 << 20 // of a body
	maxTextBytes = 32 << 10
	maxKeyBytes  = 200 // of an id, a thread, a coalescing key
)

// Routes has a route for each source.
func (c *Channel) Routes() []channels.Route {
	var out []channels.Route
	for _, name := range slices.Sorted(maps.Keys(c.sources)) {
		out = append(out, channels.Route{Name: name, MediaTypes: []string{"application/json"}, MaxBytes: maxBytes})
	}
	return out
}

// Receive verifies one request and makes the event that its templates say.
func (c *Channel) Receive(route string, header http.Header, body []byte, now time.Time) (channels.Inbound, error) {
	h := c.sources[route]
	if h == nil {
		return channels.Inbound{}, fmt.Errorf("route %q: %w", route, channels.ErrMalformed)
	}
	by, err := h.scheme.verify(header, body, now)
	if err != nil {
		return channels.Inbound{}, err
	}
	var payload any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // so that numbers are shown as they were written
	if d.Decode(&payload) != nil {
		return channels.Inbound{}, fmt.Errorf("body is no JSON: %w", channels.ErrMalformed)
	}
	if _, err := d.Token(); err != io.EOF {
		return channels.Inbound{}, fmt.Errorf("body goes on after its JSON: %w", channels.ErrMalformed)
	}
	return h.inbound(by, payload, body)
}

// Sign returns the headers that the sender of a source would send with a body. An
// id that it would make is one of the content.
func (c *Channel) Sign(route string, body []byte, now time.Time) http.Header {
	if h := c.sources[route]; h != nil {
		return h.scheme.sign(digest(body), body, now)
	}
	return nil
}

// digest names a body by its content.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16])
}

// inbound maps a payload to what it means for us; pure.
func (h *source) inbound(by signed, payload any, body []byte) (channels.Inbound, error) {
	if h.id != nil {
		by.id = "" // not the event's
	}
	id := by.id
	if id == "" {
		id = digest(body)
	}
	var room, same string
	for _, t := range []struct {
		template *template.Template
		to       *string
	}{{h.id, &id}, {h.thread, &room}, {h.coalesce, &same}} {
		if t.template == nil {
			continue
		}
		text, err := fill(t.template, payload, maxKeyBytes)
		if errors.Is(err, errLong) {
			return ignored(by.id, "key too long"), nil
		}
		if err != nil {
			return ignored(by.id, "template does not fit"), nil
		}
		*t.to = text
	}
	text, err := fill(h.text, payload, maxTextBytes)
	switch {
	case errors.Is(err, errLong):
		text += "…"
	case err != nil:
		return ignored(by.id, "template does not fit"), nil
	case text == "":
		return ignored(by.id, "template gave nothing"), nil
	}
	if id == "" {
		return ignored(by.id, "no event id"), nil
	}
	if h.within > 0 && same != "" {
		same += "@" + strconv.FormatInt(by.at/int64(h.within/time.Second), 10)
	}
	if same != "" {
		same = h.name + "/" + same
	}
	e := chat.Event{
		ID: h.name + "/" + id, Same: same, Thread: chat.Thread{Channel: Name, Account: h.name, Room: room},
		Kind: chat.Notice, Topic: h.name, Text: text, Facts: map[string]string{"source": h.name, "id": id},
	}
	if err := e.Thread.Validate(); err != nil {
		return ignored(by.id, "key too long"), nil
	}
	return channels.Inbound{Events: []chat.Event{e}}, nil
}

// errLong says that a template gave more than it may; what it may is there.
var errLong = errors.New("too long")

// null is what templates make of JSON's null.
const null = "<no value>"

// fill carries out a template, at most so many bytes of it. What is null is nothing.
func fill(t *template.Template, payload any, most int) (string, error) {
	w := &bounded{most: most}
	err := t.Execute(w, payload)
	if w.full {
		err = errLong
	}
	text := strings.ReplaceAll(w.String(), null, "")
	return strings.TrimSpace(strings.ToValidUTF8(text, "")), err
}

// bounded takes bytes up to a number and then ends its writer.
type bounded struct {
	bytes.Buffer
	most int
	full bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); len(p) > room {
		b.full = true
		n, _ := b.Buffer.Write(p[:room])
		return n, errLong
	}
	return b.Buffer.Write(p)
}

func ignored(id, reason string) channels.Inbound {
	return channels.Inbound{Ignored: []channels.Ignored{{ID: id, Reason: reason}}}
}
