package turn

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// storms is how many storms blow, each by a seed of its own.
var storms = flag.Int("storms", 40, "how many storms blow")

// A storm is a conversation in which everything happens at once and at random:
// an agent with all hooks and kinds of tools, a model that does anything, people
// and operators who speak at any time, processes that die, stop or lose their
// lease. What is promised of every log holds all the same.
type storm struct {
	t     *testing.T
	seed  uint64
	w     *world
	calm  bool // nothing happens any more: it must come to an end
	runs  *runs
	kills float64

	mu     sync.Mutex
	rand   *rand.Rand
	events []string // ids of all that was admitted
	stolen bool
	cached bool // the provider has a cache
}

func newStorm(t *testing.T, seed uint64) *storm {
	s := &storm{t: t, seed: seed, rand: rand.New(rand.NewPCG(7, seed))}
	s.kills = []float64{0, 0.005, 0.02, 0.06}[s.n(4)]
	s.runs = &runs{by: map[string]int{}, final: map[string]int{}, life: &life{dies: func(int) bool { return !s.is(nil) && s.chance(s.killing()) }}}
	s.w = worldOf(t, s.agent(0), scripted.Play(s.answer, []time.Duration{0, pace / 2}[s.n(2)]))
	s.runs.world = s.w
	s.cached = s.chance(0.5)
	s.w.timed = true
	s.w.wary.stable = false
	if s.chance(0.5) {
		s.w.window(3000)
	}
	s.w.wary.Provider = livingModel{s.w.wary.Provider, s.runs.life}
	s.w.log = livingLog{s.w.store, s.runs.life}
	s.w.opts.Limits = Limits{Steps: 12, Time: 2 * time.Hour, Attempts: 1000, Crashes: 1000}
	switch s.n(6) {
	case 0:
		s.w.opts.Limits.Attempts, s.w.opts.Limits.Crashes = 0, 0
	case 1:
		s.w.opts.Limits.Time = 20 * time.Second
	case 2:
		s.w.opts.Limits.Tokens = 20_000
	}
	policy := []chat.Policy{chat.Join, chat.Queue, chat.Steer, chat.Replace, chat.Drop}[s.n(5)]
	s.w.opts.Busy = func(chat.Event) chat.Policy { return policy }
	s.w.opts.Talk = chat.Member
	s.w.setRole("boss", chat.Maintainer)
	s.w.setRole("nobody", chat.Outsider)
	s.w.restart()
	return s
}

func (s *storm) killing() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kills
}

func (s *storm) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.IntN(n)
}

func (s *storm) chance(p float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rand.Float64() < p
}

// is says whether it is calm, and makes it so with a value.
func (s *storm) is(calm *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if calm != nil {
		s.calm = *calm
	}
	return s.calm
}

// pause takes a random time, often none.
func (s *storm) pause(ctx context.Context) {
	if d := []time.Duration{0, 0, time.Millisecond, 700 * time.Millisecond, 5 * time.Second}[s.n(5)]; d > 0 {
		_ = sleep(ctx, d)
	}
}

// happen lets somebody do something, now and then.
func (s *storm) happen(p float64) {
	if s.is(nil) || !s.chance(p) {
		return
	}
	switch k := s.n(20); {
	case k < 9:
		s.say([]string{"U1", "U2", "boss"}[s.n(3)], []string{"go on", "yes", "no", "what?", "please " + long(600)}[s.n(5)], chat.Message, false)
	case k < 11:
		s.say("U1", []string{"stop", "cancel"}[s.n(2)], chat.Message, false)
	case k < 12:
		s.say("nobody", "me too", chat.Message, false)
	case k < 13:
		s.say("U1", "changed", chat.Edited, true)
	case k < 14:
		s.control(chat.Pause, "")
	case k < 15:
		s.control(chat.Step, "")
	case k < 17:
		s.control(chat.Resume, "")
	case k < 18:
		s.control(chat.Abort, "")
	default:
		s.control(chat.SetPolicy, []string{"", "join", "queue", "steer", "replace", "drop"}[s.n(6)])
	}
}

