package embedder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/memory"
	"github.com/heddlehq/heddle/memory/embedder"
	"github.com/heddlehq/heddle/model"
)

const key = "sk-very-secret-0123456789"

// kinds are the servers: how each is made, what it must be asked and how it answers.
var kinds = map[string]struct {
	open   func(embedder.Options) *embedder.Server
	base   string // of the address
	path   string
	extra  string // field beside model and input
	value  any
	answer func(vs [][]float32) any
}{
	"openai": {embedder.OpenAI, "/v1", "/v1/embeddings", "encoding_format", "float", func(vs [][]float32) any {
		var data []any
		for i := range vs { // in any order: the index counts
			n := len(vs) - 1 - i
			data = append(data, map[string]any{"object": "embedding", "index": n, "embedding": vs[n]})
		}
		return map[string]any{"object": "list", "model": "m", "data": data, "usage": map[string]int{"prompt_tokens": 3, "total_tokens": 3}}
	}},
	"ollama": {embedder.Ollama, "", "/api/embed", "truncate", true, func(vs [][]float32) any {
		return map[string]any{"model": "m", "embeddings": vs, "total_duration": 14143917, "load_duration": 1019500, "prompt_eval_count": 8}
	}},
}

// server is a strict stand-in for an embedding server. Its vectors are the
// lengths of the texts.
type server struct {
	t      *testing.T
	kind   string
	mu     sync.Mutex
	sizes  []int                                   // of the requests
	before func(n int, w http.ResponseWriter) bool // may answer the n-th request itself
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := kinds[s.kind]
	if r.Method != http.MethodPost || r.URL.Path != k.path || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer "+key {
		s.t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	var in map[string]any
	if err := json.Unmarshal(body, &in); err != nil {
		s.t.Error(err)
	}
	texts, _ := in["input"].([]any)
	if len(in) != 3 || in["model"] != "m" || in[k.extra] != k.value || len(texts) == 0 || len(texts) > 64 {
		s.t.Errorf("asked %v", in)
	}
	s.mu.Lock()
	s.sizes = append(s.sizes, len(texts))
	n := len(s.sizes)
	s.mu.Unlock()
	if s.before != nil && s.before(n, w) {
		return
	}
	var vs [][]float32
	for _, t := range texts {
		vs = append(vs, []float32{float32(len(t.(string))), 1})
	}
	if err := json.NewEncoder(w).Encode(k.answer(vs)); err != nil {
		s.t.Error(err)
	}
}

// serve starts the stand-in and an embedder that asks it.
func serve(t *testing.T, kind string, before func(int, http.ResponseWriter) bool) (*server, memory.Embedder) {
	s := &server{t: t, kind: kind, before: before}
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return s, kinds[kind].open(embedder.Options{Model: "m", BaseURL: h.URL + kinds[kind].base, APIKey: key, Wait: time.Millisecond})
}

