package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/discord"
)

const (
	postMessage = "POST /channels/{}/messages"
	openThread  = "POST /channels/{}/messages/{}/threads"
)

// faults gives each call of a method the next fault of its list.
func faults(by map[string][]fake.Fault) func(fake.Call) fake.Fault {
	var mu sync.Mutex
	return func(c fake.Call) fake.Fault {
		mu.Lock()
		defer mu.Unlock()
		q := by[c.Method]
		if len(q) == 0 {
			return fake.Fault{}
		}
		by[c.Method] = q[1:]
		return q[0]
	}
}

// send posts and fails the test if that fails.
func (w *world) send(p chat.Post) string {
	w.Helper()
	ref, err := w.c.Send(w.ctx, p)
	if err != nil {
		w.Fatal(err)
	}
	return ref
}

func (w *world) onlyPost() fake.Post {
	w.Helper()
	posts := w.Posts()
	if len(posts) != 1 {
		w.Fatalf("%d posts: %+v", len(posts), posts)
	}
	return posts[0]
}

// The answer to a mention goes into a thread that is opened from it, once.
func testThreadIsOpened(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		faults map[string][]fake.Fault
		opened bool // by somebody else, before
	}{
		{"opened", nil, false},
		{"opened already", nil, true},
		{"opened, and the answer lost", map[string][]fake.Fault{openThread: {{Cut: true}}}, false},
		{"limited first", map[string][]fake.Fault{openThread: {{Status: 429, RetryAfter: 0.01}}}, false},
		{"broken first", map[string][]fake.Fault{openThread: {{Status: 502}}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Options{Hook: faults(tc.faults)})
			root := w.Mention(fake.Words{Text: "hello"})
			if tc.opened {
				w.Set(fake.Channel{ID: root, Kind: fake.Public, Parent: fake.General})
			}
			th := chat.Thread{Channel: Name, Account: guild, Room: fake.General, Root: root}
			ref, err := w.c.Send(w.ctx, chat.Post{Key: "k", Thread: th, Text: "hi"})
			for tries := 0; err != nil && tries < 3; tries++ {
				if v := verdictOf(err); v != channels.NotMade && v != channels.Limited {
					t.Fatalf("%v: nothing was posted yet", err)
				}
				<-time.After(20 * time.Millisecond) // longer than it is limited
				ref, err = w.c.Send(w.ctx, chat.Post{Key: "k", Thread: th, Text: "hi"})
			}
			if err != nil {
				t.Fatal(err)
			}
			if p := w.onlyPost(); p.Channel != root || p.Thread != th || p.ID != ref || p.Text != "hi" {
				t.Errorf("post %+v", p)
			}
			w.send(chat.Post{Key: "k2", Thread: th, Text: "more"})
			if n := w.Calls(openThread); n > 2 {
				t.Errorf("%d tries to open the thread", n)
			}
		})
	}
}

// Where no thread can be opened the answer is a reply to the root, and who
// refused is not asked again and again.
func testNoThread(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		room  fake.Channel
		gone  bool // the root
		tries int  // to open one, for two answers
	}{
		{"not allowed", fake.Channel{ID: fake.General, NoThreads: true}, false, 1},
		{"voice", fake.Channel{ID: fake.General, Kind: fake.Voice}, false, 0},
		{"root is gone", fake.Channel{ID: fake.General}, true, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fake.Options{Channels: []fake.Channel{tc.room}})
			root := w.Mention(fake.Words{Text: "hello"})
			want := root
			if tc.gone {
				want = ""
				if err := w.Delete(fake.General, root); err != nil {
					t.Fatal(err)
				}
			}
			th := chat.Thread{Channel: Name, Account: guild, Room: fake.General, Root: root}
			for i := range 2 {
				w.send(chat.Post{Key: fmt.Sprint(i), Thread: th, Text: "hi", ReplyTo: root})
			}
			for _, p := range w.Posts() {
				if p.Channel != fake.General || p.Reference != want {
					t.Errorf("post %+v", p)
				}
			}
			if n := w.Calls(openThread); n != tc.tries {
				t.Errorf("%d tries to open a thread", n)
			}
		})
	}
}

