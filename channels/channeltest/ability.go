package channeltest

import (
	"context"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// abilities uses what only some channels can do while nobody listens at the
// provider: all of it fails in the way that its port says, soon, and tells nothing.
func (h Harness) abilities(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := h.New(t, addr)
	in, err := c.Receive(h.Route, h.Sign(h.Good, now), h.Good, now)
	if err != nil || len(in.Events) == 0 {
		t.Fatalf("a good request gives %d events, error %v", len(in.Events), err)
	}
	e := in.Events[0]
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if a, ok := c.(channels.Finder); ok {
		// One that can be made again without harm need not look.
		if ref, err := a.Find(ctx, h.Post, time.Now().Add(-time.Hour)); ref != "" || err != nil && verdict(t, err).Verdict == channels.Limited {
			t.Errorf("Find: %q, error %v", ref, err)
		}
	}
	if a, ok := c.(channels.Fetcher); ok {
		if got, err := a.Fetch(ctx, e.Thread.Account, chat.File{ID: "no such file"}, 1000); got.Data != nil || verdict(t, err) == nil {
			t.Errorf("Fetch: %d bytes", len(got.Data))
		}
	}
	if a, ok := c.(channels.Roster); ok {
		role, err := a.Role(ctx, e.Thread.Account, e.Author)
		if quiet(t, err); role != chat.Outsider || err == nil {
			t.Errorf("Role: %v, error %v: it must fail closed", role, err)
		}
	}
	if a, ok := c.(channels.Marker); ok {
		for _, p := range []channels.Progress{channels.Working, channels.Answered, channels.Failed, channels.Cleared} {
			if err := a.Mark(ctx, e.Thread, e.Ref, p); err != nil {
				_ = verdict(t, err) // every failure has one
			}
		}
	}
	if a, ok := c.(channels.Whisperer); ok && verdict(t, a.Whisper(ctx, e, Canary)) == nil {
		t.Error("Whisper")
	}
	if a, ok := c.(channels.Historian); ok {
		took := 0
		take := func(context.Context, channels.Inbound) error { took++; return nil }
		err := a.Missed(ctx, now.Add(-time.Hour), []chat.Thread{e.Thread}, take)
		if quiet(t, err); err == nil || took > 0 {
			t.Errorf("Missed: taken %d times, error %v", took, err)
		}
	}
	if a, ok := c.(channels.Linker); ok {
		if same, _ := a.Linked(ctx, &url.URL{Scheme: "https", Host: "elsewhere.test", Path: "/a/b/c/d"}); same != "" {
			t.Errorf("Linked: %q for a foreign link", same)
		}
	}
	if a, ok := c.(channels.Opener); ok {
		if th := a.Opened(h.Post, h.Ref); th.Validate() != nil || th.Channel != c.Name() || th.Account != h.Post.Thread.Account {
			t.Errorf("Opened: %v", th)
		}
	}
}
