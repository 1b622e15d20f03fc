//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A loadReport is what one run of load says.
type loadReport struct {
	Subject string `json:"subject"`
	verdict
	CPU         float64 `json:"cpu_s_per_1000_events"`
	RSS         float64 `json:"rss_mib"`
	Written     float64 `json:"disk_kib_per_event"`
	Stored      float64 `json:"stored_kib_per_event"`         // while running
	Kept        float64 `json:"stored_kib_per_event_stopped"` // after a clean stop
	RequestSize float64 `json:"request_bytes"`                // of the model, mean
	BenchCPU    float64 `json:"bench_cpus"`                   // processors that the generator and the world kept busy
	OtherCPU    float64 `json:"other_cpus"`                   // and what else runs on this machine
}

// load measures a subject under a plan.
func load(ctx context.Context, s subject, p pace, pl plan, warm int, perf string) (loadReport, error) {
	rep := loadReport{Subject: s.name()}
	r, err := newRig(s, p)
	if err != nil {
		return rep, err
	}
	defer r.close()
	if _, err := r.start(ctx); err != nil {
		return rep, err
	}
	if err := r.warm(ctx, warm); err != nil {
		return rep, fmt.Errorf("warm up: %w", err)
	}
	stopPerf, err := r.profile(perf)
	if err != nil {
		return rep, err
	}
	book := newLedger()
	r.world.book.Store(book)
	bytes0, requests0, stored0 := r.world.bytes.Load(), r.world.requests.Load(), stored(r.data)
	began, u0, busy0, own0 := time.Now(), r.usage(), busy(), own()
	r.drive(ctx, pl, book)
	r.settle(ctx, book, 20*time.Second, 0)
	took, u1, busy1, own1 := time.Since(began), r.usage(), busy(), own()
	stopPerf()
	pause(ctx, time.Second) // a doubled reply would come late
	rep.verdict = r.sum(book)
	n := float64(max(1, rep.Events))
	rep.CPU = round((u1.cpu - u0.cpu).Seconds() * 1000 / n)
	rep.RSS = mib(u1.rss)
	rep.Written = round(float64(u1.written-u0.written) / 1024 / n)
	rep.Stored = round(float64(stored(r.data)-stored0) / 1024 / n)
	rep.RequestSize = round(float64(r.world.bytes.Load()-bytes0) / float64(max(1, r.world.requests.Load()-requests0)))
	rep.BenchCPU = round((own1 - own0).Seconds() / took.Seconds())
	rep.OtherCPU = round(max(0, (busy1-busy0-(own1-own0)-(u1.cpu-u0.cpu)).Seconds()) / took.Seconds())
	if err := r.stop(syscall.SIGTERM); err != nil {
		return rep, err
	}
	rep.Kept = round(float64(stored(r.data)) / 1024 / (n + float64(warm)))
	return rep, ctx.Err()
}

func mib(bytes int64) float64 { return round(float64(bytes) / (1 << 20)) }

// profile lets perf watch the child until the function that it returns is
// called. Without a file it does nothing.
func (r *rig) profile(file string) (func(), error) {
	if file == "" {
		return func() {}, nil
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	c := exec.Command("perf", "record", "-q", "-F", "499", "-g", "-o", file, "-p", strconv.Itoa(r.child.Process.Pid))
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait() // perf ends with the signal's status
	}, nil
}