// Other places are posted to as they are.
func TestPlacesOfPosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	topic := w.Topic(fake.Words{Text: "how?"})
	for _, tc := range []struct{ room, root, want string }{
		{fake.General, "", fake.General},
		{fake.General, "i5", fake.General},
		{fake.DM, "", fake.DM},
		{fake.Help, topic, topic},
		{topic, topic, topic},
	} {
		th := chat.Thread{Channel: Name, Account: guild, Room: tc.room, Root: tc.root}
		w.send(chat.Post{Key: tc.room + tc.root, Thread: th, Text: "x"})
		posts := w.Posts()
		if p := posts[len(posts)-1]; p.Channel != tc.want || p.Reference != "" {
			t.Errorf("%v: %+v", th, p)
		}
	}
	if n := w.Calls(openThread); n != 0 {
		t.Errorf("%d threads opened", n)
	}
	// A post that opens something is gone on with where it stands.
	if th := w.c.Opened(chat.Post{Thread: chat.Thread{Channel: Name, Account: guild, Room: fake.General}}, "9"); th.Root != "9" {
		t.Errorf("opened %v", th)
	}
	if th := w.c.Opened(chat.Post{Thread: chat.Thread{Channel: Name, Account: direct, Room: fake.DM}}, "9"); th.Root != "" {
		t.Errorf("opened %v", th)
	}
}

// Nobody is notified, whatever a text says.
func testNobodyIsNotified(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	w.send(chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: direct, Room: fake.DM}, Text: "@everyone @here <@1> <@&2> <@!3>"})
	if p := w.onlyPost(); len(p.Notified) != 0 || p.Flags != 4 || len(p.Nonce) == 0 || len(p.Nonce) > 25 {
		t.Errorf("post %+v", p)
	}
}

// A long answer is sent in parts that Discord takes, fences whole, in order.
func testLongAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	code := strings.Repeat("line of code 👩‍👩‍👧\n", 500)
	parts := w.c.Compose("Before.\n\n```go\n"+code+"```\n\nAfter.", chat.Member)
	for i, part := range parts {
		if strings.Count(part, "```")%2 != 0 {
			t.Errorf("part %d breaks a fence", i)
		}
		w.send(chat.Post{Key: fmt.Sprint(i), Thread: chat.Thread{Channel: Name, Account: direct, Room: fake.DM}, Text: part})
	}
	all := ""
	for _, p := range w.Posts() {
		all += p.Text
	}
	if n := strings.Count(all, "line of code"); n != 500 || !strings.HasPrefix(all, "Before.") || !strings.HasSuffix(all, "After.") {
		t.Errorf("%d lines in %d parts", n, len(parts))
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	th := chat.Thread{Channel: Name, Account: direct, Room: fake.DM}
	w.send(chat.Post{Key: "k", Thread: th, Text: "see", Files: []chat.Attachment{
		{Name: "answer.md", MediaType: "text/markdown", Data: []byte("# hi")}, {Name: "a\"\r\nb.txt", MediaType: "text/plain", Data: []byte("x")},
	}})
	p := w.onlyPost()
	if len(p.Files) != 2 || p.Files[0].Name != "answer.md" || p.Files[0].Type != "text/markdown" || string(p.Files[0].Data) != "# hi" || p.Files[1].Name != "a___b.txt" || p.Text != "see" {
		t.Errorf("post %+v", p)
	}
}