func TestServers(t *testing.T) {
	t.Parallel()
	for kind := range kinds {
		s, e := serve(t, kind, nil)
		if e.Name() != kind+"/m" {
			t.Errorf("its name is %q", e.Name())
		}
		var texts []string
		var want [][]float32
		for i := range 150 {
			texts = append(texts, strings.Repeat("x", i+1))
			want = append(want, []float32{float32(i + 1), 1})
		}
		got, err := e.Embed(context.Background(), texts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
		if diff := cmp.Diff([]int{64, 64, 22}, s.sizes); diff != "" {
			t.Errorf("%s: texts a request (-want +got):\n%s", kind, diff)
		}
	}
}

// TestFaults answers with all that goes wrong: what may pass is asked again,
// what does not is not, and no error holds the key or the server's words.
func TestFaults(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	refused := func(status int) func(http.ResponseWriter) {
		return answer(status, `{"error":{"message":"Incorrect API key provided: `+key+`","code":"some_code"}}`)
	}
	for _, tt := range []struct {
		name  string
		do    func(http.ResponseWriter)
		fault model.Fault
		again bool
	}{
		{"no key", refused(401), model.Denied, false},
		{"no such model", refused(404), model.Missing, false},
		{"wrong", refused(400), model.Invalid, false},
		{"redirect", func(w http.ResponseWriter) { w.Header().Set("Location", "/elsewhere"); w.WriteHeader(302) }, model.Missing, false},
		{"too many", refused(429), model.Limited, true},
		{"down", refused(503), model.Transient, true},
		{"no JSON", answer(200, "<html>"+key), model.Garbled, true},
		{"fewer vectors", answer(200, `{"data":[],"embeddings":[]}`), model.Garbled, true},
		{"empty vector", answer(200, `{"data":[{"index":0,"embedding":[]}],"embeddings":[[]]}`), model.Garbled, true},
		{"another index", answer(200, `{"data":[{"index":1,"embedding":[1]}],"embeddings":[]}`), model.Garbled, true},
		{"text for a vector", answer(200, `{"data":[{"index":0,"embedding":"AAAA"}],"embeddings":["AAAA"]}`), model.Garbled, true},
		{"endless", answer(200, strings.Repeat(" ", 33<<20)), model.Invalid, false},
		{"cut off", func(w http.ResponseWriter) { w.Header().Set("Content-Length", "100"); _, _ = io.WriteString(w, "{") }, model.Transient, true},
		{"wants a day", func(w http.ResponseWriter) { w.Header().Set("Retry-After", "86400"); w.WriteHeader(429) }, model.Limited, false},
	} {
		for kind := range kinds {
			s, e := serve(t, kind, func(_ int, w http.ResponseWriter) bool { tt.do(w); return true })
			_, err := e.Embed(context.Background(), []string{"x"})
			var me *model.Error
			if !errors.As(err, &me) || me.Fault != tt.fault {
				t.Errorf("%s: %s: %v, want %s", tt.name, kind, err, tt.fault)
				continue
			}
			if n := len(s.sizes); (n > 1) != tt.again || n > 4 {
				t.Errorf("%s: %s: asked %d times", tt.name, kind, n)
			}
			for err := error(me); err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "Incorrect") {
					t.Errorf("%s: %s: the error is %v", tt.name, kind, err)
				}
			}
			s.before = func(n int, w http.ResponseWriter) bool {
				if n%2 == 1 {
					tt.do(w)
				}
				return n%2 == 1
			}
			s.mu.Lock()
			s.sizes = nil
			s.mu.Unlock()
			if _, err := e.Embed(context.Background(), []string{"x"}); (err == nil) != tt.again {
				t.Errorf("%s: %s: with one failure %v", tt.name, kind, err)
			}
		}
	}
}

// trip is a server in memory.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTime bounds a server that does not answer and heeds the caller's end.
func TestTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		e := embedder.OpenAI(embedder.Options{Model: "m", BaseURL: "http://example.com/v1", Client: silent})
		began := time.Now()
		_, err := e.Embed(context.Background(), []string{"x"})
		var me *model.Error
		if !errors.As(err, &me) || me.Fault != model.Stalled {
			t.Errorf("%v, want stalled", err)
		}
		if took := time.Since(began); took < 2*time.Minute || took > 130*time.Second {
			t.Errorf("gave up after %v, want four times half a minute and the waits between", took)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began = time.Now()
		if _, err = e.Embed(ctx, []string{"x"}); !errors.As(err, &me) || me.Fault != model.Canceled || time.Since(began) != time.Second {
			t.Errorf("%v after %v, want canceled after 1s", err, time.Since(began))
		}
	})
}

// TestNGram gives equal texts equal vectors, and related ones nearer vectors
// than others, in several scripts.
func TestNGram(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{"payments failed", "a failing payment", "lunch in the garden"},
		{"北京大学", "北大", "超市"},
		{"결제가 실패했습니다", "결제 실패", "점심을 먹습니다"},
		{"ошибка оплаты", "ошибки при оплате", "обед в саду"},
	} {
		vs, err := embedder.NGram{}.Embed(context.Background(), append(tt[:], tt[0]))
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Diff(vs[0], vs[3]) != "" || len(vs[0]) != embedder.Dimension {
			t.Errorf("%q has two vectors, or of %d dimensions", tt[0], len(vs[0]))
		}
		if near, far := cosine(vs[0], vs[1]), cosine(vs[0], vs[2]); near < far+0.1 {
			t.Errorf("%q is as near to %q (%.2f) as to %q (%.2f)", tt[0], tt[1], near, tt[2], far)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (embedder.NGram{}).Embed(ctx, []string{"x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestNGramStays holds the vectors to their name: whoever changes them changes
// the name as well, or what is stored fits no more.
func TestNGramStays(t *testing.T) {
	t.Parallel()
	vs, err := embedder.NGram{}.Embed(context.Background(), []string{"Payments, payments: 결제가 失败 x"})
	if err != nil {
		t.Fatal(err)
	}
	sum, n := 0.0, 0
	for i, f := range vs[0] {
		if f != 0 {
			sum += float64(i+1) * float64(f)
			n++
		}
	}
	if got := fmt.Sprintf("%s %d %.3f", embedder.NGram{}.Name(), n, sum); got != "ngram/1 30 5271.902" {
		t.Errorf("got %s", got)
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}
