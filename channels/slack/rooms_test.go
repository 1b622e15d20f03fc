package slack

import (
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	fake "github.com/heddlehq/heddle/fakes/slack"
)

// Only a public channel is open, it is asked for once a minute, and what cannot
// be known is an error.
func TestOpen(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	now := time.Unix(1700000000, 0)
	w := fake.New(fake.Options{
		Channels: []fake.Channel{{ID: "C1"}, {ID: "C2", Kind: "group"}, {ID: "G1", Kind: "group"}, {ID: "G2", Kind: "mpim"}, {ID: "D1", Kind: "im"}},
		Hook: func(c fake.Call) fake.Fault {
			if broken.Load() {
				return fake.Fault{Code: "missing_scope"}
			}
			return fake.Fault{}
		},
	})
	srv := httptest.NewServer(w)
	defer srv.Close()
	c := newChannel(t, Options{APIURL: srv.URL, Clock: func() time.Time { return now }})
	ask := func(room string) (bool, error) {
		return c.Open(t.Context(), chat.Thread{Channel: Name, Account: "T0FAKE", Room: room})
	}
	for room, want := range map[string]bool{"C1": true, "C2": false, "G1": false, "G2": false, "D1": false} {
		if got, err := ask(room); got != want || err != nil {
			t.Errorf("%s: %t, error %v, want %t", room, got, err, want)
		}
	}
	if got, err := ask("C9"); got || err == nil {
		t.Errorf("a room that is not there: %t, error %v", got, err)
	}
	broken.Store(true)
	if got, err := ask("C1"); !got || err != nil {
		t.Errorf("within a minute: %t, error %v", got, err)
	}
	now = now.Add(roomAge)
	if got, err := ask("C1"); got || err == nil {
		t.Errorf("after a minute without an answer: %t, error %v", got, err)
	}
}