// TestUnknownOutcome has what happens to a post that was made, or not, without
// our knowing it: it is visible once.
func testUnknownOutcome(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		fault  fake.Fault
		wait   time.Duration // until it is looked for
		forget bool          // Discord does not know the nonce any more
	}{
		{"made, then the connection was cut", fake.Fault{Cut: true}, 30 * time.Second, false},
		{"not made", fake.Fault{Lose: true}, 30 * time.Second, false},
		{"broken", fake.Fault{Status: 502}, 30 * time.Second, false},
		{"made, half an hour ago", fake.Fault{Cut: true}, 30 * time.Minute, true},
		{"not made, half an hour ago", fake.Fault{Lose: true}, 30 * time.Minute, true},
	} {
		for _, place := range []string{"thread", "reply", "direct"} {
			t.Run(tc.name+", "+place, func(t *testing.T) {
				t.Parallel()
				var ahead time.Duration
				w := newWorld(t, fake.Options{
					Hook: faults(map[string][]fake.Fault{postMessage: {tc.fault}}), Channels: []fake.Channel{{ID: fake.General, NoThreads: place == "reply"}, {ID: fake.DM, Kind: fake.Direct}},
				}, func(o *Options) { o.Clock = func() time.Time { return time.Now().Add(ahead) } })
				p := chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: guild, Room: fake.General, Root: w.Mention(fake.Words{Text: "hello"})}, Text: "the answer"}
				if place == "direct" {
					p.Thread = chat.Thread{Channel: Name, Account: direct, Room: fake.DM}
				}
				since := w.c.now()
				if _, err := w.c.Send(w.ctx, p); verdictOf(err) != channels.Unknown {
					t.Fatalf("%v, want unknown", err)
				}
				if ahead = tc.wait; tc.forget {
					w.ForgetNonces()
				}
				ref, err := w.c.Find(w.ctx, p, since)
				if err != nil {
					t.Fatal(err)
				}
				if ref == "" {
					ref = w.send(p)
				}
				if got := w.onlyPost(); got.ID != ref {
					t.Errorf("ref %s of post %+v", ref, got)
				}
			})
		}
	}
}

// A message that came back over the Gateway is known by its nonce, whatever it says.
func TestEcho(t *testing.T) {
	t.Parallel()
	w := connected(t, fake.Options{Hook: faults(map[string][]fake.Fault{postMessage: {{Cut: true}}})})
	p := chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: direct, Room: fake.DM}, Text: "x"}
	if _, err := w.c.Send(w.ctx, p); verdictOf(err) != channels.Unknown {
		t.Fatalf("%v, want unknown", err)
	}
	w.passed("own message")
	ref, err := w.c.Find(w.ctx, p, time.Now())
	if err != nil || ref != w.onlyPost().ID {
		t.Errorf("ref %q, error %v", ref, err)
	}
}

// What others say alike, or we said elsewhere, is not the post.
func TestFindIsStrict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Channels: []fake.Channel{{ID: fake.General, NoThreads: true}}})
	a, b := w.Mention(fake.Words{Text: "a"}), w.Mention(fake.Words{Text: "b"})
	at := func(root string) chat.Thread {
		return chat.Thread{Channel: Name, Account: guild, Room: fake.General, Root: root}
	}
	w.Say(fake.Words{Text: "yes"})
	w.send(chat.Post{Key: "1", Thread: at(a), Text: "yes"})
	old := time.Now().Add(-time.Hour)
	if ref, err := w.c.Find(w.ctx, chat.Post{Key: "2", Thread: at(b), Text: "yes"}, old); ref != "" || err != nil {
		t.Errorf("found %q, error %v", ref, err)
	}
	if ref, err := w.c.Find(w.ctx, chat.Post{Key: "1", Thread: at(a), Text: "yes"}, old); ref == "" || err != nil {
		t.Errorf("found %q, error %v", ref, err)
	}
	w.Set(fake.Channel{ID: fake.General, Absent: true})
	if _, err := w.c.Find(w.ctx, chat.Post{Key: "3", Thread: at(b), Text: "yes"}, old); verdictOf(err) != channels.Rejected {
		t.Errorf("error %v", err)
	}
}

// Of two posts that say the same, one after the other, the second is not taken
// for the first while Discord can tell them apart.
func TestFindTellsTwinsApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{postMessage: {{}, {Lose: true}}})})
	p := chat.Post{Key: "1", Thread: chat.Thread{Channel: Name, Account: direct, Room: fake.DM}, Text: "done"}
	w.send(p)
	p.Key = "2"
	since := time.Now()
	if _, err := w.c.Send(w.ctx, p); verdictOf(err) != channels.Unknown {
		t.Fatal(err)
	}
	if ref, err := w.c.Find(w.ctx, p, since); ref != "" || err != nil {
		t.Fatalf("found %q, error %v", ref, err)
	}
	if w.send(p); len(w.Posts()) != 2 {
		t.Errorf("posts %+v", w.Posts())
	}
}

