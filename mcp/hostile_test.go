package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// hostiles are servers that want to stall, widen or fill a turn.
var hostiles = []struct {
	name  string
	tools int // that are mounted
	make  func(t *testing.T) http.Handler
}{
	{"never answers", 0, func(*testing.T) http.Handler { return http.HandlerFunc(hang) }},
	{"never answers a list", 0, method("tools/list", hang)},
	{"lists without end", 0, func(*testing.T) http.Handler {
		var n atomic.Int64
		return stranger{"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			i := n.Add(1)
			answer(w, id, toolList(fmt.Sprint(i), fmt.Sprintf("tool%d", i)))
		}}
	}},
	{"repeats a page", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-List", toolList("again", "look")) })},
	{"lists 10 000 tools", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) {
		var names []string
		for i := range 10000 {
			names = append(names, fmt.Sprintf("tool%d", i))
		}
		w.Header().Set("X-List", toolList("", names...))
	})},
	{"lists 300 tools", maxMounted, method("tools/list", func(w http.ResponseWriter, _ *http.Request) {
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprintf("tool%d", i))
		}
		w.Header().Set("X-List", toolList("", names...))
	})},
	{"lists one tool twice", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-List", toolList("", "look", "look"))
	})},
	{"lists 5 MB", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"look","description":%q,"inputSchema":{"type":"object"}}]}}`, strings.Repeat("x", 5<<20))
	})},
	{"answers 500", 0, func(*testing.T) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	}},
	{"answers a list with 500", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })},
	{"answers no JSON", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":`) })},
	{"answers null", 0, method("tools/list", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-List", `{"tools":[null]}`) })},
	{"drips", 0, method("tools/list", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, " ")
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})},
	{"streams events without end", 0, method("tools/list", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"); err != nil {
				return
			}
		}
	})},
	{"redirects to another host", 0, func(t *testing.T) http.Handler {
		other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("the other host was asked, with %q", r.Header.Get("X-Secret"))
		}))
		t.Cleanup(other.Close)
		return http.RedirectHandler(other.URL, http.StatusTemporaryRedirect)
	}},
	{"redirects in a circle", 0, func(*testing.T) http.Handler { return http.RedirectHandler("/", http.StatusTemporaryRedirect) }},
	{"opens no stream of notifications", 1, func(*testing.T) http.Handler {
		return stranger{
			"server/discover": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				answer(w, id, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0}`)
			},
			"subscriptions/listen": func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) { hang(w, r) },
		}
	}},
	{"ends its stream of notifications at once", 1, func(*testing.T) http.Handler {
		return stranger{
			"server/discover": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				answer(w, id, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0}`)
			},
			"subscriptions/listen": func(w http.ResponseWriter, _ *http.Request, _, _ json.RawMessage) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}\n\n")
			},
		}
	}},
	{"speaks of another revision", 0, func(*testing.T) http.Handler {
		return stranger{
			"server/discover": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				answer(w, id, `{"resultType":"complete","supportedVersions":["2099-01-01"],"capabilities":{"tools":{}}}`)
			},
			"initialize": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
				answer(w, id, `{"protocolVersion":"2099-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`)
			},
		}
	}},
}

// hang answers never, and notices when nobody waits any more.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// method makes a server that answers one method in its own way. What it puts
// into X-List is the result.
func method(name string, f http.HandlerFunc) func(*testing.T) http.Handler {
	return func(*testing.T) http.Handler {
		return stranger{name: func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
			w.Header().Set("Content-Type", "application/json")
			f(w, r)
			if list := w.Header().Get("X-List"); list != "" {
				w.Header().Del("X-List")
				answer(w, id, list)
			}
		}}
	}
}

