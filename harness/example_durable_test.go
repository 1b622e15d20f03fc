package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// known are memos with answers: what the log holds once somebody has answered.
type known map[string]string

func (k known) Get(_, step string) (json.RawMessage, bool, error) {
	v, ok := k[step]
	return json.RawMessage(v), ok, nil
}

func (k known) Put(context.Context, string, string, json.RawMessage) error { return nil }

// A tool deploys only what a maintainer has approved. It is run until it asks,
// and again when there is an answer.
func ExampleAsk() {
	deploy := harness.NewTool("deploy", "Deploys a version, after an approval.",
		func(ctx context.Context, call *harness.Call, in struct {
			Version string `json:"version"`
		},
		) (string, error) {
			r, err := harness.Ask(ctx, call, "approve", "Deploy "+in.Version+"? (yes/no)",
				harness.AnsweredBy(chat.Maintainer), harness.ExpiresAt(call.Now().Add(24*time.Hour), "no"))
			if err != nil {
				return "", err
			}
			if r.Text != "yes" {
				return "not deployed: " + r.Text, nil
			}
			return harness.Step(ctx, call, "deploy", func(context.Context) (string, error) {
				return "deployed " + in.Version + ", approved by " + r.Author.Name, nil
			})
		}).Durable()

	ctx, args := context.Background(), json.RawMessage(`{"version":"v7"}`)
	scope := harness.NewScope(harness.Snapshot{}, nil)
	_, err := deploy.Run(ctx, scope.Call("call_1", "deploy"), args)
	var w *harness.Wait
	if errors.As(err, &w) {
		fmt.Println("posted:", w.Question.Text)
	}
	scope.Remember(known{"approve": `{"text":"yes","author":{"id":"U1","name":"Ann"}}`})
	fmt.Println(deploy.Run(ctx, scope.Call("call_1", "deploy"), args))
	// Output:
	// posted: Deploy v7? (yes/no)
	// deployed v7, approved by Ann <nil>
}

// A tool looks again after a weekend, whatever happens to the process meanwhile.
func ExampleSleep() {
	check := harness.NewTool("check_later", "Looks again in three days.",
		func(ctx context.Context, call *harness.Call, _ struct{}) (string, error) {
			if err := harness.Sleep(ctx, call, "weekend", call.Now().Add(72*time.Hour)); err != nil {
				return "", err
			}
			return "all quiet", nil
		}).Durable()
	scope := harness.NewScope(harness.Snapshot{Now: time.Date(2026, 3, 6, 17, 0, 0, 0, time.UTC)}, nil)
	_, err := check.Run(context.Background(), scope.Call("call_1", "check_later"), nil)
	var w *harness.Wait
	if errors.As(err, &w) {
		fmt.Println("asleep until", w.Until.Format(time.DateTime))
	}
	// Output: asleep until 2026-03-09 17:00:00
}

// A shop knows orders by their key, so that an order whose reply was lost is
// looked for before another one is made.
func ExampleTool_Probe() {
	orders := map[string]string{}
	order := harness.NewTool("order", "Orders a book.", func(_ context.Context, call *harness.Call, in struct {
		Title string `json:"title"`
	},
	) (string, error) {
		orders[call.Key()] = in.Title
		return "", fmt.Errorf("the shop did not answer: %w", harness.ErrUnknown)
	}).Probe(func(_ context.Context, call *harness.Call, _ json.RawMessage) (harness.Probed, error) {
		title, ok := orders[call.Key()]
		if !ok {
			return harness.Probed{Found: harness.FoundNothing}, nil
		}
		return harness.Probed{Found: harness.FoundDone, Result: "ordered " + title}, nil
	})

	ctx, args := context.Background(), json.RawMessage(`{"title":"Weaving"}`)
	call := harness.NewScope(harness.Snapshot{Turn: "t1"}, nil).Call("call_1", "order")
	fmt.Println(order.Run(ctx, call, args))
	fmt.Println(order.Look(ctx, call, args))
	// Output:
	//  the shop did not answer: its outcome is unknown
	// {done ordered Weaving} <nil>
}

// Three suppliers are asked side by side. What each says is kept by its step; the
// tool decides that two offers are enough.
func ExampleStep() {
	ask := func(_ context.Context, supplier string) (int, error) {
		if supplier == "north" {
			return 0, errors.New("closed")
		}
		return len(supplier), nil
	}
	offers := harness.NewTool("offers", "Gets offers.", func(ctx context.Context, call *harness.Call, _ struct{}) (string, error) {
		suppliers := []string{"north", "east", "southwest"}
		prices := make([]int, len(suppliers))
		var wg sync.WaitGroup
		for i, s := range suppliers {
			wg.Go(func() {
				prices[i], _ = harness.Step(ctx, call, s, func(ctx context.Context) (int, error) { return ask(ctx, s) })
			})
		}
		wg.Wait()
		best, got := "", 0
		for i, p := range prices {
			if p > 0 {
				got++
				if best == "" || p < prices[slices.Index(suppliers, best)] {
					best = suppliers[i]
				}
			}
		}
		if got < 2 {
			return "", errors.New("fewer than two offers")
		}
		return fmt.Sprintf("%d offers, the best from %s", got, best), nil
	}).Durable()
	fmt.Println(offers.Run(context.Background(), harness.NewScope(harness.Snapshot{}, nil).Call("call_1", "offers"), nil))
	// Output: 2 offers, the best from east <nil>
}