// Find reads on over pages, to an end.
func TestFindReadsPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{})
	dm := chat.Thread{Channel: Name, Account: direct, Room: fake.DM}
	old := time.Now().Add(-time.Hour)
	for range 150 {
		w.Say(fake.Words{Channel: fake.DM, Text: "noise"})
	}
	ref := w.send(chat.Post{Key: "k", Thread: dm, Text: "needle"})
	if got, err := w.c.Find(w.ctx, chat.Post{Key: "k", Thread: dm, Text: "needle"}, old); got != ref || err != nil {
		t.Errorf("found %q, error %v", got, err)
	}
	for range pageLength * maxPages {
		w.Say(fake.Words{Channel: fake.DM, Text: "noise"})
	}
	if _, err := w.c.Find(w.ctx, chat.Post{Key: "none", Thread: dm, Text: "none"}, old); verdictOf(err) != channels.Unknown {
		t.Errorf("error %v", err)
	}
}

// The first answer to a command fills in what Discord shows as coming, the next
// are messages; a handle that has ended is no hindrance.
func testAnswerToACommand(t *testing.T) {
	t.Parallel()
	ask := func(w *world) (chat.Post, fake.Delivery) {
		d := w.Ask(fake.Words{Text: "what?"})
		in, err := w.c.Receive("interactions", d.Header, d.Body, time.Now())
		if err != nil {
			w.Fatal(err)
		}
		if err := w.Reply(d, in.Reply); err != nil {
			w.Fatal(err)
		}
		e := in.Events[0]
		return chat.Post{Key: "k", Thread: e.Thread, Text: "first", ReplyTo: e.Ref, Handle: e.Handle}, d
	}
	via := func(w *world) (out []string) {
		for _, p := range w.Posts() {
			out = append(out, p.Via+" "+p.Text)
		}
		return out
	}
	t.Run("two parts", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fake.Options{})
		p, _ := ask(w)
		w.send(p)
		again := w.send(p) // after a crash
		p.Key, p.Text = "k2", "second"
		w.send(p)
		if d := cmp.Diff([]string{"original first", "message second"}, via(w)); d != "" || again != w.Posts()[0].ID {
			t.Error(d)
		}
	})
	t.Run("with a file", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fake.Options{})
		p, _ := ask(w)
		p.Files = []chat.Attachment{{Name: "answer.md", MediaType: "text/markdown", Data: []byte("# all of it")}}
		if ref := w.send(p); w.send(p) != ref {
			t.Error("made twice")
		}
		if got := w.onlyPost(); got.Via != "original" || len(got.Files) != 1 || string(got.Files[0].Data) != "# all of it" {
			t.Errorf("post %+v", got)
		}
	})
	t.Run("answer lost", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{"PATCH /webhooks/{}/{}/messages/@original": {{Cut: true}}})})
		p, _ := ask(w)
		if _, err := w.c.Send(w.ctx, p); verdictOf(err) != channels.Unknown {
			t.Fatal(err)
		}
		if ref, err := w.c.Find(w.ctx, p, time.Now()); ref == "" && err == nil {
			w.send(p)
		}
		if d := cmp.Diff([]string{"original first"}, via(w)); d != "" {
			t.Error(d)
		}
	})
	t.Run("ended", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fake.Options{})
		p, _ := ask(w)
		p.Handle.Secret = app + "/token-of-nobody"
		w.send(p)
		if d := cmp.Diff([]string{"message first"}, via(w)); d != "" {
			t.Error(d)
		}
	})
	t.Run("not our room", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fake.Options{Channels: []fake.Channel{{ID: fake.General, Absent: true}}})
		p, _ := ask(w)
		w.send(p)
		p.Key, p.Text = "k2", "second"
		w.send(p)
		if d := cmp.Diff([]string{"original first", "follow-up second"}, via(w)); d != "" {
			t.Error(d)
		}
	})
	t.Run("broken", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{"GET /webhooks/{}/{}/messages/@original": {{Status: 500}}})})
		p, _ := ask(w)
		if _, err := w.c.Send(w.ctx, p); verdictOf(err) != channels.NotMade {
			t.Errorf("%v, want not made: it was a look", err)
		}
	})
}

