package turn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/state"
)

// Two processes believe that a conversation is theirs: one fell asleep in the
// middle of its turn, the other claimed it when the lease was over. Whenever the
// sleeper wakes up, its next write is refused, once, and the log, the state, the
// files and the posts are those of the other.
func TestTwoOwners(t *testing.T) {
	t.Parallel()
	for name, asleep := range map[string]string{"in a model call": "model", "in a tool": "tool", "before the answer": "answer"} {
		for _, wakes := range []string{"before the other begins", "while the other works", "after the other"} {
			t.Run(name+", "+wakes, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					sleeper, wake := true, make(chan struct{}) // the first process
					nap := func(where string) {
						if where == asleep && sleeper {
							<-wake
						}
					}
					var busy func()
					w := worldOf(t, func(c *harness.Context) string {
						n := harness.UseState(c, "n", 0)
						harness.UseSandbox(c, "memory")
						harness.UseTool(c, act("count", func(ctx context.Context, call *harness.Call) (string, error) {
							sb, err := call.Sandbox(ctx)
							if err != nil {
								return "", err
							}
							nap("tool")
							n.Update(call, func(v int) int { return v + 1 })
							return "counted", sb.WriteFile(ctx, "n", []byte("x"))
						}).Durable())
						return plain()(c)
					}, scripted.Play(func(ctx context.Context, r model.Request) (model.Response, error) {
						if r.Messages[len(r.Messages)-1].Role == model.Results {
							nap("answer")
							if !sleeper && busy != nil {
								busy()
							}
							return scripted.Say("one")(ctx, r)
						}
						nap("model")
						return call("count")(ctx, r)
					}, 0))
					w.wary.stable = false
					first := w.engine
					w.say("U1", "go")
					mine, err := w.store.Claim(context.Background(), "first", time.Minute)
					if err != nil {
						t.Fatal(err)
					}
					lost := make(chan error, 1)
					go func() { lost <- first.Run(context.Background(), context.Background(), mine) }()
					synctest.Wait()

					w.store.Expire()
					w.restart()
					theirs, err := w.store.Claim(context.Background(), "second", time.Minute)
					if err != nil || theirs.Epoch <= mine.Epoch {
						t.Fatalf("claimed %+v after %+v, %v", theirs, mine, err)
					}
					meets := func() { close(wake); synctest.Wait() }
					sleeper = false
					if wakes == "before the other begins" {
						meets()
					}
					if wakes == "while the other works" {
						busy = func() { busy = nil; meets() }
					}
					if err := w.engine.Run(context.Background(), context.Background(), theirs); err != nil {
						t.Fatal(err)
					}
					if wakes == "after the other" {
						meets()
					}
					if err := <-lost; !errors.Is(err, state.ErrLeaseLost) {
						t.Errorf("the first ended with %v", err)
					}
					if d := cmp.Diff([]string{"one"}, w.posts()); d != "" {
						t.Errorf("posts (-want +got):\n%s", d)
					}
					bodies := w.records()
					if wrote, settled := of[record.Wrote](bodies), of[record.Settled](bodies); len(wrote) != 1 || string(wrote[0].Value) != "1" || len(settled) != 1 || settled[0].Attempt != 2 {
						t.Errorf("the log is %s: wrote %+v, settled %+v", trace(bodies), wrote, settled)
					}
					if _, err := record.Verify(w.view().Records); err != nil {
						t.Error(err)
					}
					files, err := w.store.Blob(context.Background(), mine.Conversation.ID, FilesBlob("memory"))
					if err != nil || string(files) != `{"n":"x"}` {
						t.Errorf("files %s, %v", files, err)
					}
					if _, open := w.boxes.counts(); open != 0 {
						t.Errorf("%d sandboxes are open", open)
					}
				})
			})
		}
	}
}
