package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// filesTo is a post with two files to a thread.
func filesTo(t chat.Thread) chat.Post {
	return chat.Post{Key: "turn/1/0", Thread: t, Text: "all of it", Files: []chat.Attachment{
		{Name: "answer.md", MediaType: "text/markdown", Data: []byte("# long")}, {Name: "raw", Data: []byte{0, 1}},
	}}
}

// Files go out with their text as one message in the thread, which can be found
// again by the post's key.
func TestSendFiles(t *testing.T) {
	t.Parallel()
	w, c := workspace(t, fake.Options{}, Access{})
	e := receive(t, c, w.Mention(fake.Words{User: "U0PERSON", Text: "tell me all"}))
	p := filesTo(e.Thread)
	if ref, err := c.Find(t.Context(), p, time.Now()); ref != "" || err != nil {
		t.Fatalf("found before it was sent: %q, %v", ref, err)
	}
	ref, err := c.Send(t.Context(), p)
	posts := w.Posts()
	if err != nil || len(posts) != 1 || ref != posts[0].Files[0].ID {
		t.Fatalf("ref %q, %v, posts %+v", ref, err, posts)
	}
	if posts[0].Text != p.Text || posts[0].Thread != e.Thread || posts[0].Asked != e.Thread.Root {
		t.Errorf("posted %+v", posts[0])
	}
	for i, f := range posts[0].Files {
		if f.Title != p.Files[i].Name || !bytes.Equal(f.Data, p.Files[i].Data) || !strings.HasPrefix(f.Name, strings.TrimSuffix(p.Files[i].Name, ".md")+"-") {
			t.Errorf("file %d: %+v", i, f)
		}
	}
	found, err := c.Find(t.Context(), p, time.Now())
	if err != nil || found != posts[0].TS {
		t.Errorf("found %q, %v; want %s", found, err, posts[0].TS)
	}
	other := p
	other.Key = "turn/1/1"
	if found, err := c.Find(t.Context(), other, time.Now()); found != "" || err != nil {
		t.Errorf("another post was found: %q, %v", found, err)
	}
}

// Nobody sees a file before the last request, so only that leaves a doubt.
func TestSendFilesVerdicts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method string
		fault  fake.Fault
		want   channels.Verdict
	}{
		{"files.getUploadURLExternal", fake.Fault{Lose: true}, channels.NotMade},
		{"files.getUploadURLExternal", fake.Fault{Status: 429, RetryAfter: "2"}, channels.Limited},
		{"files.getUploadURLExternal", fake.Fault{Code: "missing_scope"}, channels.Rejected},
		{"upload", fake.Fault{Lose: true}, channels.NotMade},
		{"upload", fake.Fault{Status: 500}, channels.NotMade},
		{"files.completeUploadExternal", fake.Fault{Cut: true}, channels.Unknown},
		{"files.completeUploadExternal", fake.Fault{Code: "channel_not_found"}, channels.Rejected},
	} {
		t.Run(fmt.Sprint(tt.method, tt.fault), func(t *testing.T) {
			t.Parallel()
			w, c := workspace(t, fake.Options{Hook: func(c fake.Call) fake.Fault {
				if c.Method == tt.method {
					return tt.fault
				}
				return fake.Fault{}
			}}, Access{})
			d := w.Mention(fake.Words{User: "U0PERSON", Text: "tell me all"})
			p := filesTo(receive(t, c, d).Thread)
			_, err := c.Send(t.Context(), p)
			if verdictOf(err) != tt.want {
				t.Fatalf("%v, want %v", err, tt.want)
			}
			ref, err := c.Find(t.Context(), p, time.Now())
			if err != nil || (ref != "") != (tt.want == channels.Unknown) {
				t.Errorf("found %q, %v", ref, err)
			}
		})
	}
}

// Bytes go to Slack's hosts only, and no more of them than a post may have.
func TestSendFilesIsBounded(t *testing.T) {
	t.Parallel()
	var strangers, calls atomic.Int64
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer stranger.Close()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		fmt.Fprintf(w, `{"ok":true,"file_id":"F1","upload_url":%q}`, stranger.URL)
	}))
	defer srv.Close()
	c := newChannel(t, Options{APIURL: srv.URL})
	send := func(files ...chat.Attachment) error {
		_, err := c.Send(context.Background(), chat.Post{Key: "k", Thread: chat.Thread{Channel: Name, Account: "T1", Room: "C1"}, Files: files})
		return err
	}
	half := chat.Attachment{Name: "a", Data: make([]byte, chat.MaxAttached/2)}
	for _, tt := range []struct {
		files []chat.Attachment
		calls int64
	}{{[]chat.Attachment{half, half, {Name: "b", Data: []byte("1")}}, 0}, {[]chat.Attachment{{Name: "none"}}, 0}, {[]chat.Attachment{half, half}, 1}} {
		var se *channels.SendError
		if err := send(tt.files...); !errors.As(err, &se) || se.Verdict != channels.Rejected || calls.Load() != tt.calls {
			t.Errorf("%v after %d calls", err, calls.Load())
		}
	}
	if d := cmp.Diff(int64(0), strangers.Load()); d != "" {
		t.Errorf("requests to a foreign host: %s", d)
	}
}