// A full bucket is not asked again before it has room, and others are not held up.
func TestBuckets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Rate: 2})
	to := func(room string) (string, error) {
		return w.c.Send(w.ctx, chat.Post{Key: unique(), Thread: chat.Thread{Channel: Name, Account: guild, Room: room}, Text: "x"})
	}
	for range 2 {
		if _, err := to(fake.General); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		_, err := to(fake.General)
		var se *channels.SendError
		if !errors.As(err, &se) || se.Verdict != channels.Limited || se.RetryAfter <= 0 || se.RetryAfter > 5*time.Second {
			t.Fatalf("error %v", err)
		}
	}
	if n := w.Calls(postMessage); n != 2 {
		t.Errorf("%d requests", n)
	}
	if _, err := to(fake.DM); err != nil {
		t.Errorf("another channel: %v", err)
	}
}

func unique() string { return fmt.Sprint(time.Now().UnixNano()) }

// A limit over all stops all.
func TestGlobalLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fake.Options{Hook: faults(map[string][]fake.Fault{postMessage: {{Status: 429, RetryAfter: 60, Global: true}}})})
	for _, room := range []string{fake.General, fake.DM} {
		_, err := w.c.Send(w.ctx, chat.Post{Key: room, Thread: chat.Thread{Channel: Name, Account: guild, Room: room}, Text: "x"})
		if verdictOf(err) != channels.Limited {
			t.Errorf("%s: %v", room, err)
		}
	}
	if n := w.Calls(postMessage); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Buckets that have room again are forgotten, and open again.
func TestBucketsOverTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n int
		b := newBuckets(roundTrip(func(r *http.Request) (*http.Response, error) {
			n++
			h := http.Header{"X-Ratelimit-Bucket": {"b"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"1.5"}}
			return &http.Response{StatusCode: 200, Header: h, Body: http.NoBody}, nil
		}), time.Now)
		call := func(method, path string) error {
			r, err := http.NewRequestWithContext(context.Background(), method, "http://x.test"+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			res, err := b.RoundTrip(r)
			if err == nil {
				_ = res.Body.Close()
			}
			return err
		}
		if call("POST", "/channels/1/messages") != nil || call("PATCH", "/channels/1/messages/2") == nil && n == 0 {
			t.Fatal("the first call was refused")
		}
		var limited *limitedError
		if err := call("POST", "/channels/1/messages"); !errors.As(err, &limited) || limited.after != 1500*time.Millisecond {
			t.Errorf("error %v", err)
		}
		for i := range 2 * mostSpent {
			if err := call("POST", fmt.Sprintf("/channels/5%d/messages", i)); err != nil {
				t.Fatalf("channel %d: %v", i, err)
			}
		}
		if len(b.spent) > mostSpent {
			t.Errorf("%d buckets remembered", len(b.spent))
		}
		<-time.After(1500 * time.Millisecond)
		if err := call("POST", "/channels/1/messages"); err != nil {
			t.Errorf("after the time: %v", err)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRoutes(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"/api/v10/channels/1/messages":                      {"GET /api/v10/channels/./messages", "1"},
		"/channels/1/messages/2":                            {"GET /channels/./messages/.", "1"},
		"/channels/1/messages/2/reactions/%F0%9F%91%80/@me": {"GET /channels/./messages/./reactions/./@me", "1"},
		"/webhooks/1/to.ken/messages/@original":             {"GET /webhooks/././messages/@original", "1/to.ken"},
		"/guilds/1/members/2":                               {"GET /guilds/./members/.", "1"},
		"/users/@me":                                        {"GET /users/@me", ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x.test"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if route, resource := routeOf(r); route != want[0] || resource != want[1] {
			t.Errorf("%s: %q %q", path, route, resource)
		}
	}
}
