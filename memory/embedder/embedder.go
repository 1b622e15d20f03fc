// Package embedder holds the embedders of package memory: servers that speak
// OpenAI's format for embeddings, Ollama, and one that needs no server.
package embedder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/wire"
)

// Options say which model of which server is meant.
type Options struct {
	Model   string // as the server names it
	BaseURL string // of the server
	APIKey  string // "" sends none
	Client  *http.Client
	Wait    time.Duration // before the second try, 0 for half a second; doubled before each further one
}

const (
	perCall  = 64               // texts of one request
	tries    = 4                // of one request
	callTime = 30 * time.Second // of one try
	mostWait = 20 * time.Second // before another try; a server that wants more is not waited for
	maxBytes = 32 << 20         // of an answer
)

// A Server is an embedder behind HTTP. Its errors are those of package model
// and hold no key and none of the server's words.
type Server struct {
	o        Options
	provider string // "openai", "ollama"
	url      string
	ask      func(model string, texts []string) any
	read     func(body []byte, n int) ([][]float32, error)
}

// OpenAI is a server that speaks OpenAI's format, with the /v1 in its address.
func OpenAI(o Options) *Server {
	return newServer("openai", "/embeddings", o, func(model string, texts []string) any {
		return struct {
			Model  string   `json:"model"`
			Input  []string `json:"input"`
			Format string   `json:"encoding_format"`
		}{model, texts, "float"}
	}, readOpenAI)
}

// Ollama is an Ollama server. It cuts texts that are too long for the model.
func Ollama(o Options) *Server {
	return newServer("ollama", "/api/embed", o, func(model string, texts []string) any {
		return struct {
			Model    string   `json:"model"`
			Input    []string `json:"input"`
			Truncate bool     `json:"truncate"`
		}{model, texts, true}
	}, readOllama)
}

func newServer(provider, path string, o Options, ask func(string, []string) any, read func([]byte, int) ([][]float32, error)) *Server {
	if o.Client == nil {
		o.Client = wire.NewClient()
	}
	if o.Wait == 0 {
		o.Wait = 500 * time.Millisecond
	}
	return &Server{o: o, provider: provider, url: strings.TrimRight(o.BaseURL, "/") + path, ask: ask, read: read}
}

// Name implements memory.Embedder.
func (s *Server) Name() string { return s.provider + "/" + s.o.Model }

// Embed implements memory.Embedder. Many texts become several requests. Every
// failure is a *model.Error.
func (s *Server) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for len(texts) > 0 {
		n := min(perCall, len(texts))
		vs, err := s.insist(ctx, texts[:n])
		if err != nil {
			return nil, err
		}
		out, texts = append(out, vs...), texts[n:]
	}
	return out, nil
}

// insist asks again where that may help.
func (s *Server) insist(ctx context.Context, texts []string) ([][]float32, error) {
	for try := 1; ; try++ {
		vs, err := s.call(ctx, texts)
		if err == nil {
			return vs, nil
		}
		wait := max(s.o.Wait<<(try-1)+rand.N(s.o.Wait), err.RetryAfter)
		if !err.Fault.Retry() || try == tries || wait > mostWait {
			return nil, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, s.fail(model.Canceled, 0, context.Cause(ctx))
		}
	}
}

func (s *Server) fail(f model.Fault, status int, err error) *model.Error {
	return &model.Error{Provider: s.provider, Model: s.o.Model, Fault: f, Status: status, Err: err}
}

// call makes one request.
func (s *Server) call(ctx context.Context, texts []string) ([][]float32, *model.Error) {
	body, err := json.Marshal(s.ask(s.o.Model, texts))
	if err != nil {
		return nil, s.fail(model.Invalid, 0, err)
	}
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(within, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, s.fail(model.Invalid, 0, errors.New("endpoint is no URL")) // the parser's error would repeat it
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "heddle")
	if s.o.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+s.o.APIKey)
	}
	resp, err := s.o.Client.Do(req)
	if err != nil {
		return nil, s.broken(ctx, within, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return nil, s.broken(ctx, within, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, s.refused(resp, answer)
	}
	if len(answer) > maxBytes {
		return nil, s.fail(model.Invalid, resp.StatusCode, fmt.Errorf("the answer has more than %d bytes", maxBytes))
	}
	vs, err := s.read(answer, len(texts))
	if err != nil {
		return nil, s.fail(model.Garbled, resp.StatusCode, err)
	}
	return vs, nil
}

// broken classes what went wrong under a request.
func (s *Server) broken(ctx, within context.Context, err error) *model.Error {
	switch {
	case ctx.Err() != nil:
		return s.fail(model.Canceled, 0, context.Cause(ctx))
	case within.Err() != nil:
		return s.fail(model.Stalled, 0, err)
	}
	return s.fail(model.Transient, 0, err)
}

func (s *Server) refused(resp *http.Response, body []byte) *model.Error {
	e := s.fail(model.Garbled, resp.StatusCode, nil)
	if fault, code, ok := wire.Classify(resp.StatusCode, body); ok {
		e.Fault, e.Code = fault, code
	}
	e.RetryAfter = wire.RetryAfter(resp.Header, body, time.Now())
	return e
}

var (
	errShape = errors.New("the answer is no JSON of the expected shape")
	errCount = errors.New("the answer does not hold one vector a text")
)

// readOpenAI takes the vectors by the index that each carries.
func readOpenAI(body []byte, n int) ([][]float32, error) {
	var a struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &a) != nil {
		return nil, errShape
	}
	out := make([][]float32, n)
	for _, d := range a.Data {
		if d.Index < 0 || d.Index >= n || out[d.Index] != nil || len(d.Embedding) == 0 {
			return nil, errCount
		}
		out[d.Index] = d.Embedding
	}
	if len(a.Data) != n {
		return nil, errCount
	}
	return out, nil
}

func readOllama(body []byte, n int) ([][]float32, error) {
	var a struct {
		Embeddings [][]float32 `json:"embeddings"`
	}
	if json.Unmarshal(body, &a) != nil {
		return nil, errShape
	}
	if len(a.Embeddings) != n {
		return nil, errCount
	}
	for _, v := range a.Embeddings {
		if len(v) == 0 {
			return nil, errCount
		}
	}
	return a.Embeddings, nil
}
