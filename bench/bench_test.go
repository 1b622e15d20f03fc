//go:build linux

package main

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the floor be this program, as it is outside of tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveFloor {
		main()
		return
	}
	os.Exit(m.Run())
}

func gateway(t *testing.T) subject {
	t.Helper()
	dir := t.TempDir()
	binary, err := build(t.Context(), "", dir)
	if err != nil {
		t.Fatal(err)
	}
	return subject{binary: binary, dir: dir}
}

// TestLoad has everything answered once, in order, by the gateway and by the floor.
func TestLoad(t *testing.T) {
	t.Parallel()
	p := plan{run: "test", threads: 40, rooms: 7, events: 400, atOnce: 16}
	for _, s := range []subject{gateway(t), {dir: t.TempDir()}} {
		for _, reply := range []bool{true, false} {
			p.reply = reply
			rep, err := load(t.Context(), s, pace{Words: 3}, p, 20, "")
			if err != nil {
				t.Fatal(err)
			}
			if err := rep.err(); err != nil {
				t.Errorf("%s, reply %t: %v", s.name(), reply, err)
			}
			if rep.CPU <= 0 || rep.RSS <= 1 || rep.Written < 0 || rep.Kept <= 0 || rep.Ack.P50 <= 0 || rep.Reply.P50 < rep.Ack.P50 {
				t.Errorf("%s, reply %t: the figures cannot be: %+v", s.name(), reply, rep)
			}
		}
	}
}

// TestCrash kills the gateway under load; nothing is lost, doubled or out of order.
func TestCrash(t *testing.T) {
	t.Parallel()
	s := gateway(t)
	for _, c := range []crashPlan{
		{kills: 4, every: 2500 * time.Millisecond, rate: 12, sig: syscall.SIGKILL, name: "KILL"},
		{kills: 1, every: 2 * time.Second, rate: 12, sig: syscall.SIGTERM, name: "TERM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rep, err := crash(t.Context(), s, c)
			if err != nil {
				t.Fatal(err)
			}
			if rep.Kills != c.kills {
				t.Errorf("%d kills, want %d", rep.Kills, c.kills)
			}
		})
	}
}

// TestTurnAndStart checks that both measure something.
func TestTurnAndStart(t *testing.T) {
	t.Parallel()
	s := gateway(t)
	turn, err := measureTurn(t.Context(), s, pace{First: 20 * time.Millisecond, Words: 2}, 10)
	if err != nil {
		t.Fatal(err)
	}
	// The model's 20 ms are not the gateway's: they would double the median.
	if turn.Own.P50 <= 0 || turn.Own.P50 > turn.Own.Max {
		t.Errorf("own time %+v", turn.Own)
	}
	start, err := measureStart(t.Context(), s, 20, 1)
	if err != nil {
		t.Fatal(err)
	}
	if start.Ready <= 0 || start.Killed <= 0 || start.RSS <= 1 {
		t.Errorf("start %+v", start)
	}
}

// TestLedger proves that the account sees what is wrong.
func TestLedger(t *testing.T) {
	t.Parallel()
	p := plan{run: "t", threads: 2, rooms: 1}
	now := time.Now()
	for name, tt := range map[string]struct {
		posts []string // "THREAD SEQ..." of marks; "!" for the wrong thread, "?" for no mark
		want  verdict
	}{
		"well":         {[]string{"0 0", "0 1", "1 0"}, verdict{Answered: 3}},
		"joined":       {[]string{"0 0 1", "1 0"}, verdict{Answered: 3}},
		"missing":      {[]string{"0 0", "1 0"}, verdict{Answered: 2, Missing: 1}},
		"doubled":      {[]string{"0 0", "0 0 1", "1 0"}, verdict{Answered: 3, Doubled: 1}},
		"out of order": {[]string{"0 1", "0 0", "1 0"}, verdict{Answered: 3, Disorder: 1}},
		"misplaced":    {[]string{"0 0", "0 1", "1 0 !"}, verdict{Answered: 3, Misplaced: 1}},
		"stray":        {[]string{"0 0", "0 1", "1 0", "0 ?"}, verdict{Answered: 3, Strays: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			for _, id := range [][2]int{{0, 0}, {0, 1}, {1, 0}} {
				e := p.event(id[0], id[1])
				l.add(e)
				l.delivered(e, now)
				l.accepted(e, now.Add(time.Millisecond))
			}
			for _, post := range tt.posts {
				l.play(p, post, now.Add(time.Second))
			}
			got := l.sum()
			if open := l.unanswered(); open != got.Missing {
				t.Errorf("%d unanswered, want %d", open, got.Missing)
			}
			if good := tt.want == (verdict{Answered: 3}); (got.err() == nil) != good {
				t.Errorf("verdict %v", got.err())
			}
			got = verdict{Answered: got.Answered, Missing: got.Missing, Doubled: got.Doubled, Disorder: got.Disorder, Misplaced: got.Misplaced, Strays: got.Strays}
			if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(verdict{})); d != "" {
				t.Error(d)
			}
		})
	}
}

