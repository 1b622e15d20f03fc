package turn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// A life is that of a process. It may die at every point: before and after each
// commit, model call and tool, and in each callback. When it is dead, nothing
// of it has an effect any more.
type life struct {
	dies func(n int) bool // at the n-th point of all lives, from 1

	mu   sync.Mutex
	n    int
	dead bool
	kill context.CancelCauseFunc
}

// born begins another life.
func (l *life) born() context.Context {
	ctx, kill := context.WithCancelCause(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead, l.kill = false, kill
	return ctx
}

func (l *life) point() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.n++
		if l.dead = l.dies(l.n); l.dead {
			l.kill(errDied)
		}
	}
	if l.dead {
		return errDied
	}
	return nil
}

func (l *life) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

type livingLog struct {
	state.Log
	life *life
}

func (g livingLog) Commit(ctx context.Context, l state.Lease, b state.Batch) (state.Lease, error) {
	if err := g.life.point(); err != nil {
		return l, err
	}
	l, err := g.Log.Commit(ctx, l, b)
	return l, errors.Join(err, g.life.point())
}

type livingModel struct {
	model.Provider
	life *life
}

func (m livingModel) Stream(ctx context.Context, r model.Request, on func(model.Delta)) (model.Response, error) {
	if err := m.life.point(); err != nil {
		return model.Response{}, err
	}
	resp, err := m.Provider.Stream(ctx, r, on)
	if died := m.life.point(); died != nil {
		return resp, died
	}
	return resp, err
}

// runs is the world outside, which outlives processes: it counts how often each
// call, and each step of one, has happened.
type runs struct {
	life  *life
	world *world

	mu     sync.Mutex
	by     map[string]int
	final  map[string]int // of what was recorded when a process died: must not happen again
	marked int64          // the last record that final holds
}

func (r *runs) note(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[key]++
}

// work happens outside. The process may die before and after it.
func (r *runs) work(key string) error {
	if err := r.life.point(); err != nil {
		return err
	}
	r.note(key)
	return r.life.point()
}

// once says whether this is asked for the first time.
func (r *runs) once(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[what]++
	return r.by[what] == 1
}

// mark remembers how often what the log holds has happened.
func (r *runs) mark() {
	v, err := r.world.store.Load(context.Background(), state.ConversationID("tested", thread), r.marked)
	if err != nil {
		r.world.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range v.Records {
		r.marked = rec.Seq
		if rec.Kind == "child" || rec.Kind == "did" || rec.Kind == "memo" {
			b, err := record.Decode(rec)
			if err != nil {
				r.world.t.Error(err)
			}
			r.keep(b)
		}
	}
}

func (r *runs) keep(b record.Body) {
	switch b := b.(type) {
	case record.Child:
		r.keep(b.Body)
	case record.Did:
		key := b.Turn + "/" + b.CallID
		r.final[key] = r.by[key]
	case record.Memo:
		key := b.Turn + "/" + b.Call + "/" + b.Name
		r.final[key] = r.by[key]
	}
}

// play runs a scenario in which the process dies now and then and another one
// goes on, until nothing is left to do.
func (s scenario) play(t testing.TB, dies func(int) bool) (*world, *runs) {
	t.Helper()
	r := &runs{by: map[string]int{}, final: map[string]int{}, life: &life{dies: dies}}
	w := worldOf(t, s.agent(r), scripted.Play(s.model(r), 0))
	r.world = w
	w.wary.stable = false // what was not committed may come in another order
	w.wary.Provider = livingModel{w.wary.Provider, r.life}
	w.log = livingLog{w.store, r.life}
	if s.setup != nil {
		s.setup(w, r)
	}
	w.restart()
	for _, text := range s.says {
		w.say("U1", text)
		for {
			ctx := r.life.born()
			l, err := w.store.Claim(ctx, "test", time.Minute)
			if errors.Is(err, state.ErrNone) {
				if s.more != nil && s.more(w) {
					continue
				}
				break
			}
			if err == nil {
				err = w.engine.Run(ctx, context.Background(), l)
			}
			switch {
			case r.life.ended():
				r.mark()
				w.store.Expire()
				w.restart()
			case err != nil:
				t.Fatal(err)
			}
		}
	}
	return w, r
}

// in runs a test of a scenario where waiting takes no time.
func (s scenario) in(t *testing.T, dies func(int) bool, check func(t *testing.T, w *world, r *runs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, r := s.play(t, dies)
		check(t, w, r)
	})
}

