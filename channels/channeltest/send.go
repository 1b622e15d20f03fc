package channeltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// send posts to providers that answer in every way.
func (h Harness) send(t *testing.T) {
	t.Run("accepted", func(t *testing.T) {
		t.Parallel()
		ref, calls, err := h.try(t, h.Accept)
		if err != nil || ref != h.Ref || calls != 1 {
			t.Errorf("ref %q, error %v, %d requests", ref, err, calls)
		}
	})
	t.Run("statuses", func(t *testing.T) {
		t.Parallel()
		h.statuses(t)
	})
	for _, a := range h.Answers {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			_, calls, err := h.try(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range a.Header {
					w.Header()[k] = v
				}
				w.WriteHeader(a.Status)
				fmt.Fprint(w, a.Body)
			})
			se := verdict(t, err)
			if se.Verdict != a.Want || calls != 1 || a.RetryAfter != 0 && se.RetryAfter != a.RetryAfter {
				t.Errorf("%v, retry after %v, %d requests; want %v", err, se.RetryAfter, calls, a.Want)
			}
		})
	}
	h.broken(t)
}

func (h Harness) sender(t *testing.T, apiURL string) channels.Sender {
	t.Helper()
	return h.New(t, apiURL).(channels.Sender)
}

// try posts once to a provider and also returns how many requests it got.
func (h Harness) try(t *testing.T, handler http.HandlerFunc) (string, int64, error) {
	t.Helper()
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.Aside != nil && h.Aside(w, r) {
			return
		}
		calls.Add(1)
		handler(w, r)
	}))
	defer srv.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	ref, err := h.sender(t, srv.URL).Send(ctx, h.Post)
	return ref, calls.Load(), err
}

// verdict checks what every SendError keeps to.
func verdict(t *testing.T, err error) *channels.SendError {
	t.Helper()
	var se *channels.SendError
	if !errors.As(err, &se) {
		t.Fatalf("error %v is no SendError", err)
	}
	quiet(t, err)
	if se.Reason == "" || strings.Contains(se.Reason, Canary) {
		t.Errorf("reason %q", se.Reason)
	}
	if (se.Verdict == channels.Limited) != (se.RetryAfter > 0) {
		t.Errorf("%v with retry after %v", se.Verdict, se.RetryAfter)
	}
	return se
}

func (h Harness) statuses(t *testing.T) {
	for status := 300; status < 600; status++ {
		_, calls, err := h.try(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			fmt.Fprint(w, "<html>"+Canary+"</html>")
		})
		se := verdict(t, err)
		var ok bool
		switch {
		case status == http.StatusTooManyRequests:
			ok = se.Verdict == channels.Limited && se.RetryAfter == 3*time.Second
		case status >= 500:
			ok = se.Verdict == channels.Unknown
		case status == http.StatusRequestTimeout:
			ok = se.Verdict != channels.Rejected
		default:
			ok = se.Verdict == channels.Rejected || se.Verdict == channels.NotMade
		}
		if !ok || calls != 1 {
			t.Errorf("status %d: %v, retry after %v, %d requests", status, err, se.RetryAfter, calls)
		}
	}
}

// broken posts where no answer comes, or one that means nothing.
func (h Harness) broken(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"cut before the answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"cut in the answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"ok":true,`)
			panic(http.ErrAbortHandler)
		},
		"empty":    func(http.ResponseWriter, *http.Request) {},
		"not JSON": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>"+Canary) },
		"null":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "null") },
		"no id":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := h.try(t, handler); verdict(t, err).Verdict != channels.Unknown {
				t.Errorf("%v, want unknown", err)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		arrived := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h.Aside != nil && h.Aside(w, r) {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see the caller leave
			close(arrived)
			<-r.Context().Done()
		}))
		defer srv.Close()
		ctx, stop := context.WithCancel(t.Context())
		go func() { <-arrived; stop() }()
		if _, err := h.sender(t, srv.URL).Send(ctx, h.Post); verdict(t, err).Verdict != channels.Unknown {
			t.Errorf("%v, want unknown", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := h.sender(t, "http://"+addr).Send(t.Context(), h.Post); verdict(t, err).Verdict != channels.NotMade {
			t.Errorf("%v, want not made", err)
		}
	})
}

// compose renders what models write, and what they should not.
func (h Harness) compose(t *testing.T) {
	c := h.sender(t, "")
	l := c.Limits()
	if l.RoomEvery < 0 || l.AccountEvery < 0 || l.SettleAfter < 0 {
		t.Errorf("limits %+v", l)
	}
	long := strings.Repeat("Some **bold** words, `code` & <more>. ", 600)
	for _, in := range []string{
		"hello", long, "```go\n" + long + "\n```", "> " + long, "- " + long + "\n- b", strings.Repeat("字", 20000), strings.Repeat("👩‍👩‍👧", 5000),
		"<!channel> <!here> <@U0BOSS> @everyone @here [x](javascript:alert(1)) <script>alert(1)</script>",
		"| a | b |\n|---|---|\n" + strings.Repeat("| cell | other |\n", 1000), "![a](https://x.test/a.png)", strings.Repeat("> ", 5000) + "x",
		"[" + strings.Repeat("l", 9000) + "](https://x.test/" + strings.Repeat("p", 9000) + ")", "**" + strings.Repeat("b", 9000) + "**",
	} {
		parts := c.Compose(in, chat.Member)
		if len(parts) == 0 {
			t.Errorf("nothing of %.60q", in)
		}
		for i, p := range parts {
			if n := h.PartSize(p); n > h.PartLimit || strings.TrimSpace(p) == "" {
				t.Errorf("%.60q: part %d has size %d, limit %d", in, i, n, h.PartLimit)
			}
			if tok, found := h.Live(p); found {
				t.Errorf("%.60q: part %d holds %q", in, i, tok)
			}
		}
	}
	for _, in := range []string{"", " ", "\n\n"} {
		if parts := c.Compose(in, chat.Member); len(parts) != 0 {
			t.Errorf("Compose(%q) = %q", in, parts)
		}
	}
}
