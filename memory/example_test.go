package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/memory"
	"github.com/heddlehq/heddle/memory/embedder"
	"github.com/heddlehq/heddle/state/mem"
)

// An agent that remembers: Use mounts memory_search and memory_save.
func ExampleUse() {
	m := memory.New(memory.Options{Values: mem.Open(time.Now), Embedder: embedder.NGram{}})
	agent := func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		memory.Use(c, m)
		return "Search your memory before you say that you do not know."
	}
	manifest, err := harness.Render(agent, harness.Snapshot{Agent: "helper"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range manifest.Tools {
		fmt.Println(t.Name)
	}
	// Output:
	// memory_search
	// memory_save
}

// No word of the query stands in the note, but parts of its words do.
func ExampleMemory_Search() {
	ctx := context.Background()
	m := memory.New(memory.Options{Values: mem.Open(time.Now), Embedder: embedder.NGram{}})
	room := chat.Thread{Channel: "slack", Account: "T01", Room: "C02", Root: "1"}
	for _, text := range []string{"Deployments happen on Tuesdays.", "Lunch is at noon."} {
		err := m.Remember(ctx, memory.Item{ID: text, Kind: memory.Note, Thread: room, Text: text, Role: chat.Member})
		if err != nil {
			fmt.Println(err)
		}
	}
	r, err := m.Search(ctx, memory.Query{Text: "when do we redeploy", Thread: room, Trust: chat.Member, Limit: 1})
	fmt.Println(r.Found[0].Text, err)
	// Output: Deployments happen on Tuesdays. <nil>
}
