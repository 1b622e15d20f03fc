package slack

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// The reactions that show how far an answer is.
var reactions = map[channels.Progress]string{channels.Working: "eyes", channels.Answered: "white_check_mark", channels.Failed: "x"}

const (
	statusText  = "is working on it..."
	statusEvery = time.Minute // Slack takes a status away after two
	marksMost   = 10_000      // remembered at once
)

// marks are what is shown at messages and in assistant threads.
type marks struct {
	mu          sync.Mutex
	shown       map[string]shown
	noReactions atomic.Bool // the scope is missing
	noStatus    atomic.Bool
}

type shown struct {
	progress channels.Progress
	at       time.Time
}

// fresh says whether something has to be shown, and takes note of it.
func (m *marks) fresh(key string, p channels.Progress, now time.Time, again time.Duration) (before channels.Progress, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.shown[key]
	if known && s.progress == p && (again == 0 || p != channels.Working || now.Sub(s.at) < again) {
		return p, false
	}
	if len(m.shown) >= marksMost {
		clear(m.shown)
	}
	m.shown[key] = shown{p, now}
	return s.progress, true
}

func (m *marks) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.shown, key)
}

// Mark puts a reaction on the message, or sets the status of an assistant thread,
// which is a thread in a direct message. Slack's refusal for want of a scope is
// told once; then nothing is shown.
func (c *Channel) Mark(ctx context.Context, t chat.Thread, ref string, p channels.Progress) error {
	t, w, err := c.place(ctx, t)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(t.Room, "D") && t.Root != "":
		return c.status(ctx, w, t, p)
	case !isMessage(ref) || c.marks.noReactions.Load():
		return nil
	}
	key := t.Room + "/" + ref
	before, fresh := c.marks.fresh(key, p, c.now(), 0)
	if !fresh {
		return nil
	}
	item := slack.NewRefToMessage(t.Room, ref)
	if name := reactions[p]; name != "" {
		err = done(w.api.AddReactionContext(ctx, name, item), "already_reacted")
	}
	for _, other := range []channels.Progress{channels.Working, channels.Answered, channels.Failed} {
		// What an earlier process has shown is not known; it was Working, if anything.
		if err == nil && other != p && (other == before || other == channels.Working) {
			err = done(w.api.RemoveReactionContext(ctx, reactions[other], item), "no_reaction")
		}
	}
	return c.unmarked(err, key, &c.marks.noReactions)
}

// status shows in an assistant thread that the bot is at work.
func (c *Channel) status(ctx context.Context, w *installation, t chat.Thread, p channels.Progress) error {
	key := t.Room + "/" + t.Root + "/status"
	if _, fresh := c.marks.fresh(key, p, c.now(), statusEvery); !fresh || c.marks.noStatus.Load() {
		return nil
	}
	s := slack.AssistantThreadsSetStatusParameters{ChannelID: t.Room, ThreadTS: t.Root}
	if p == channels.Working {
		s.Status = statusText
		if title := c.titles.take(t.Room + "/" + t.Root); title != "" {
			// A thread without a title is no harm.
			_ = w.api.SetAssistantThreadsTitleContext(ctx, slack.AssistantThreadsSetTitleParameters{ChannelID: t.Room, ThreadTS: t.Root, Title: title})
		}
	}
	return c.unmarked(w.api.SetAssistantThreadsStatusContext(ctx, s), key, &c.marks.noStatus)
}

// unmarked turns the failure of a mark into what is told of it: it is shown
// again at the next call, but never where a scope is missing.
func (c *Channel) unmarked(err error, key string, off *atomic.Bool) error {
	if err == nil {
		return nil
	}
	c.marks.forget(key)
	se := classify(err)
	if se.Reason == "missing_scope" {
		off.Store(true)
	}
	return se
}

// titles are those of assistant threads that began since the start: the first
// line that somebody says there.
type titles struct {
	mu   sync.Mutex
	text map[string]string // by room and root; "" until something was said; guarded by mu
}

const titleRunes = 60

func (t *titles) began(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.text) >= marksMost {
		clear(t.text)
	}
	if _, again := t.text[key]; !again {
		t.text[key] = ""
	}
}

func (t *titles) heard(key, text string) {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > titleRunes {
		line = strings.TrimSpace(string(r[:titleRunes-1])) + "…"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, ok := t.text[key]; ok && had == "" {
		t.text[key] = line
	}
}

// take is the title of a thread, once.
func (t *titles) take(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.text[key]
	if text != "" {
		delete(t.text, key)
	}
	return text
}

// done makes a refusal that says that it is so already no failure.
func done(err error, already ...string) error {
	var code slack.SlackErrorResponse
	if errors.As(err, &code) && slices.Contains(append(already, "message_not_found"), code.Err) {
		return nil
	}
	return err
}
