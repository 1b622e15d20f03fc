package dispatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// signer is a fake that shows signs.
type signer struct {
	*fake
	fail error
	hang atomic.Bool // marks are not answered

	mu    sync.Mutex
	shown []string // "ref progress" and "author text"
	at    []time.Duration
}

func (s *signer) Mark(ctx context.Context, _ chat.Thread, ref string, p channels.Progress) error {
	if s.hang.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.show(ref + " " + [...]string{"cleared", "working", "answered", "failed"}[p])
}

func (s *signer) Whisper(_ context.Context, e chat.Event, text string) error {
	return s.show(e.Author.ID + " " + text + e.Handle.Secret)
}

func (s *signer) show(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown, s.at = append(s.shown, what), append(s.at, time.Since(s.start))
	return s.fail
}

func (s *signer) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.shown...)
}

// played is how long the turns of a test take and how they end.
type played struct {
	took    atomic.Int64
	outcome atomic.Value // string
}

func playing(took time.Duration, outcome string) *played {
	p := &played{}
	p.took.Store(int64(took))
	p.outcome.Store(outcome)
	return p
}

// signing runs a test with a gateway whose turns take a time and end so.
func signing(t *testing.T, play *played, test func(*world, *signer)) {
	s := &signer{}
	bubble(t, func(w *world) {
		s.fake = w.chat
		test(w, s)
	}, func(o *Options) {
		s.fake = o.Channels[0].(*fake)
		o.Channels = []channels.Channel{s}
		o.Signs = NewSigns(o.Channels, o.Store, true, o.Clock, o.Logger)
		signs, store := o.Signs, o.Store
		o.Engine = engineFunc(func(ctx, _ context.Context, l state.Lease) error {
			v, err := store.Load(ctx, l.Conversation.ID, 0)
			if err != nil {
				return err
			}
			for _, e := range v.Inbox {
				signs.Progress(l.Conversation.ID, e.Event, "")
				signs.Progress(l.Conversation.ID, e.Event, "") // the next step
			}
			if !sleep(ctx, time.Duration(play.took.Load())) {
				return context.Cause(ctx)
			}
			outcome := play.outcome.Load().(string)
			if outcome == "crash" {
				return errors.New("it crashed")
			}
			if outcome != "" {
				signs.Progress(l.Conversation.ID, chat.Event{}, outcome)
			}
			_, err = store.Commit(ctx, l, state.Batch{Taken: 1 << 40, Release: true})
			return err
		})
	})
}

func (w *world) noted() (out []string) {
	w.Helper()
	vs, err := w.store.ListValues(w.Context(), markSpace, "", 100)
	if err != nil {
		w.Fatal(err)
	}
	for _, v := range vs {
		out = append(out, v.Key)
	}
	return out
}

// A turn that takes long is marked while it is under way and then by its outcome;
// a fast one costs nothing.
func TestMarks(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[string]string{
		"answered": "answered", "declined": "answered", "failed": "failed", "parked": "failed", "needs_human": "failed", "aborted": "cleared", "": "cleared",
	} {
		t.Run("a turn that is "+outcome, func(t *testing.T) {
			t.Parallel()
			play := playing(12*time.Second, outcome)
			signing(t, play, func(w *world, s *signer) {
				w.run()
				e := event("slow", chat.Mention, thread("r", "1"))
				e.Ref = "7"
				w.deliver(e)
				w.pass(11500 * time.Millisecond)
				if d := cmp.Diff([]string{"7 working", "7 working", "7 working"}, s.all()); d != "" {
					t.Errorf("meanwhile (-want +got):\n%s", d)
				}
				if len(w.noted()) != 1 {
					t.Errorf("noted are %v", w.noted())
				}
				w.pass(time.Second)
				play.took.Store(int64(time.Second - time.Millisecond))
				w.deliver(event("fast", chat.Mention, thread("r", "2")))
				w.pass(10 * time.Second)
				if d := cmp.Diff([]string{"7 working", "7 working", "7 working", "7 " + want}, s.all()); d != "" {
					t.Errorf("in the end (-want +got):\n%s", d)
				}
				if n := w.noted(); len(n) > 0 {
					t.Errorf("noted are %v, want none", n)
				}
			})
		})
	}
}