// No server can hold up the start, another server or a turn, nor mount more
// than what is allowed.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	for _, tt := range hostiles {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(tt.make(t))
			t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
			bad := at(h.URL + "/?key=hush")
			bad.Optional, bad.Headers, bad.Timeout = true, map[string]string{"X-Secret": "hush"}, time.Second
			var log logged
			o := hurry(map[string]Settings{"bad": bad, "good": at(serve(t, demo("d"), true).URL)})
			o.Connect, o.Log = time.Second, log.logger()
			began := time.Now()
			ss := open(t, o)
			good, _ := ss.Server("good")
			if _, err := good.Call(t.Context(), "pid", nil); err != nil {
				t.Errorf("the good server: %v", err)
			}
			s, _ := ss.Server("bad")
			m := mounted(t, s, "E1", chat.Admin)
			if len(m.Tools) != tt.tools {
				t.Errorf("%d tools are mounted, want %d: %.200s", len(m.Tools), tt.tools, mountedNames(m))
			}
			if tt.tools > 0 {
				if _, err := invoke(t, m, m.Tools[0].Name, "{}"); err != nil {
					t.Errorf("call: %v", err)
				}
			} else if st := s.Status(); st.Err == "" && len(st.Quarantined) == 0 && tt.name != "answers null" {
				t.Errorf("nothing is reported: %+v", st)
			}
			ss.Close()
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
			if st := fmt.Sprint(s.Status()); strings.Contains(st+log.String(), "hush") {
				t.Errorf("a secret is told: %s\n%s", st, log.String())
			}
		})
	}
}

// A call of a hostile server ends within its limits and as an error.
func TestHostileCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		err  string
		call http.HandlerFunc
	}{
		{"never answers", "did not finish", hang},
		{"answers 500", "Internal Server Error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }},
		{"answers 401", "Unauthorized", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		{"answers 5 MB", "too much", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte(" "), 5<<20)) }},
		{"answers another call", "did not finish", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":424242,"result":{"content":[]}}`)
		}},
		{"streams without end", "", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"x\",\"progress\":1}}\n\n"); err != nil {
					return
				}
			}
		}},
		{"ends its stream", "without response", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") }},
		{"sends a huge event", "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("x", 5<<20))
		}},
		{"answers with its own error", "no such thing", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no such`+"\u202e"+` thing"}}`)
		}},
		{"wants sampling", "asked a question", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-List", `{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}},"requestState":"s"}`)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := httptest.NewServer(stranger{"tools/call": func(w http.ResponseWriter, r *http.Request, id, _ json.RawMessage) {
				rec := &patched{ResponseWriter: w, id: string(id)}
				method("", tt.call)(t).(stranger)[""](rec, r, id, nil)
			}})
			t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
			bad := at(h.URL)
			bad.Timeout, bad.TrustHints = 3*time.Second, false
			s := openOne(t, bad)
			began := time.Now()
			text, err := invoke(t, mounted(t, s, "E1", chat.Admin), "mcp__demo__look", "{}")
			if took := time.Since(began); took > 10*time.Second || err == nil || !strings.Contains(err.Error(), tt.err) || len(err.Error()) > maxResult {
				t.Errorf("%.100q, %.300v after %v; want an error with %q", text, err, took, tt.err)
			}
		})
	}
}

// patched puts the id of the request where a test wrote ID.
type patched struct {
	http.ResponseWriter
	id string
}

func (p *patched) Write(b []byte) (int, error) {
	_, err := p.ResponseWriter.Write(bytes.Replace(b, []byte(`"id":ID`), []byte(`"id":`+p.id), 1))
	return len(b), err
}

