package turn

import (
	"log/slog"
	"testing"
	"time"

	"github.com/heddlehq/heddle/model/scripted"
)

// A question without tools costs little beside the model: less than 5 ms, the
// store in memory, in the calmest of 20 turns.
func TestSimpleAnswerCostsLittle(t *testing.T) {
	t.Parallel()
	w := worldOf(t, plain(), scripted.Play(scripted.Say("4"), 0))
	w.opts.Logger = slog.New(slog.DiscardHandler)
	w.restart()
	best := time.Hour
	for range 20 {
		began := time.Now()
		w.ask("U1", "2+2?")
		best = min(best, time.Since(began))
	}
	if n := len(w.posts()); n != 20 {
		t.Errorf("%d answers, want 20", n)
	}
	if best >= 5*time.Millisecond {
		t.Errorf("the calmest turn took %v", best)
	}
}