func calm(int) bool { return false }

// The process dies at each point of each scenario: every turn settles once and
// is answered once, no event is lost, no recorded result is computed again, and
// the conversation ends as if nothing had happened, unless a tool was cut off.
// Then the model was told.
func TestCrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	if len(scenarios) < 12 {
		t.Fatalf("%d scenarios, want at least 12", len(scenarios))
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			strict := newStrict()
			var want ending
			points := 0
			s.in(t, calm, func(t *testing.T, w *world, r *runs) {
				checkLog(t, "calm", s, w, r)
				strict.check(t, "calm", w)
				want, points = endOf(w), r.life.n
			})
			if points < 4 || len(want.outcomes) == 0 {
				t.Fatalf("only %d points, ended as %+v", points, want)
			}
			for n := 1; n <= points; n += max(1, thorough/3) {
				s.in(t, func(at int) bool { return at == n }, func(t *testing.T, w *world, r *runs) {
					when := fmt.Sprintf("died at point %d of %d", n, points)
					if r.life.n < n {
						t.Errorf("%s: it was not reached", when)
					}
					checkLog(t, when, s, w, r)
					strict.check(t, when, w)
					got := endOf(w)
					if unknown(w) > 0 { // the model was told and went on otherwise
						got.messages, got.posts = want.messages, append(want.posts[:0:0], want.posts...)[:min(len(got.posts), len(want.posts))]
					}
					if d := cmp.Diff(want, got, cmp.AllowUnexported(ending{})); d != "" {
						t.Errorf("%s: it ended otherwise (-want +got):\n%s", when, d)
					}
				})
			}
		})
	}
}

// An ending is what a conversation comes to.
type ending struct {
	outcomes []string
	posts    []string
	messages string
}

func endOf(w *world) ending {
	e := ending{posts: w.posts(), messages: transcript(model.Request{Messages: w.present().Messages})}
	for _, s := range of[record.Settled](w.records()) {
		e.outcomes = append(e.outcomes, s.Turn+" "+string(s.Outcome))
	}
	return e
}

// present is what the log gives.
func (w *world) present() *record.Fold {
	w.t.Helper()
	var f record.Fold
	if err := f.Add(w.view().Records); err != nil {
		w.t.Fatal(err)
	}
	return &f
}

// unknown counts the calls that a crash left open.
func unknown(w *world) int {
	n := 0
	for _, b := range w.records() {
		if c, ok := b.(record.Child); ok {
			b = c.Body
		}
		if d, ok := b.(record.Did); ok && d.End == record.Unknown {
			n++
		}
	}
	return n
}

// The process dies again and again, at random: ten thousand conversations in
// which every turn settles once.
func TestRandomCrashes(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(scenarios))
	strict := newStrict()
	const parts = 4
	for part := range parts {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < 10_000/thorough && !t.Failed(); seed += parts {
				r := rand.New(rand.NewPCG(102, uint64(seed)))
				name := names[seed/parts%len(names)]
				s := scenarios[name]
				setup := s.setup
				s.setup = func(w *world, r *runs) {
					w.opts.Limits.Crashes, w.opts.Limits.Attempts = 100, 100 // bad luck is no poison
					if setup != nil {
						setup(w, r)
					}
				}
				s.in(t, func(int) bool { return r.IntN(10) == 0 }, func(t *testing.T, w *world, ran *runs) {
					when := fmt.Sprintf("%s, seed %d", name, seed)
					turns := checkLog(t, when, s, w, ran)
					asked := len(of[record.Asked](w.records()))
					if n := len(w.posts()); turns < len(s.says)-asked || n != turns+asked {
						t.Errorf("%s: %d turns settled, %d questions, %d posts", when, turns, asked, n)
					}
					if seed%10 == 0 {
						strict.check(t, when, w)
					}
				})
			}
		})
	}
}

