//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// serveFloor is the command that a floor is started with.
const serveFloor = "serve-floor"

// floorCmd serves the least that a gateway can do, until it is killed: it
// checks the signature, decodes, has the event on disk before the answer (many
// share a sync), makes one streamed model request and one post. It keeps no
// order, recognises no repeats, tries nothing again and forgets all at its end.
type floorCmd struct {
	World   string `required:"" help:"URL of the world outside."`
	File    string `required:"" help:"The log."`
	History bool   `help:"Send the whole thread to the model, from memory."`
}

type floor struct {
	floorCmd
	client  *http.Client
	log     *groupLog
	mu      sync.Mutex
	threads map[string][]byte // turns as JSON, each after a comma
}

// Run serves.
func (c *floorCmd) Run(ctx context.Context) error {
	f, err := os.OpenFile(c.File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	g := &floor{
		floorCmd: *c, log: &groupLog{file: f}, threads: map[string][]byte{},
		client: &http.Client{Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256}},
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "{\"msg\":\"gateway ready\",\"listen\":%q}\n", ln.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /slack/events", g.receive)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (g *floor) receive(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(rw, "body", http.StatusBadRequest)
		return
	}
	want := signature(r.Header.Get("X-Slack-Request-Timestamp"), body)
	if !hmac.Equal([]byte(want), []byte(r.Header.Get("X-Slack-Signature"))) {
		http.Error(rw, "signature", http.StatusUnauthorized)
		return
	}
	var in struct {
		Event struct {
			Text   string `json:"text"`
			Room   string `json:"channel"`
			TS     string `json:"ts"`
			Thread string `json:"thread_ts"`
		} `json:"event"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(rw, "json", http.StatusBadRequest)
		return
	}
	if err := g.log.add(body); err != nil {
		http.Error(rw, "log", http.StatusInternalServerError)
		return
	}
	e := in.Event
	if e.Thread == "" {
		e.Thread = e.TS
	}
	go func() {
		if err := g.answer(e.Room, e.Thread, e.Text); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
}

// answer asks the model and posts what it says.
func (g *floor) answer(room, thread, text string) error {
	talk, err := g.hear(room+thread, turn{Role: "user", Content: text})
	if err != nil {
		return err
	}
	body := slices.Concat([]byte(`{"model":"fake-model","stream":true,"messages":[{"role":"system","content":"Answer."}`), talk, []byte("]}"))
	res, err := g.client.Post(g.World+"/v1/chat/completions", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	said, err := readStream(res.Body)
	if err != nil {
		return err
	}
	if _, err := g.hear(room+thread, turn{Role: "assistant", Content: said}); err != nil {
		return err
	}
	form := url.Values{"channel": {room}, "thread_ts": {thread}, "text": {said}, "token": {"xoxb-1-bench"}}
	res, err = g.client.PostForm(g.World+"/slack/api/chat.postMessage", form)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, res.Body)
	return res.Body.Close()
}

// hear adds to a thread, encoding what is new only, and returns all of it.
func (g *floor) hear(thread string, t turn) ([]byte, error) {
	said, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	talk := append(append(g.threads[thread], ','), said...)
	if g.History {
		g.threads[thread] = talk
	}
	return talk, nil
}

// readStream puts together the content of a Chat Completions stream.
func readStream(body io.ReadCloser) (string, error) {
	defer body.Close()
	var said strings.Builder
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		line, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || bytes.Equal(line, []byte("[DONE]")) {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(line, &chunk); err != nil {
			return "", err
		}
		if len(chunk.Choices) > 0 {
			said.WriteString(chunk.Choices[0].Delta.Content)
		}
	}
	return said.String(), lines.Err()
}

// A groupLog appends records. Whoever finds no sync under way does one for all
// that wait by then.
type groupLog struct {
	file *os.File

	mu      sync.Mutex
	pending []byte
	waiting []chan error
	busy    bool
}

// add returns when the record is on disk.
func (l *groupLog) add(record []byte) error {
	done := make(chan error, 1)
	l.mu.Lock()
	l.pending = append(append(l.pending, record...), '\n')
	l.waiting = append(l.waiting, done)
	lead := !l.busy
	l.busy = true
	l.mu.Unlock()
	if lead {
		go l.flush()
	}
	return <-done
}

func (l *groupLog) flush() {
	for {
		l.mu.Lock()
		data, waiting := l.pending, l.waiting
		l.pending, l.waiting = nil, nil
		l.busy = len(waiting) > 0
		l.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		_, err := l.file.Write(data)
		if err == nil {
			err = syscall.Fdatasync(int(l.file.Fd()))
		}
		for _, w := range waiting {
			w <- err
		}
	}
}
