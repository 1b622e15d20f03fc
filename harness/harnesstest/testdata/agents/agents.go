// Package agents holds agent functions that touch the world, each in one way.
package agents

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/heddlehq/heddle/harness"
)

func clock(c *harness.Context) string   { return time.Now().String() }                 // want reads the clock
func since(c *harness.Context) string   { return time.Since(c.Now()).String() }        // want reads the clock
func random(c *harness.Context) string  { return fmt.Sprint(rand.IntN(3)) }            // want is random
func secret(c *harness.Context) string  { return crand.Text() }                        // want is random
func env(c *harness.Context) string     { return os.Getenv("HOME") }                   // want reads the environment
func disk(c *harness.Context) string    { b, _ := os.ReadFile("x"); return string(b) } // want reaches files
func glob(c *harness.Context) string    { m, _ := filepath.Glob("*"); return m[0] }    // want reaches files
func network(c *harness.Context) string { _, _ = http.Get("http://x"); return "" }     // want reaches the network
func prints(c *harness.Context) string  { fmt.Println("x"); return "" }                // want reads or prints
func logs(c *harness.Context) string    { slog.Info("x"); return "" }                  // want prints
func waits(c *harness.Context) string   { _ = context.Background(); return "" }        // want begins work that waits

func spawns(c *harness.Context) string {
	done := make(chan string)
	go func() { done <- "x" }() // want starts a goroutine; uses a channel
	return <-done               // want uses a channel
}

func selects(c *harness.Context) string {
	select { // want uses a channel
	default:
		return ""
	}
}

func useHook(c *harness.Context, name string) { harness.UseInstruction(c, helper(name)) }

func helper(name string) string { return deeper{}.stamp(name) }

type deeper struct{}

func (deeper) stamp(name string) string { return name + time.Now().String() } // want reads the clock

var literal = func(c *harness.Context) string {
	migrate := func(n int) int { return n + int(time.Now().Unix()) } // want reads the clock
	return fmt.Sprint(migrate(1))
}
