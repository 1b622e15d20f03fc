package dispatch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
)

// shelf is a channel with one file and trouble on the way to it.
type shelf struct {
	fails []channels.SendError
	asked int
}

func (*shelf) Name() string { return "shelf" }

func (s *shelf) Fetch(context.Context, string, chat.File, int64) (chat.Attachment, error) {
	s.asked++
	if s.asked <= len(s.fails) {
		return chat.Attachment{}, &s.fails[s.asked-1]
	}
	return chat.Attachment{Data: []byte("here")}, nil
}

// A file is asked for again where that may help and does not take long.
func TestFetchTriesAgain(t *testing.T) {
	t.Parallel()
	unknown, rejected := channels.SendError{Reason: "timeout"}, channels.SendError{Verdict: channels.Rejected, Reason: "gone"}
	limited := func(d time.Duration) channels.SendError {
		return channels.SendError{Verdict: channels.Limited, RetryAfter: d, Reason: "limited"}
	}
	for _, tt := range []struct {
		name  string
		fails []channels.SendError
		asked int
		got   bool
		took  time.Duration // at least
	}{
		{"at once", nil, 1, true, 0},
		{"trouble", []channels.SendError{unknown, unknown}, 3, true, time.Second},
		{"trouble without end", []channels.SendError{unknown, unknown, unknown}, 3, false, time.Second},
		{"limited", []channels.SendError{limited(5 * time.Second)}, 2, true, 5 * time.Second},
		{"limited for long", []channels.SendError{limited(time.Minute)}, 1, false, 0},
		{"refused", []channels.SendError{rejected}, 1, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{fails: tt.fails}
				began := time.Now()
				got, err := Fetch([]channels.Channel{s}, mem.Open(nil))(t.Context(), turn.Wanted{Thread: chat.Thread{Channel: "shelf"}})
				took := time.Since(began)
				if s.asked != tt.asked || (err == nil) != tt.got || (string(got.Data) == "here") != tt.got || took < tt.took || took > tt.took+5*time.Second {
					t.Errorf("asked %d times in %v: %q, %v", s.asked, took, got.Data, err)
				}
			})
		})
	}
}

// Files of messages over the API are in the store, whatever channel the thread
// is of; a channel that has no files says so.
func TestFetchOfTheAPI(t *testing.T) {
	t.Parallel()
	st := mem.Open(nil)
	thread := chat.Thread{Channel: "shelf", Account: "T1", Room: "C1"}
	if err := st.PutValues(t.Context(), state.FileSpace(thread), state.Value{Key: "F1", Data: []byte("sent")}); err != nil {
		t.Fatal(err)
	}
	s := &shelf{}
	fetch := Fetch([]channels.Channel{s}, st)
	api := chat.Author{ID: "api", Account: chat.APIAccount}
	got, err := fetch(t.Context(), turn.Wanted{Thread: thread, Author: api, File: chat.File{ID: "F1", Name: "a.txt"}})
	if err != nil || string(got.Data) != "sent" || got.Name != "a.txt" || s.asked != 0 {
		t.Errorf("%+v, %v, channel asked %d times", got, err, s.asked)
	}
	if _, err := fetch(t.Context(), turn.Wanted{Thread: thread, Author: api, File: chat.File{ID: "F2"}}); !errors.Is(err, errFileGone) {
		t.Errorf("a file that is gone: %v", err)
	}
	if _, err := fetch(t.Context(), turn.Wanted{Thread: chat.Thread{Channel: "plain"}}); !errors.Is(err, errNoFiles) {
		t.Errorf("a channel without files: %v", err)
	}
}