// The sixth of six files is where the process dies: what the first five have is
// in the log, and they are not touched again.
func TestBatchKeepsFinishedFiles(t *testing.T) {
	t.Parallel()
	s := scenarios["durable tool with steps"]
	s.says = s.says[:1]
	died := 0
	dead := false
	var r *runs
	sixth := func() bool { // the last point of its work
		r.mu.Lock()
		defer r.mu.Unlock()
		for key := range r.by {
			if strings.HasSuffix(key, "/file 6") {
				return true
			}
		}
		return false
	}
	s.setup = func(_ *world, of *runs) { r = of }
	w, _ := s.play(t, func(n int) bool {
		if !dead && sixth() {
			dead, died = true, n
		}
		return died == n
	})
	if !dead {
		t.Fatal("it did not die")
	}
	var got []string
	for key, n := range r.by {
		if _, file, ok := strings.Cut(key, "/file "); ok {
			got = append(got, fmt.Sprintf("file %s: %d", file, n))
		}
	}
	slices.Sort(got)
	want := []string{"file 1: 1", "file 2: 1", "file 3: 1", "file 4: 1", "file 5: 1", "file 6: 2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	if n := len(of[record.Memo](w.records())); n != 6 {
		t.Errorf("%d steps are recorded, want 6", n)
	}
}

// checkLog holds a log to what is promised of every log. It counts the turns.
func checkLog(t *testing.T, when string, s scenario, w *world, r *runs) int {
	t.Helper()
	settled, done, said, heard, memos := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	check := func(task bool, b record.Body) {
		switch b := b.(type) {
		case record.Heard:
			heard[b.Event.ID]++
		case record.Settled:
			if !task {
				settled[b.Turn]++
			}
		case record.Said:
			said[fmt.Sprint(b.Turn, b.Step)]++
			for _, p := range b.Parts {
				if p.Kind == model.Call {
					done[b.Turn+"/"+p.CallID] += 0
				}
			}
		case record.Memo:
			memos[b.Turn+"/"+b.Call+"/"+b.Name]++
		case record.Did:
			key := b.Turn + "/" + b.CallID
			done[key]++
			if n := r.by[key]; n > 1 || n == 0 && b.End == record.Done && slices.Contains([]string{"look", "act", "count", "first", "second"}, b.Tool) {
				t.Errorf("%s: %s (%s, %s) was run %d times", when, key, b.Tool, b.End, n)
			}
		}
	}
	bodies := w.records()
	given := map[string]record.End{} // how the calls ended that gave tasks
	for _, d := range of[record.Did](bodies) {
		given[d.CallID] = d.End
	}
	for _, b := range bodies {
		c, ok := b.(record.Child)
		switch {
		case !ok:
			check(false, b)
		case given[c.Task[0]] != record.Unknown: // else it was given up with the turn
			check(true, c.Body)
		}
	}
	for what, counts := range map[string]map[string]int{"events": heard, "turns": settled, "calls": done, "answers": said, "steps": memos} {
		for id, n := range counts {
			if n != 1 {
				t.Errorf("%s: of %s, %s is there %d times", when, what, id, n)
			}
		}
	}
	for i := range w.said {
		if heard[fmt.Sprint("E", i+1)] == 0 {
			t.Errorf("%s: the event E%d is lost", when, i+1)
		}
	}
	for key, n := range r.final {
		if r.by[key] != n {
			t.Errorf("%s: %s was recorded, and happened again: %d times, then %d", when, key, n, r.by[key])
		}
	}
	if a, err := record.Verify(w.view().Records); err != nil || a.Checked != len(settled) {
		t.Errorf("%s: the chain vouches for %d of %d turns: %v", when, a.Checked, len(settled), err)
	}
	f := w.present()
	if s.check != nil {
		s.check(t, w, f)
	}
	w.checkFold(when, f)
	w.checkPosts(when)
	return len(settled)
}

// checkPosts sees that no post is there twice.
func (w *world) checkPosts(when string) {
	w.t.Helper()
	keys := map[string]bool{}
	posts, err := w.store.Posts(context.Background(), state.ConversationID("tested", thread))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range posts {
		if keys[p.Post.Key] {
			w.t.Errorf("%s: the key %s is there twice", when, p.Post.Key)
		}
		keys[p.Post.Key] = true
	}
}

// checkFold compares the present in memory with the one that the log gives.
func (w *world) checkFold(when string, f *record.Fold) {
	w.t.Helper()
	id := state.ConversationID("tested", thread)
	c := w.engine.folds.take(id)
	if c == nil {
		return // the process died with the last commit
	}
	w.engine.folds.put(id, c)
	live, err := c.fold.Checkpoint("c")
	if err != nil {
		w.t.Fatal(err)
	}
	want, err := f.Checkpoint("c")
	if err != nil {
		w.t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(live)); d != "" {
		w.t.Errorf("%s: the present in memory is not the log's (-log +memory):\n%s", when, d)
	}
}