// A mark outlives the turn that set it only until somebody else ends the turn,
// or nobody does.
func TestMarksAreNotLeftBehind(t *testing.T) {
	t.Parallel()
	play := playing(3*time.Second, "crash")
	signing(t, play, func(w *world, s *signer) {
		w.run()
		e := event("m", chat.Mention, thread("r", "1"))
		e.Ref = "7"
		w.deliver(e)
		w.pass(3500 * time.Millisecond) // it has crashed, its lease runs out
		play.outcome.Store("answered")
		w.pass(20 * time.Second)
		if d := cmp.Diff([]string{"7 working", "7 working", "7 answered"}, s.all()); d != "" {
			t.Errorf("after a crash (-want +got):\n%s", d)
		}
		// One that nobody ends: its process died between the end and the swap.
		if err := w.gw.Signs.put(w.Context(), markSpace, "c1 key", mark{Thread: thread("r", "2"), Ref: "8", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		w.pass(lostAfter - time.Second)
		if n := w.noted(); len(n) != 1 {
			t.Errorf("noted are %v, want the one that may have an owner", n)
		}
		s.mu.Lock()
		s.fail = refused(channels.NotMade, 0)
		s.mu.Unlock()
		w.pass(2 * sweepLost)
		if n := w.noted(); len(n) != 1 {
			t.Errorf("noted are %v, want the one that could not be taken away", n)
		}
		s.mu.Lock()
		s.fail = nil
		s.mu.Unlock()
		w.pass(2 * sweepLost)
		if n := w.noted(); len(n) > 0 {
			t.Errorf("noted are %v, want none", n)
		}
		if all := s.all(); all[len(all)-1] != "8 cleared" {
			t.Errorf("shown was %v", all)
		}
	})
}

// A provider that does not answer holds up neither a turn's end for each of its
// marks nor a stop; the marks are kept for the sweep.
func TestMarksThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	signing(t, playing(3*time.Second, "answered"), func(w *world, s *signer) {
		const marks = 10
		for i := range marks {
			e := event(fmt.Sprint("m", i), chat.Mention, thread("r", "1"))
			e.Ref = fmt.Sprint(i)
			if _, err := w.gw.admit(w.Context(), []chat.Event{e}); err != nil {
				t.Fatal(err)
			}
		}
		w.run()
		w.pass(2 * time.Second)
		s.hang.Store(true)
		if took, err := w.drained(); took > time.Second+markTime || err != nil {
			t.Errorf("stopped after %v with %v", took, err)
		}
		if n := w.noted(); len(n) != marks {
			t.Errorf("noted are %v, want all %d", n, marks)
		}
	})
}

// Without marks, and in a channel that has none, nothing is kept.
func TestNoMarks(t *testing.T) {
	t.Parallel()
	s := &signer{fake: &fake{}}
	for name, signs := range map[string]*Signs{
		"switched off": NewSigns([]channels.Channel{s}, nil, false, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil))),
		"no marker":    NewSigns([]channels.Channel{&fake{}}, nil, true, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil))),
	} {
		m := signs.begin("c")
		signs.Progress("c", event("e", chat.Mention, thread("r", "1")), "")
		signs.Progress("other", event("e", chat.Mention, thread("r", "1")), "")
		signs.show(t.Context(), state.Lease{}, m)
		signs.end(t.Context(), "c", m, false)
		if len(s.all()) > 0 || len(m.wanted) > 0 || len(signs.turns) > 0 {
			t.Errorf("%s: shown %v, wanted %v", name, s.all(), m.wanted)
		}
	}
}

// Who is refused is told so once an hour in each room, and nobody else is.
func TestRefusalsAreWhispered(t *testing.T) {
	t.Parallel()
	signing(t, playing(0, "answered"), func(w *world, s *signer) {
		w.run()
		refuse := func(author, room string) {
			e := event("e", chat.Mention, thread(room, "1"))
			e.Author.ID, e.Ref = author, "7"
			w.gw.Signs.Refused(e, "no")
			w.pass(time.Millisecond)
		}
		h := kept{chat.Handle{Secret: " by handle", Until: time.Now().Add(time.Minute)}, "U1"}
		if err := w.gw.Signs.put(w.Context(), handleSpace("fake"), handleKey(thread("r", "1"), "7"), h); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			refuse("U1", "r")
		}
		refuse("", "r")
		refuse("U2", "r")
		refuse("U1", "s")
		w.pass(whisperEvery - time.Minute)
		refuse("U1", "r")
		w.pass(2 * time.Minute)
		refuse("U1", "r")
		if d := cmp.Diff([]string{"U1 no by handle", "U2 no", "U1 no", "U1 no"}, s.all()); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
		if n := len(w.log.find("refusal told")); n != 4 {
			t.Errorf("%d were logged, want 4", n)
		}
		w.pass(2 * whisperEvery)
		if vs, err := w.store.ListValues(w.Context(), whisperSpace, "", 10); err != nil || len(vs) > 0 {
			t.Errorf("%d are remembered, %v; want none", len(vs), err)
		}
		for i := range 2 * mostWhispers {
			w.gw.Signs.Refused(event("e", chat.Mention, thread(fmt.Sprint(i), "1")), "no")
		}
		w.pass(time.Second)
		if n := len(w.log.find("refusal not told")); n == 0 || n > mostWhispers {
			t.Errorf("%d of too many were not told", n)
		}
	})
}
