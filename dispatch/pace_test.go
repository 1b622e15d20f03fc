package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
)

// A hand moves a clock.
type hand struct{ now time.Time }

func (h *hand) clock() time.Time     { return h.now }
func (h *hand) pass(d time.Duration) { h.now = h.now.Add(d) }

func TestPace(t *testing.T) {
	t.Parallel()
	every := channels.Limits{RoomEvery: time.Second}
	a, b, c := thread("r", "a"), thread("r", "b"), thread("r", "c")
	want := func(t *testing.T, what string, got, want time.Duration) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for name, test := range map[string]func(*testing.T, *pacer, *hand){
		"free until refused": func(t *testing.T, p *pacer, _ *hand) {
			for range 100 {
				want(t, "wait", p.wait(a), 0)
			}
		},
		"exactly as told": func(t *testing.T, p *pacer, h *hand) {
			want(t, "refused", p.limited(a, 7*time.Second, every), 7*time.Second)
			h.pass(7*time.Second - 1)
			want(t, "early", p.wait(a), 1)
			h.pass(1)
			want(t, "in time", p.wait(a), 0)
			want(t, "the next of the thread", p.wait(a), time.Second)
		},
		"in a row": func(t *testing.T, p *pacer, h *hand) {
			want(t, "a", p.limited(a, 7*time.Second, every), 7*time.Second)
			want(t, "b", p.limited(b, 7*time.Second, every), 8*time.Second)
			want(t, "c", p.wait(c), 9*time.Second)
			want(t, "c again", p.wait(c), 9*time.Second)
			h.pass(8 * time.Second)
			want(t, "b at its place", p.wait(b), 0)
			want(t, "a, late", p.wait(a), 0)
			want(t, "c", p.wait(c), time.Second)
		},
		"refused again": func(t *testing.T, p *pacer, h *hand) {
			p.limited(a, time.Second, every)
			p.limited(b, time.Second, every)
			h.pass(time.Second)
			want(t, "a", p.wait(a), 0)
			want(t, "a again", p.limited(a, 5*time.Second, every), 5*time.Second)
			want(t, "b has lost its place", p.wait(b), 6*time.Second)
		},
		"a shorter pause does not shorten a longer one": func(t *testing.T, p *pacer, _ *hand) {
			p.limited(a, time.Minute, every)
			want(t, "b", p.limited(b, time.Second, every), time.Minute+time.Second)
		},
		"least wait": func(t *testing.T, p *pacer, _ *hand) {
			want(t, "without spacing", p.limited(a, 0, channels.Limits{}), 100*time.Millisecond)
			want(t, "with spacing", p.limited(thread("s", ""), 0, every), time.Second)
		},
		"no spacing": func(t *testing.T, p *pacer, _ *hand) {
			want(t, "a", p.limited(a, 5*time.Second, channels.Limits{}), 5*time.Second)
			want(t, "b", p.wait(b), 5*time.Second)
		},
		"other rooms": func(t *testing.T, p *pacer, _ *hand) {
			p.limited(a, time.Minute, every)
			other := a
			other.Account = "B"
			want(t, "room", p.wait(thread("s", "a")), 0)
			want(t, "account", p.wait(other), 0)
		},
		"calm again": func(t *testing.T, p *pacer, h *hand) {
			p.limited(a, time.Second, every)
			h.pass(time.Second + calm)
			want(t, "a", p.wait(a), 0)
			want(t, "b", p.wait(b), 0)
			want(t, "still spaced", p.wait(c), time.Second)
			h.pass(1)
			want(t, "calm", p.wait(b), 0)
			want(t, "calm", p.wait(c), 0)
		},
		"a pause longer than calm": func(t *testing.T, p *pacer, h *hand) {
			p.limited(a, 2*calm, every)
			h.pass(calm + time.Second)
			want(t, "b", p.wait(b), calm)
		},
		"two rooms of an account": func(t *testing.T, p *pacer, h *hand) {
			both := channels.Limits{RoomEvery: time.Second, AccountEvery: 300 * time.Millisecond}
			third := func(root string) time.Duration { return p.wait(thread("third", root)) }
			p.limited(a, time.Second, both)
			want(t, "one alone", third("x"), 0)
			h.pass(together)
			p.limited(thread("s", "a"), time.Second, both)
			want(t, "behind both", third("x"), 600*time.Millisecond)
			want(t, "and after that", third("y"), 900*time.Millisecond)
			want(t, "the same place", third("x"), 600*time.Millisecond)
			other := thread("third", "x")
			other.Account = "B"
			want(t, "another account", p.wait(other), 0)
			h.pass(600 * time.Millisecond)
			want(t, "its turn", third("x"), 0)
			want(t, "the next of the thread", third("x"), 600*time.Millisecond)
			h.pass(400 * time.Millisecond)
			want(t, "the room's own turn", p.wait(thread("s", "a")), 0)
			h.pass(calm)
			want(t, "calm again", third("z"), 0)
			want(t, "calm again", third("z"), 0)
		},
		"two rooms long after each other": func(t *testing.T, p *pacer, h *hand) {
			both := channels.Limits{RoomEvery: time.Second, AccountEvery: time.Second}
			p.limited(a, time.Second, both)
			h.pass(together + 1)
			p.limited(thread("s", "a"), time.Second, both)
			want(t, "a third", p.wait(thread("third", "x")), 0)
		},
		"an account without a limit": func(t *testing.T, p *pacer, _ *hand) {
			p.limited(a, time.Second, every)
			p.limited(thread("s", "a"), time.Second, every)
			want(t, "a third", p.wait(thread("third", "x")), 0)
		},
		"bounded memory": func(t *testing.T, p *pacer, h *hand) {
			for i := range 100 {
				p.limited(thread(fmt.Sprint(i), ""), time.Second, every)
				h.pass(calm)
			}
			if len(p.rooms) > 3 { // two of rooms, one of their account
				t.Errorf("%d rooms are remembered", len(p.rooms))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hand{now: time.Unix(1e9, 0)}
			test(t, newPacer(h.clock), h)
		})
	}
}