func (s *storm) say(who, text string, kind chat.Kind, quiet bool) {
	s.admit(chat.Event{Thread: thread, Kind: kind, Text: text, Author: chat.Author{ID: who}, Ref: "1"}, quiet)
}

func (s *storm) control(topic, text string) {
	s.w.setRole("op", chat.Admin)
	s.admit(chat.Event{Thread: thread, Kind: chat.Control, Topic: topic, Text: text, Author: chat.Author{ID: "op"}}, false)
}

func (s *storm) admit(e chat.Event, quiet bool) {
	if e.Kind != chat.Control && e.Kind != chat.Edited && s.chance(0.15) {
		e.Want = json.RawMessage(orderSchema)
	}
	s.mu.Lock()
	e.ID = fmt.Sprint("E", len(s.events)+1)
	s.events = append(s.events, e.ID)
	s.mu.Unlock()
	if !s.is(nil) && s.chance(0.05) {
		s.w.mu.Lock()
		s.w.blind += 3
		s.w.mu.Unlock()
	}
	s.w.event(e, quiet)
}

// blow runs the conversation until it is idle; processes come and go.
func (s *storm) blow() {
	for {
		ctx := s.runs.life.born()
		l, err := s.w.store.Claim(ctx, "one", time.Minute)
		if errors.Is(err, state.ErrNone) {
			return
		}
		if err != nil {
			s.t.Fatal(err)
		}
		soft, stop := context.WithCancel(context.Background())
		hard, shut := context.WithCancelCause(ctx)
		if !s.is(nil) && s.chance(0.1) {
			time.AfterFunc(time.Duration(s.n(3000))*time.Millisecond, stop)
		}
		if !s.is(nil) && s.chance(0.1) {
			time.AfterFunc(time.Duration(s.n(3000))*time.Millisecond, func() { shut(errors.New("shutting down")) })
		}
		if !s.is(nil) && s.chance(0.1) {
			s.steal(hard, soft, shut, l)
			stop()
			continue
		}
		err = s.w.engine.Run(hard, soft, l)
		died, shutting := s.runs.life.ended(), hard.Err() != nil
		stop()
		shut(nil)
		switch {
		case died:
			synctest.Wait() // what it left behind is gone
			s.runs.mark()
			s.w.store.Expire()
			s.w.restart()
		case shutting:
			s.w.restart()
		case err != nil:
			s.t.Fatalf("seed %d: %v", s.seed, err)
		}
		if s.chance(0.2) {
			s.w.restart()
		}
		s.post()
		if _, open := s.w.boxes.counts(); open != 0 {
			s.t.Errorf("seed %d: %d sandboxes are open", s.seed, open)
		}
		s.w.checkFold(fmt.Sprint("seed ", s.seed), s.w.present())
	}
}

// steal has a worker lose its lease, which learns of it late, while another one
// goes on.
func (s *storm) steal(hard, soft context.Context, shut context.CancelCauseFunc, l state.Lease) {
	kills := s.setKills(0)
	s.stolen = true
	first := s.w.engine
	var both sync.WaitGroup
	both.Go(func() { _ = first.Run(hard, soft, l) })
	_ = sleep(context.Background(), time.Duration(s.n(2000))*time.Millisecond)
	s.w.store.Expire()
	s.w.restart()
	if l, err := s.w.store.Claim(context.Background(), "two", time.Minute); err == nil {
		second := s.w.engine
		both.Go(func() {
			if err := second.Run(context.Background(), context.Background(), l); err != nil {
				s.t.Errorf("seed %d: the second worker: %v", s.seed, err)
			}
		})
	}
	_ = sleep(context.Background(), time.Duration(s.n(2000))*time.Millisecond)
	shut(state.ErrLeaseLost)
	both.Wait()
	s.setKills(kills)
	s.post()
	s.w.checkFold(fmt.Sprint("seed ", s.seed), s.w.present())
}

