package modeltest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/model"
)

// slowly plays the events of the recording "text", with a pause and keep-alives
// before each, and stops before event number stop (-1: plays all).
func slowly(t *testing.T, c Codec, pause time.Duration, stop int) (took time.Duration, err error) {
	r := load(t, c, "text")
	events := strings.SplitAfter(string(r.body), "\n\n")
	return feed(c, r, func(in io.Writer) {
		for i := 0; i < len(events) || stop >= 0; i++ {
			for range int(pause / (5 * time.Second)) {
				time.Sleep(5 * time.Second)
				if _, err := io.WriteString(in, c.KeepAlive); err != nil {
					return
				}
			}
			if stop >= 0 && i >= stop {
				continue
			}
			if _, err := io.WriteString(in, events[i]); err != nil {
				return
			}
		}
	})
}

// endlessly plays the recording "text" up to its first content, and that again
// and again.
func endlessly(t *testing.T, c Codec) (took time.Duration, err error) {
	r := load(t, c, "text")
	events := strings.SplitAfter(string(r.body), "\n\n")
	n, said := 0, false
	for ; !said; n++ {
		r.body = []byte(strings.Join(events[:n+1], ""))
		_, _ = c.New(r.client(io.NopCloser(strings.NewReader(string(r.body))))).Stream(context.Background(), Request(), func(model.Delta) { said = true })
	}
	return feed(c, r, func(in io.Writer) {
		for i := 0; ; i++ {
			if _, err := io.WriteString(in, events[min(i, n-1)]); err != nil {
				return
			}
			if i >= n-1 {
				time.Sleep(30 * time.Second)
			}
		}
	})
}

// feed makes a call whose answer is what play writes.
func feed(c Codec, r *recording, play func(in io.Writer)) (took time.Duration, err error) {
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = in.Close() }()
		play(in)
	}()
	client := &http.Client{Transport: answerer(func(q *http.Request) (*http.Response, error) {
		context.AfterFunc(q.Context(), func() { out.CloseWithError(q.Context().Err()) }) // as a connection does
		return &http.Response{StatusCode: r.status, Header: r.header, Body: out}, nil
	})}
	start := time.Now()
	_, err = c.New(client).Stream(context.Background(), Request(), nil)
	took = time.Since(start)
	<-done
	return took, err
}

// timeouts count content only, but for one that bounds the whole answer.
func timeouts(t *testing.T, c Codec) {
	stalls := func(name string, stop int, after time.Duration, partial bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				took, err := slowly(t, c, 5*time.Second, stop)
				e := failed(t, err)
				if e.Fault != model.Stalled || e.Partial != partial || took < after || took > after+30*time.Second {
					t.Errorf("%v, partial %v, after %s", e, e.Partial, took)
				}
			})
		})
	}
	stalls("keep-alives before the first content", 0, 120*time.Second, false)
	stalls("keep-alives after some content", 4, 60*time.Second, true)
	t.Run("slow content", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			if took, err := slowly(t, c, 25*time.Second, -1); err != nil || took < 3*time.Minute {
				t.Errorf("after %s: %v", took, err)
			}
		})
	})
	t.Run("endless content", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			took, err := endlessly(t, c)
			if e := failed(t, err); e.Fault != model.Stalled || !e.Partial || took != 30*time.Minute {
				t.Errorf("%v, partial %v, after %s", e, e.Partial, took)
			}
		})
	})
	t.Run("no answer at all", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			_, err := c.New(&http.Client{Transport: answerer(silent)}).Stream(context.Background(), Request(), nil)
			if e := failed(t, err); e.Fault != model.Stalled || time.Since(start) != 120*time.Second {
				t.Errorf("%v after %s", e, time.Since(start))
			}
		})
	})
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		refused := errors.New("connection refused")
		_, err := c.New(&http.Client{Transport: answerer(func(*http.Request) (*http.Response, error) { return nil, refused })}).Stream(context.Background(), Request(), nil)
		if e := failed(t, err); e.Fault != model.Transient || !errors.Is(e, refused) {
			t.Errorf("%v: %v", e, e.Err)
		}
	})
}

func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// canceled calls keep the cause of their end.
func canceled(t *testing.T, c Codec) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(lost) })
		_, err := c.New(&http.Client{Transport: answerer(silent)}).Stream(ctx, Request(), nil)
		if e := failed(t, err); e.Fault != model.Canceled || !errors.Is(e, lost) {
			t.Errorf("%v: %v", e, e.Err)
		}
	})
	r := load(t, c, "text")
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	go func() {
		_, _ = in.Write(r.body[:len(r.body)/2])
		<-ctx.Done()
		_ = in.CloseWithError(ctx.Err())
	}()
	_, err := c.New(r.client(out)).Stream(ctx, Request(), func(model.Delta) { cancel() })
	cancel()
	if e := failed(t, err); e.Fault != model.Canceled || !e.Partial {
		t.Errorf("in mid-stream: %v, partial %v", e, e.Partial)
	}
}