// play posts what a line of TestLedger says.
func (l *ledger) play(p plan, line string, at time.Time) {
	words := strings.Fields(line)
	thread := int(number(words[0]))
	e, text := p.event(thread, 0), "text"
	for _, w := range words[1:] {
		switch w {
		case "!":
			e.root = "elsewhere"
		case "?":
		default:
			text += " " + p.event(thread, int(number(w))).mark
		}
	}
	l.posted(e.room, e.root, text, at)
}

// TestRefused checks that events which nobody accepts are no success.
func TestRefused(t *testing.T) {
	t.Parallel()
	r, err := newRig(subject{dir: t.TempDir()}, pace{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.addr.Store("127.0.0.1:1") // nobody listens there
	book := newLedger()
	r.drive(t.Context(), plan{run: "t", threads: 1, rooms: 1, events: 2, atOnce: 2, reply: true, retries: []time.Duration{time.Millisecond}}, book)
	if v := book.sum(); v.Events != 2 || v.Accepted != 0 || v.err() == nil {
		t.Errorf("verdict %+v", v)
	}
}

// TestStartFails checks that a gateway which ends at its start is reported with its last words.
func TestStartFails(t *testing.T) {
	t.Parallel()
	r, err := newRig(subject{dir: t.TempDir()}, pace{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	r.args = []string{"/bin/sh", "-c", "echo no luck >&2"}
	if _, err := r.start(context.Background()); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("error %v", err)
	}
}

func TestOwed(t *testing.T) {
	t.Parallel()
	a, b := mark("t", 0, 0), mark("t", 0, 1)
	for name, tt := range map[string]struct {
		talk []turn
		want []string
	}{
		"nothing":     {nil, nil},
		"one":         {[]turn{{"system", b}, {"user", "x " + a}}, []string{a}},
		"answered":    {[]turn{{"user", a}, {"assistant", a + " word"}}, []string{}},
		"next":        {[]turn{{"user", a}, {"assistant", a}, {"user", b}}, []string{b}},
		"two at once": {[]turn{{"user", a}, {"user", b}}, []string{a, b}},
		"twice":       {[]turn{{"user", a}, {"user", a}}, []string{a}},
		"again":       {[]turn{{"user", a}, {"assistant", a}, {"user", a}}, []string{a}},
	} {
		if d := cmp.Diff(tt.want, owed(tt.talk)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want float64 }{{0, 0}, {1234.56, 1235}, {12.345, 12.3}, {0.0123456, 0.0123}, {-2.346, -2.35}} {
		if got := round(tt.in); got != tt.want {
			t.Errorf("round(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("median %v", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("median %v", got)
	}
	var all []time.Duration
	for n := range 101 {
		all = append(all, time.Duration(100-n)*time.Millisecond)
	}
	if d := cmp.Diff(quantiles{P50: 50, P95: 95, P99: 99, Max: 100}, quantilesOf(all)); d != "" {
		t.Error(d)
	}
	// 2 ms more for 100 kB more; the gateway sent 200 kB more, so 4 of its 6 ms are for sending.
	g := growth(longReport{Early: 4, Late: 10, EarlySize: 1000, LateSize: 201000}, longReport{Early: 1, Late: 3, EarlySize: 500, LateSize: 100500})
	if g != 1.5 {
		t.Errorf("growth %v, want 1.5", g)
	}
}

// TestTable writes a sitting between the markers of a file, and leaves the rest alone.
func TestTable(t *testing.T) {
	t.Parallel()
	var s sitting
	loads := func(perSecond, cpu float64) []loadReport {
		return []loadReport{{verdict: verdict{Events: 10, Posts: 10, PerSecond: perSecond, Ack: quantiles{P99: 60}}, CPU: cpu}}
	}
	for i := range s.loads {
		s.loads[i] = both[loadReport]{floor: loads(200, 1), gateway: loads(150, 3)}
	}
	s.turn = both[turnReport]{floor: []turnReport{{Own: quantiles{P50: 1}}}, gateway: []turnReport{{Own: quantiles{P50: 3.21}}}}
	s.long = both[longReport]{floor: []longReport{{Early: 1, Late: 2, EarlySize: 1, LateSize: 2}}, gateway: []longReport{{Early: 1, Late: 2, EarlySize: 1, LateSize: 2}}}
	s.start, s.full = []startReport{{Ready: 41, RSS: 25}}, startReport{Threads: 7, Ready: 55}
	s.crashes = []crashReport{{Signal: "KILL", Kills: 6}}
	got, err := between([]byte("before\n<!-- table: written by make bench -->\nold\n<!-- end of table -->\nafter\n"), "table", s.table(t.TempDir(), 1))
	if err != nil {
		t.Fatal(err)
	}
	text := string(got)
	for _, want := range []string{
		"before\n<!-- table: written by make bench -->\n", "<!-- end of table -->\nafter\n", "| at least 0.5 | 0.75 | met |", "| at most 2.5 | 3 | **missed** |",
		"| at most 50 | 60 | **missed** |", "| at most 10 | 3.21 | met |", "| at most 1.5 | 1 | met |", "| at most 300 | 41 | met |",
		"| 16 mentions unanswered | answered events/s | 200 | 150 | 0.75 |", "| store of 7 conversations | start to ready, ms |  | 55 |  |", "| KILL | 6 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "old") {
		t.Error("the old table is still there")
	}
	if _, err := between([]byte("no markers"), "table", ""); err == nil {
		t.Error("a file without markers is no error")
	}
}
