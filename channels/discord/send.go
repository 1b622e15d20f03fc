package discord

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// nonceFor is how long Discord surely knows a nonce: "a few minutes".
const nonceFor = 2 * time.Minute

// Limits are Discord's: commonly five messages in five seconds to a channel, and
// fifty requests a second in all. Answers tell the exact numbers, see buckets. What
// is in doubt for a moment only the nonce settles.
func (c *Channel) Limits() channels.Limits {
	return channels.Limits{RoomEvery: time.Second, AccountEvery: 100 * time.Millisecond, Files: true, Handles: true, SettleAfter: time.Second}
}

// An outgoing message. Nobody is ever notified by one, and links show no preview.
type outgoing struct {
	Content   string                 `json:"content"`
	Flags     discordgo.MessageFlags `json:"flags"`
	Nonce     string                 `json:"nonce,omitempty"`
	Enforce   bool                   `json:"enforce_nonce,omitempty"` // a nonce that came before gets the message made then
	Mentions  allowed                `json:"allowed_mentions"`
	Reference *reference             `json:"message_reference,omitempty"`
	Files     []declared             `json:"attachments,omitempty"`
}

type allowed struct {
	Parse   []string `json:"parse"` // not nil: that would allow all
	Replied bool     `json:"replied_user"`
}

type declared struct {
	ID   int    `json:"id"`
	Name string `json:"filename"`
}

func compose(p chat.Post) outgoing {
	m := outgoing{Content: p.Text, Flags: discordgo.MessageFlagsSuppressEmbeds, Mentions: allowed{Parse: []string{}}}
	if p.Key != "" {
		m.Nonce, m.Enforce = nonce(p.Key), true
	}
	for i, f := range p.Files {
		m.Files = append(m.Files, declared{ID: i, Name: f.Name})
	}
	return m
}

// nonce is what carries a post's key, in the 25 characters that there may be.
func nonce(key string) string {
	sum := sha256.Sum256([]byte(key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:15]))
}

// Send posts one message. The answer to a command fills in what Discord shows
// since, as long as that lasts; all else is a message with a nonce, in a thread
// that is opened for it, or that answers the root where none can be opened.
// Opening a thread and filling in are harmless to repeat; only one request makes
// a message.
func (c *Channel) Send(ctx context.Context, p chat.Post) (ref string, err error) {
	if p.Handle.Secret == "" {
		return c.post(ctx, p)
	}
	hook := "/webhooks/" + escaped(p.Handle.Secret)
	ref, err = c.fill(ctx, hook, p)
	if err != nil || ref != "" {
		return ref, err
	}
	ref, err = c.post(ctx, p)
	if s := status(err); s != http.StatusForbidden && s != http.StatusNotFound {
		return ref, err
	}
	// Not our room: a direct message of others, a guild that has only the commands.
	return c.make(ctx, http.MethodPost, hook+"?wait=true", p, nil)
}

// fill puts a post into the answer that Discord shows as coming. It returns ""
// if something else stands there, or the handle has ended early.
func (c *Channel) fill(ctx context.Context, hook string, p chat.Post) (string, error) {
	original := hook + "/messages/@original"
	var m message
	err := c.call(ctx, http.MethodGet, original, nil, &m)
	switch {
	case status(err) == http.StatusNotFound: // then filling it in fails as well
	case err != nil:
		return "", before(err)
	case m.Flags&discordgo.MessageFlagsLoading == 0 && m.says(p):
		return m.ID, nil
	case m.Flags&discordgo.MessageFlagsLoading == 0:
		return "", nil
	}
	ref, err := c.make(ctx, http.MethodPatch, original, p, nil)
	if s := status(err); s == http.StatusNotFound || s == http.StatusUnauthorized {
		return "", nil
	}
	return ref, err
}

// post makes a message in a channel or thread.
func (c *Channel) post(ctx context.Context, p chat.Post) (string, error) {
	in, answer, se := c.open(ctx, p)
	if se != nil {
		return "", se
	}
	return c.make(ctx, http.MethodPost, "/channels/"+url.PathEscape(in)+"/messages", p, answer)
}

// make is the one request that makes the message, or fills it in.
func (c *Channel) make(ctx context.Context, method, path string, p chat.Post, answer *reference) (string, error) {
	m := compose(p)
	m.Reference = answer
	var made struct {
		ID string `json:"id"`
	}
	err := c.deliver(ctx, method, path, m, p.Files, &made)
	switch {
	case err != nil:
		return "", classify(err)
	case made.ID == "":
		return "", &channels.SendError{Verdict: channels.Unknown, Reason: "answer without message id"}
	}
	return made.ID, nil
}

