package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTally(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &logs{}
		y := newTally(slog.New(slog.NewJSONHandler(log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { y.run(ctx); close(ended) }()
		var got []string
		lines := func() {
			all := log.find("delivery counted")
			for _, r := range all[len(got):] {
				n, _ := json.Marshal(r["count"])
				got = append(got, fmt.Sprintf("%s %s %s", r["channel"], r["reason"], n))
			}
		}
		add := func(n int, reason string) {
			for range n {
				y.add("fake", reason)
			}
			synctest.Wait()
			lines()
		}
		minute := func() {
			time.Sleep(time.Minute)
			synctest.Wait()
			lines()
			got = append(got, "minute")
			log.mu.Lock()
			log.all = append(log.all, map[string]any{"msg": "delivery counted", "channel": "", "reason": "", "count": 0})
			log.mu.Unlock()
		}
		time.Sleep(time.Second)
		add(1000, "flood") // one line now, one with the rest later
		add(1, "once")
		minute()
		add(5, "flood") // known: nothing until the minute is over
		minute()
		minute()
		if len(y.seen) != 0 {
			t.Errorf("%d kinds are remembered after a quiet minute", len(y.seen))
		}
		add(2, "flood") // news again
		stop()
		<-ended
		lines()
		want := []string{
			"fake flood 1", "fake once 1", "fake flood 999", "minute",
			"fake flood 5", "minute", "minute", "fake flood 1", "fake flood 1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
