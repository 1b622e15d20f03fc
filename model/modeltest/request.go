package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model"
)

// body is what the codec sends for a request.
func body(t *testing.T, c Codec, r model.Request) string {
	t.Helper()
	client, sent := Play(t, c, "text")
	if _, err := c.New(client).Stream(context.Background(), r, nil); err != nil {
		t.Fatal(err)
	}
	if q := sent.Request; q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" || q.GetBody == nil {
		t.Errorf("%s %s, body again: %v", q.Method, q.Header.Get("Content-Type"), q.GetBody != nil)
	}
	return string(sent.Body)
}

var mark = regexp.MustCompile(`,"cache_control":\{"type":"ephemeral"\}`)

// request bodies are golden, equal for equal requests, and grow at the end
// only: all but the marks for the cache, which are not part of what is cached.
func request(t *testing.T, c Codec) {
	r := Request()
	got := body(t, c, r)
	for range 20 {
		if again := body(t, c, Request()); again != got {
			t.Fatalf("equal requests gave other bytes:\n%s\n%s", got, again)
		}
	}
	golden(t, c.Golden, got)
	prefix := ""
	for n := range len(Request().Messages) {
		r.Messages = Request().Messages[:n+1]
		if open(r.Messages[n]) {
			continue // the calls would be closed by failed results
		}
		whole := mark.ReplaceAllString(body(t, c, r), "")
		if !strings.HasPrefix(whole, prefix) {
			t.Fatalf("message %d changed what came before:\n%s\n%s", n+1, prefix, whole)
		}
		prefix = strings.TrimRight(whole, "]}")
	}
	_, err := c.New(http.DefaultClient).Stream(context.Background(), model.Request{Model: "m-1", Tools: []model.Tool{{Name: "a", Schema: []byte(`{"CANARY`)}}}, nil)
	if e := failed(t, err); e.Fault != model.Invalid {
		t.Errorf("a schema that is no JSON: %v", e)
	}
}

// open says whether a message holds calls, which the next one answers.
func open(m model.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p model.Part) bool { return p.Kind == model.Call })
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(got), "", "  "); err != nil {
		t.Fatal(err)
	}
	b.WriteByte('\n')
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// reasoning goes back to its own model as it came, and to no other.
func reasoning(t *testing.T, c Codec) {
	r := load(t, c, "reasoning")
	p := c.New(r.client(io.NopCloser(bytes.NewReader(r.body))))
	got, err := p.Stream(context.Background(), Request(), nil)
	if err != nil {
		t.Fatal(err)
	}
	q := Request()
	q.Messages = append(q.Messages, model.Message{Role: model.Assistant, Parts: got.Parts}, model.Message{Role: model.User, Parts: []model.Part{text("sure?")}})
	part := got.Parts[0]
	if part.From != p.Name()+"/m-1" || !json.Valid(part.Opaque) {
		t.Fatalf("from %q, opaque %s", part.From, part.Opaque)
	}
	inner := strings.Trim(string(part.Opaque), "{}")
	if sent := body(t, c, q); !strings.Contains(sent, inner) {
		t.Errorf("its own model was not sent %s:\n%s", part.Opaque, sent)
	}
	q.Model = "m-2"
	if sent := body(t, c, q); strings.Contains(sent, inner) || strings.Contains(sent, "Two and two.") {
		t.Errorf("another model was sent the reasoning")
	}
}