// deliver sends a message, with its files if it has some.
func (c *Channel) deliver(ctx context.Context, method, path string, m outgoing, files []chat.Attachment, out any) error {
	if len(files) == 0 {
		return c.call(ctx, method, path, m, out)
	}
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part := func(disposition, media string, data []byte) {
		h := textproto.MIMEHeader{"Content-Disposition": {"form-data; " + disposition}, "Content-Type": {media}}
		if f, e := w.CreatePart(h); e != nil {
			err = e
		} else if _, e := f.Write(data); e != nil {
			err = e
		}
	}
	part(`name="payload_json"`, "application/json", head)
	for i, f := range files {
		part(fmt.Sprintf(`name="files[%d]"; filename=%q`, i, strings.Map(plain, f.Name)), f.MediaType, f.Data)
	}
	if e := w.Close(); e != nil {
		err = e
	}
	if err != nil {
		return err // unreachable: a buffer takes everything
	}
	return c.request(ctx, method, path, w.FormDataContentType(), body.Bytes(), out)
}

// plain keeps what may stand in the header of a part.
func plain(r rune) rune {
	if r < ' ' || r == '"' || r == '\\' || r == 0x7f {
		return '_'
	}
	return r
}

// escaped escapes the parts of a handle as parts of a path.
func escaped(secret string) string {
	app, token, _ := strings.Cut(secret, "/")
	return url.PathEscape(app) + "/" + url.PathEscape(token)
}

// says tells whether a message is what a post became.
func (m *message) says(p chat.Post) bool {
	if strings.TrimSpace(m.Content) != strings.TrimSpace(p.Text) || len(m.Attachments) != len(p.Files) {
		return false
	}
	for i, f := range p.Files {
		if m.Attachments[i].Bytes != int64(len(f.Data)) {
			return false
		}
	}
	return true
}

// Find tells whether a post was made. What came back over the Gateway carries
// the nonce. While Discord itself knows the nonce the answer is always no: making
// the message again gets the one that was made. After that the messages since
// then are looked through for one of ours that says the same in the same place.
func (c *Channel) Find(ctx context.Context, p chat.Post, since time.Time) (ref string, err error) {
	if ref = c.echo(nonce(p.Key)); ref != "" {
		return ref, nil
	}
	if c.now().Sub(since) < nonceFor {
		return "", nil
	}
	t := p.Thread
	if t.Root == "" || t.Root == t.Room || strings.HasPrefix(t.Root, commandRoot) {
		ref, err = c.look(ctx, t.Room, p, "", since)
	} else {
		ref, err = c.look(ctx, t.Root, p, "", since)
		if code(err) == discordgo.ErrCodeUnknownChannel || err == nil && ref == "" {
			ref, err = c.look(ctx, t.Room, p, t.Root, since)
		}
	}
	if err != nil {
		return "", classify(err)
	}
	return ref, nil
}

const (
	pageLength = 100
	maxPages   = 50
)

// skew is how far our clock and Discord's may differ.
const skew = time.Minute

// look goes through the messages of a channel since then for what a post became.
// answers is what it must refer to, "" for anything.
func (c *Channel) look(ctx context.Context, channel string, p chat.Post, answers string, since time.Time) (string, error) {
	own := c.identity()
	found := ""
	err := c.history(ctx, c.call, channel, after(since.Add(-skew)), maxPages, func(m *message) bool {
		refers := answers == "" || m.Reference != nil && m.Reference.Message == answers
		if m.Author != nil && (own.user == "" || m.Author.ID == own.user) && refers && m.says(p) {
			found = m.ID
		}
		return found == ""
	})
	return found, err
}

// errMore says that there was more to read than it was worth.
var errMore = fmt.Errorf("too many messages to look through")

// A caller is call, or patient.
type caller func(ctx context.Context, method, path string, in, out any) error

// history reads the messages of a channel that are younger than an id, oldest
// first, until yield returns false. It fails with errMore after some pages.
func (c *Channel) history(ctx context.Context, call caller, channel, after string, pages int, yield func(*message) bool) error {
	for range pages {
		var page []*message
		q := url.Values{"after": {after}, "limit": {fmt.Sprint(pageLength)}}
		if err := call(ctx, http.MethodGet, "/channels/"+url.PathEscape(channel)+"/messages?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		for i := len(page) - 1; i >= 0; i-- { // newest first, within a page
			if page[i] == nil {
				continue
			}
			if !yield(page[i]) {
				return nil
			}
			after = page[i].ID
		}
		if len(page) < pageLength {
			return nil
		}
	}
	return errMore
}

// echoesMost are remembered at once.
const echoesMost = 10_000

// heard notes a message of ours that came back.
func (c *Channel) heard(m *message) {
	var n string
	if json.Unmarshal(m.Nonce, &n) != nil || n == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.echoes) >= echoesMost {
		clear(c.echoes)
	}
	c.echoes[n] = m.ID
}

func (c *Channel) echo(nonce string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.echoes[nonce]
}
