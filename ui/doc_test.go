package ui

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocExamples runs the examples of docs/api.md, in order, against the API.
func TestDocExamples(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.work()
	example := regexp.MustCompile(`^curl (?:-N )?(?:-X (\w+) )?"\$API(\S+)"(?: -d '(.*)')?$`)
	ran := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		m := example.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not an example that can be run: %s", line)
			continue
		}
		ran++
		method, path := m[1], "/api/v1"+m[2]
		if method == "" {
			method = "GET"
		}
		if strings.HasSuffix(path, "/stream") {
			w.listen(t.Context(), w.serves()+path, "").until("caught_up")
			continue
		}
		var body any
		if m[3] != "" {
			body = m[3]
		}
		if rec := w.do(method, path, body); rec.Code/100 != 2 {
			t.Errorf("%s: status %d: %s", line, rec.Code, rec.Body)
		}
		if strings.Contains(path, "?wait=") {
			if s := w.want(200, method, path, body); s["answer"] != "you said Write the report." {
				t.Errorf("%s: %v", line, s)
			}
		}
	}
	if ran < 12 {
		t.Errorf("%d examples were found", ran)
	}
}
