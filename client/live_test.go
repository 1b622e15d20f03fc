package client_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/heddlehq/heddle/client"
)

// A stream of the real API that is cut off all the time, opened before the
// conversation, has every record once.
func TestStreamOfTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cutting := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
		defer cancel()
		w.api.ServeHTTP(rw, r.WithContext(ctx))
	}))
	r := client.Ref{Agent: "assistant", ID: "a"}
	w.handler.Store(&cutting)
	const n = 8
	sent, next := 0, int64(1)
	for u, err := range w.client.Stream(t.Context(), r, 0, client.Filter{Kinds: []string{"all"}}) {
		if err != nil {
			t.Fatal(err)
		}
		if !u.CaughtUp {
			if u.Seq != next {
				t.Fatalf("record %d, want %d", u.Seq, next)
			}
			next++
		}
		if next == int64(sent*5+1) { // all that was sent has been answered
			if sent == n {
				break
			}
			sent++
			if _, err := w.client.Send(t.Context(), r, client.Message{Text: fmt.Sprint(sent)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	resumed := 0
	for u, err := range w.client.Stream(t.Context(), r, next-4, client.Filter{Kinds: []string{"settled"}}) {
		if err != nil || u.CaughtUp {
			break
		}
		resumed++
	}
	if resumed != 1 {
		t.Errorf("%d records after record %d", resumed, next-4)
	}
}