func (s *storm) setKills(p float64) (old float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.kills = s.kills, p
	return old
}

// fork makes another conversation of what ended at one of its turns, which goes
// on by itself.
func (s *storm) fork() {
	v := s.w.view()
	var at []int64
	f := &record.Fold{}
	for i := range v.Records {
		if err := f.Add(v.Records[i : i+1]); err != nil {
			s.t.Fatal(err)
		}
		if f.Turn == nil {
			at = append(at, f.Seq)
		}
	}
	seq := at[s.n(len(at))]
	own, err := record.Encode(record.Forked{From: v.Conversation.ID, Seq: seq})
	if err != nil {
		s.t.Fatal(err)
	}
	to := chat.Thread{Channel: "slack", Account: "T1", Room: "C2", Root: "fork"}
	if _, err := s.w.store.Fork(context.Background(), v.Conversation.ID, seq, "tested", to, own); err != nil {
		s.t.Fatal(err)
	}
	s.w.opts.Limits = Limits{Steps: 12}
	s.w.restart()
	s.w.event(chat.Event{ID: "F0", Thread: to, Kind: chat.Control, Topic: chat.Resume, Author: chat.Author{ID: "op"}}, false)
	s.w.event(chat.Event{ID: "F1", Thread: to, Kind: chat.Message, Text: "go", Author: chat.Author{ID: "U1"}}, false)
	settled := func() int { return len(of[record.Settled](s.w.recordsOf(to))) }
	before := settled()
	for n := 0; settled() == before; n++ {
		s.w.run()
		time.Sleep(time.Hour)
		s.w.event(chat.Event{ID: fmt.Sprint("F2", n), Thread: to, Kind: chat.Message, Text: "yes", Author: chat.Author{ID: "boss"}}, false)
		if n > 100 {
			s.t.Fatalf("seed %d: the fork at %d does not end: %s", s.seed, seq, trace(s.w.recordsOf(to)))
		}
	}
}

// post delivers what the conversation sends itself, now and then twice.
func (s *storm) post() {
	posts, err := s.w.store.Posts(context.Background(), state.ConversationID("tested", thread))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range posts {
		if p.Post.Thread.Channel != chat.ToConversation {
			continue
		}
		var a state.Admit
		if err := json.Unmarshal([]byte(p.Post.Text), &a); err != nil {
			s.t.Fatal(err)
		}
		s.mu.Lock()
		known := slices.Contains(s.events, a.Event.ID)
		if !known {
			s.events = append(s.events, a.Event.ID)
		}
		s.mu.Unlock()
		if _, err := s.w.store.Admit(context.Background(), []state.Admit{a}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// settle lets the conversation come to its end.
func (s *storm) settle() {
	yes := true
	s.is(&yes)
	s.w.mu.Lock()
	s.w.blind = 0
	s.w.mu.Unlock()
	s.control(chat.Resume, "")
	s.control(chat.SetPolicy, "join")
	for n := 0; ; n++ {
		s.blow()
		f := s.w.present()
		if f.Turn == nil && f.Due == nil && len(s.w.view().Inbox) == 0 {
			return
		}
		if n > 200 {
			s.t.Fatalf("seed %d: it does not end: open %v, waits %+v, inbox %d\n%s", s.seed, f.Turn != nil, f.Waits(), len(s.w.view().Inbox), trace(s.w.records()))
		}
		if n%2 == 0 {
			s.say("boss", "yes", chat.Message, false)
		}
		time.Sleep(time.Hour)
	}
}

func TestStorm(t *testing.T) {
	t.Parallel()
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < *storms/thorough && !t.Failed(); seed += parts {
				synctest.Test(t, func(t *testing.T) {
					s := newStorm(t, uint64(seed))
					for range 3 + s.n(6) {
						s.say("U1", "go", chat.Message, false)
						s.happen(0.5)
						s.blow()
						time.Sleep(time.Duration(s.n(20)) * time.Minute)
					}
					s.settle()
					s.check()
					s.fork()
				})
			}
		})
	}
}
