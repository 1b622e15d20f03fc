//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A figure is one line of the table.
type figure[T any] struct {
	name string
	of   func(T) float64
}

func of[T any](reports []T, f func(T) float64) float64 {
	var all []float64
	for _, r := range reports {
		all = append(all, f(r))
	}
	return median(all)
}

// ratio is the median over the rounds of the gateway's figure as a multiple of the floor's.
func (b *both[T]) ratio(f func(T) float64) float64 {
	var all []float64
	for i := range b.gateway {
		all = append(all, f(b.gateway[i])/f(b.floor[i]))
	}
	return round(median(all))
}

// Figures that have a target.
func perSecond(r loadReport) float64 { return r.PerSecond }
func cpu(r loadReport) float64       { return r.CPU }
func ackP99(r loadReport) float64    { return r.Ack.P99 }
func ownP50(r turnReport) float64    { return r.Own.P50 }
func idleRSS(r startReport) float64  { return r.RSS }
func ready(r startReport) float64    { return r.Ready }

var loadFigures = [...]figure[loadReport]{
	{"answered events/s", perSecond},
	{"CPU s per 1000 events", cpu},
	{"posts per event", func(r loadReport) float64 { return float64(r.Posts) / float64(r.Events) }},
	{"ack p50, ms", func(r loadReport) float64 { return r.Ack.P50 }},
	{"ack p95, ms", func(r loadReport) float64 { return r.Ack.P95 }},
	{"ack p99, ms", ackP99},
	{"reply p50, ms", func(r loadReport) float64 { return r.Reply.P50 }},
	{"reply p95, ms", func(r loadReport) float64 { return r.Reply.P95 }},
	{"RSS at the end, MiB", func(r loadReport) float64 { return r.RSS }},
	{"written to disk, KiB an event", func(r loadReport) float64 { return r.Written }},
	{"stored after a stop, KiB an event", func(r loadReport) float64 { return r.Kept }},
}

var turnFigures = [...]figure[turnReport]{
	{"own time p50, ms", ownP50},
	{"own time p99, ms", func(r turnReport) float64 { return r.Own.P99 }},
}

var longFigures = [...]figure[longReport]{
	{"CPU ms of message 10", func(r longReport) float64 { return r.Early }},
	{"CPU ms of message 1000", func(r longReport) float64 { return r.Late }},
	{"request of message 10, KiB", func(r longReport) float64 { return r.EarlySize / 1024 }},
	{"request of message 1000, KiB", func(r longReport) float64 { return r.LateSize / 1024 }},
}

var startFigures = [...]figure[startReport]{
	{"start to ready, ms", ready},
	{"start to ready after SIGKILL, ms", func(r startReport) float64 { return r.Killed }},
	{"idle RSS, MiB", idleRSS},
}

// table writes the sitting down: the targets, then what was measured.
func (a *sitting) table(dir string, rounds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Medians of %d rounds on %s, %d processors of %s. Other programs took %.2f processors meanwhile.\n\n",
		rounds, time.Now().UTC().Format("2006-01-02"), runtime.NumCPU(), machine(dir),
		of(a.loads[busyCase].gateway, func(r loadReport) float64 { return r.OtherCPU }))
	a.targets(&b)
	b.WriteString("\n| case | figure | floor | gateway | gateway / floor |\n| --- | --- | --: | --: | --: |\n")
	for i, c := range loadCases {
		lines(&b, c.title, a.loads[i], loadFigures[:])
	}
	lines(&b, "one mention at a time", a.turn, turnFigures[:])
	lines(&b, "one thread, one message at a time", a.long, longFigures[:])
	lines(&b, "empty store", both[startReport]{gateway: a.start}, startFigures[:])
	lines(&b, fmt.Sprintf("store of %d conversations", a.full.Threads), both[startReport]{gateway: []startReport{a.full}}, startFigures[:])
	b.WriteString("\n| signal | kills | events | missing | doubled | out of order | down ms, median (worst) | recovered ms, median (worst) |\n" +
		"| --- | --: | --: | --: | --: | --: | --: | --: |\n")
	for _, c := range a.crashes {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %.0f (%.0f) | %.0f (%.0f) |\n",
			c.Signal, c.Kills, c.Events, c.Missing, c.Doubled, c.Disorder, c.Down, c.DownMost, c.Recovered, c.RecMost)
	}
	return b.String()
}

// lines writes the figures of one case, with the floor's if it was measured.
func lines[T any](b *strings.Builder, title string, l both[T], figures []figure[T]) {
	for _, f := range figures {
		floor, ratio := "", ""
		if len(l.floor) > 0 {
			floor, ratio = fmt.Sprint(round(of(l.floor, f.of))), fmt.Sprint(l.ratio(f.of))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %v | %s |\n", title, f.name, floor, round(of(l.gateway, f.of)), ratio)
		title = ""
	}
}

// targets says what was to be reached and what was.
func (a *sitting) targets(b *strings.Builder) {
	var growths []float64
	for i := range a.long.gateway {
		growths = append(growths, growth(a.long.gateway[i], a.long.floor[i]))
	}
	deliveries, unanswered := a.loads[busyCase], a.loads[unansweredCase]
	b.WriteString("| target | wanted | reached | |\n| --- | --: | --: | --- |\n")
	for _, t := range []struct {
		name          string
		want, reached float64
		least         bool // what is wanted is the least, not the most
	}{
		{"answered events/s over the floor's, 16 deliveries under way", 0.5, deliveries.ratio(perSecond), true},
		{"the same, 16 mentions unanswered", 0.5, unanswered.ratio(perSecond), true},
		{"CPU per 1000 events over the floor's, 16 deliveries under way", 2.5, deliveries.ratio(cpu), false},
		{"the same, 16 mentions unanswered", 2.5, unanswered.ratio(cpu), false},
		{"ack p99, ms, 16 deliveries under way", 50, of(deliveries.gateway, ackP99), false},
		{"own time of a turn, median, ms", 10, of(a.turn.gateway, ownP50), false},
		{"CPU of message 1000 over that of message 10, the request's size taken out", 1.5, median(growths), false},
		{"idle RSS, MiB", 50, of(a.start, idleRSS), false},
		{"start to ready, ms", 300, of(a.start, ready), false},
	} {
		bound, met := "at most", t.reached <= t.want
		if t.least {
			bound, met = "at least", t.reached >= t.want
		}
		fmt.Fprintf(b, "| %s | %s %v | %v | %s |\n", t.name, bound, t.want, round(t.reached), map[bool]string{true: "met", false: "**missed**"}[met])
	}
}

// write puts a table into a file between the markers of its name, or prints it
// if there is no file.
func write(file, name, table string) error {
	if file == "" {
		_, err := fmt.Print(table)
		return err
	}
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, err := between(old, name, table)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}

// between replaces what stands between the markers of a name.
func between(text []byte, name, table string) ([]byte, error) {
	begin, end := "<!-- "+name+": written by make bench -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, found := bytes.Cut(rest, []byte(end))
	if !ok || !found {
		return nil, fmt.Errorf("no markers of %s", name)
	}
	return fmt.Appendf(nil, "%s%s\n%s\n%s%s", before, begin, table, end, after), nil
}
