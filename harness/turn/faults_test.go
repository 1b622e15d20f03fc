package turn

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/fakes/llm"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/anthropic"
	"github.com/heddlehq/heddle/model/gemini"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/openai/responses"
	"github.com/heddlehq/heddle/model/script"
	"github.com/heddlehq/heddle/model/scripted"
)

// An answer that breaks off, hangs or turns to garbage is no answer: a call in
// it never runs, what it said is not posted, and the model is asked again.
func TestTornAnswerIsNone(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"openai", "responses", "anthropic", "gemini"} {
		for _, fault := range []string{"truncated", "stalled", "garbled", "transient"} {
			t.Run(wire+" "+fault, func(t *testing.T) {
				t.Parallel()
				s, err := script.Parse("say: I half said\nand call: count {\"n\":1}\nand fault: " + fault + "\ncall: count {\"n\":2}\nsay: half of\nand fault: " + fault + "\nsay: done")
				if err != nil {
					t.Fatal(err)
				}
				h := httptest.NewServer(llm.New(llm.Options{Script: script.NewPlayer(s)}))
				t.Cleanup(h.Close)
				const idle = 300 * time.Millisecond
				providers := map[string]model.Provider{
					"openai":    openai.New(openai.Options{BaseURL: h.URL + "/v1", Idle: idle}),
					"responses": responses.New(responses.Options{BaseURL: h.URL + "/v1", Idle: idle}),
					"anthropic": anthropic.New(anthropic.Options{BaseURL: h.URL, Idle: idle}),
					"gemini":    gemini.New(gemini.Options{BaseURL: h.URL + "/v1beta", Idle: idle}),
				}
				p := providers[wire]
				var ran []int
				w := newWorld(t, plain(harness.NewTool("count", "", func(_ context.Context, _ *harness.Call, in number) (string, error) {
					ran = append(ran, in.N)
					return "counted", nil
				})))
				names, err := model.NewNames([]model.Provider{p}, map[string]string{"fast": p.Name() + "/m-1"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				w.opts.Models = names
				w.restart()
				w.ask("U1", "go")
				if d := cmp.Diff([]int{2}, ran) + cmp.Diff([]string{"done"}, w.posts()); d != "" {
					t.Errorf("runs and posts (-want +got):\n%s", d)
				}
				if got := trace(w.records()); got != "heard rendered retried said did:done rendered retried said settled:answered" {
					t.Errorf("the log is %s", got)
				}
			})
		}
	}
}

// A provider that wants to be left alone holds up one conversation and no
// other, and the refused calls cost nothing.
func TestLimitHoldsOneConversation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var limited atomic.Bool
		began := time.Now()
		w := worldOf(t, plain(), scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
			if strings.Contains(transcript(r), "slow") && !limited.Swap(true) {
				return fault(model.Limited, 30*time.Second)(ctx, r)
			}
			return scripted.Say(fmt.Sprint("after ", time.Since(began)))(ctx, r)
		}, 0))
		w.wary.stable = false
		other := chat.Thread{Channel: "slack", Account: "T1", Room: "C2", Root: "2"}
		w.say("U1", "slow")
		var both sync.WaitGroup
		both.Go(w.run)
		synctest.Wait()
		w.admit("U2", "quick", other, false)
		both.Go(w.run)
		both.Wait()
		for th, want := range map[chat.Thread]string{thread: "after 30s", other: "after 0s"} {
			said := of[record.Said](w.recordsOf(th))
			if len(said) != 1 || said[0].Parts[0].Text != want {
				t.Errorf("%s: %+v, want %s", th.Key(), said, want)
			}
		}
		if s := of[record.Settled](w.records()); len(s) != 1 || s[0].Cost != of[record.Said](w.records())[0].Cost {
			t.Errorf("settled %+v", s)
		}
	})
}
