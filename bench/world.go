//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A pace is how slow the world outside is. The zero value answers at once.
type pace struct {
	First time.Duration // before the first word of the model
	Word  time.Duration // before each further one
	Words int           // of an answer, beside the marks
	Post  time.Duration // of a post; it becomes visible after half of it
}

// A world is Slack and a model provider in one server on loopback. It is as
// light as it can be, because it runs on the same processors as what is measured.
type world struct {
	pace pace
	book atomic.Pointer[ledger]
	base string // its URL
	srv  *http.Server
	done chan struct{}

	posts     atomic.Int64
	inside    atomic.Int64 // nanoseconds spent in answering everything but posts
	requests  atomic.Int64 // of the model
	bytes     atomic.Int64 // of those requests
	mu        sync.Mutex
	inThreads map[string][]message
}

// A message is a post of the gateway, as conversations.replies gives it back.
type message struct {
	Type     string          `json:"type"`
	User     string          `json:"user"`
	BotID    string          `json:"bot_id,omitempty"`
	Text     string          `json:"text"`
	TS       string          `json:"ts"`
	Root     string          `json:"thread_ts,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// newWorld starts one on a free port.
func newWorld(p pace) (*world, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &world{pace: p, base: "http://" + ln.Addr().String(), done: make(chan struct{}), inThreads: map[string][]message{}}
	w.book.Store(newLedger())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /slack/api/chat.postMessage", w.post)
	mux.HandleFunc("POST /slack/api/{method}", w.timed(w.slack))
	mux.HandleFunc("POST /v1/chat/completions", w.timed(w.model))
	w.srv = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(w.done)
		_ = w.srv.Serve(ln) // it ends by close
	}()
	return w, nil
}

func (w *world) close() {
	_ = w.srv.Close()
	<-w.done
}

func (w *world) timed(h http.HandlerFunc) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h(rw, r)
		w.inside.Add(int64(time.Since(began)))
	}
}

func reply(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v) // a caller that was killed needs no answer
}

// post is chat.postMessage.
func (w *world) post(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	// What Slack has read it does, also for a caller that is gone.
	wait(w.pace.Post / 2)
	room, root, text := r.PostForm.Get("channel"), r.PostForm.Get("thread_ts"), r.PostForm.Get("text")
	m := message{
		Type: "message", User: "U0BOT", BotID: "B0BOT", Text: text, Root: root,
		TS: fmt.Sprintf("1900000000.%06d", w.posts.Add(1)), Metadata: json.RawMessage(r.PostForm.Get("metadata")),
	}
	if len(m.Metadata) == 0 {
		m.Metadata = nil
	}
	w.mu.Lock()
	w.inThreads[room+"/"+root] = append(w.inThreads[room+"/"+root], m)
	w.mu.Unlock()
	w.book.Load().posted(room, root, text, time.Now())
	wait(w.pace.Post - w.pace.Post/2)
	m.Metadata = nil
	reply(rw, map[string]any{"ok": true, "channel": room, "ts": m.TS, "message": m})
}

// wait is a delay of the world's own making.
func wait(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}

// slack is the rest of the Web API.
func (w *world) slack(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	out := map[string]any{"ok": true}
	switch r.PathValue("method") {
	case "auth.test":
		out["team_id"], out["user_id"], out["bot_id"] = "T0FAKE", "U0BOT", "B0BOT"
	case "users.info":
		out["user"] = map[string]any{"id": r.Form.Get("user"), "team_id": "T0FAKE", "name": "person"}
	case "conversations.replies":
		w.mu.Lock()
		out["messages"] = slices.Clone(w.inThreads[r.Form.Get("channel")+"/"+r.Form.Get("ts")])
		w.mu.Unlock()
	default:
		out = map[string]any{"ok": false, "error": "unknown_method"}
	}
	reply(rw, out)
}

// turn is one message of a model request.
type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// owed lists the marks of what people said that no later answer names.
func owed(talk []turn) []string {
	var open []string
	for _, t := range talk {
		marks := marksIn(t.Content)
		switch t.Role {
		case "assistant":
			open = slices.DeleteFunc(open, func(m string) bool { return slices.Contains(marks, m) })
		case "user":
			for _, m := range marks {
				if !slices.Contains(open, m) {
					open = append(open, m)
				}
			}
		}
	}
	return open
}

// model is Chat Completions, streamed.
func (w *world) model(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var in struct {
		Messages []turn `json:"messages"`
	}
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	w.requests.Add(1)
	w.bytes.Add(int64(len(body)))
	rw.Header().Set("Content-Type", "text/event-stream")
	const head = `data: {"id":"c1","object":"chat.completion.chunk","created":1790000000,"model":"fake-model","choices":[`
	chunk := func(choice string) { _, _ = io.WriteString(rw, head+choice+"]}\n\n") }
	chunk(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`)
	words := append(owed(in.Messages), strings.Fields(strings.Repeat("word ", w.pace.Words))...)
	for i, word := range words {
		delay := w.pace.Word
		if i == 0 {
			delay = w.pace.First
		}
		if delay > 0 {
			rw.(http.Flusher).Flush()
			wait(delay)
		}
		chunk(fmt.Sprintf(`{"index":0,"delta":{"content":%q},"finish_reason":null}`, word+" "))
	}
	chunk(`{"index":0,"delta":{},"finish_reason":"stop"}`)
	_, _ = io.WriteString(rw, head+`],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`+"\n\ndata: [DONE]\n\n")
}