// A list that changes with every reading is followed, but not all the time.
func TestListThatChangesAllTheTime(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	url := stranger{
		"server/discover": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			answer(w, id, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0}`)
		},
		"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			answer(w, id, toolList("", "look", fmt.Sprintf("tool%d", n.Add(1))))
		},
		"subscriptions/listen": func(w http.ResponseWriter, r *http.Request, _, _ json.RawMessage) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}\n\n")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		},
	}.start(t)
	s := openOne(t, at(url))
	first := mountedNames(mounted(t, s, "E1", chat.Member))
	began := time.Now()
	soon(t, "it is read again", func() bool { return n.Load() >= 5 })
	if _, err := s.Call(t.Context(), "look", nil); err != nil {
		t.Errorf("call: %v", err)
	}
	if most := int64(time.Since(began)/s.o.pace.gap) + 10; n.Load() > most {
		t.Errorf("the list was read %d times, want at most %d", n.Load(), most)
	}
	if same := mountedNames(mounted(t, s, "E1", chat.Member)); same != first {
		t.Errorf("the turn saw %s, then %s", first, same)
	}
}

// costly is a schema that is looked at some two thousand times for each entry
// of a list.
func costly(check string, times int) string {
	return `{"type":"object","properties":{"a":{"type":"array","items":{"allOf":[` + strings.TrimSuffix(strings.Repeat(check+",", times), ",") + `]}}}}`
}

// many is a value of many entries.
func many(entry string, times int) string {
	return `{"a":[` + strings.TrimSuffix(strings.Repeat(entry+",", times), ",") + `]}`
}

// What a tool promises of its structured answers is checked, unless that would
// take longer than a turn can wait.
func TestLyingSchemas(t *testing.T) {
	t.Parallel()
	const person = `{"type":"object","properties":{"name":{"type":"string","minLength":1},"age":{"$ref":"#/$defs/n"}},"required":["name"],"additionalProperties":false}`
	for _, tt := range []struct{ name, output, content, err string }{
		{"fits", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"n":1}`, ""},
		{"does not fit", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, `{"n":"one"}`, "does not fit"},
		{"a list", `{"type":"array","items":{"type":"integer"}}`, `[1,2]`, ""},
		{"is not there", `{"type":"object"}`, ``, "no structured content"},
		{"is too large", `{"type":"object"}`, `{"x":"` + strings.Repeat("x", maxResult) + `"}`, "more than"},
		{"refers to itself", `{"type":"object","$defs":{"a":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `{"n":1}`, ""},
		{"nothing was promised", ``, `{"n":1}`, ""},
		{"is long", `{"type":"object","properties":{"a":{"type":"array","items":` + person + `}},"$defs":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, many(`{"age":7,"name":"Ada"}`, 2500), ""},
		{"is checked for long", costly(`{"minimum":0}`, 1900), many("1", 30000), "too long"},
		{"is compared for long", costly(`{"not":{"enum":["`+strings.Repeat(`x","`, 1000)+`y"]}}`, 10), many("1", 30000), "too long"},
		{"is unlike itself for long", costly(`{"uniqueItems":true}`, 1000), many("["+strings.TrimSuffix(strings.Repeat("[],", 1000), ",")+"]", 20), "too long"},
		{"is read for long", costly(`{"pattern":"`+strings.Repeat("(a|b|ab)*", 50)+`c"}`, 9), many(`"`+strings.Repeat("ab", 30000)+`"`, 1), "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url := stranger{
				"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
					out := ""
					if tt.output != "" {
						out = `,"outputSchema":` + tt.output
					}
					answer(w, id, `{"tools":[{"name":"look","inputSchema":{"type":"object"}`+out+`}]}`)
				},
				"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
					content := ""
					if tt.content != "" {
						content = `,"structuredContent":` + tt.content
					}
					answer(w, id, `{"resultType":"complete","content":[{"type":"text","text":"hello"}]`+content+`}`)
				},
			}.start(t)
			s, began := openOne(t, at(url)), time.Now()
			r, err := s.Call(t.Context(), "look", nil)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || err == nil && string(r.Structured) != tt.content {
				t.Errorf("%.200s, %v; want %q", r.Structured, err, tt.err)
			}
			if err == nil && r.Text != "hello\n"+tt.content {
				t.Errorf("text %q", r.Text)
			}
		})
	}
}

// Arguments are checked before a call, unless that would take too long: the
// server has to check them then.
func TestCostlyArguments(t *testing.T) {
	t.Parallel()
	url := stranger{
		"tools/list": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) {
			answer(w, id, `{"tools":[{"name":"look","inputSchema":`+costly(`{"minimum":0}`, 1900)+`}]}`)
		},
		"tools/call": func(w http.ResponseWriter, _ *http.Request, id, _ json.RawMessage) { answer(w, id, nothingMore) },
	}.start(t)
	m := mounted(t, openOne(t, at(url)), "E1", chat.Admin)
	began := time.Now()
	if text, err := invoke(t, m, "mcp__demo__look", many("1", 30000)); text != "done" || err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("many: %q, %v after %v", text, err, time.Since(began))
	}
	if _, err := invoke(t, m, "mcp__demo__look", `{"a":[-1]}`); !errors.Is(err, harness.ErrArgs) {
		t.Errorf("wrong ones: %v", err)
	}
}
