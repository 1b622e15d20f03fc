// Package pure holds an agent that touches the world where it may.
package pure

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/heddlehq/heddle/harness"
)

type clock struct{ now time.Time }

func (c clock) Now() time.Time { return c.now }

func agent(c *harness.Context) string {
	harness.UseModel(c, "fast")
	seen := harness.UseState(c, "seen", time.Time{})
	harness.UseTool(c, harness.NewTool("look", "Looks.", func(ctx context.Context, call *harness.Call, _ struct{}) (string, error) {
		seen.Set(call, time.Now())
		return os.Getenv("HOME"), nil
	}))
	harness.UseTool(c, harness.NewTool("read", "Reads.", read))
	harness.UseSkill(c, harness.Skill{Name: "a", Doc: "a", Resource: func(context.Context, string) (string, error) { return os.Getenv("HOME"), nil }})
	time := clock{c.Now()} // a variable of a package's name
	return fmt.Sprintf("Seen %v ago, %s.", time.Now().Sub(seen.Value), weekday(c.Now()))
}

func weekday(t time.Time) string { return t.Weekday().String() }

func read(_ context.Context, _ *harness.Call, _ struct{}) (string, error) {
	b, err := os.ReadFile("x")
	return string(b), err
}

// outside is no agent function.
func outside() time.Time { return time.Now() }
