package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// roleVariable makes the test binary play a server over stdio.
const roleVariable = "HEDDLE_TEST_MCP"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		os.Exit(0)
	}
	// The SDK's server keeps a goroutine for a session that nobody ended.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
}

func play(role string) {
	switch role {
	case "stderr":
		fmt.Fprint(os.Stderr, strings.Repeat("a", 3*maxStderr)+"the end\x1b[0m")
		os.Exit(3)
	case "deaf": // reads nothing, says nothing, and does not go
		signalsIgnored()
		select {}
	case "chatter": // breaks its own stream
		fmt.Println("Welcome to my server!")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "flood":
		for {
			if _, err := fmt.Print(strings.Repeat("[", 1<<16)); err != nil {
				return
			}
		}
	default:
		_ = demo(role).Run(context.Background(), &sdk.StdioTransport{})
	}
}

// program is the settings of the test binary in a role.
func program(t *testing.T, role string) Settings {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Settings{Command: exe, Args: []string{"-test.run=^$"}, Env: map[string]string{roleVariable: role}, NewTools: true, TrustHints: true}
}

// dot is an image of one pixel.
var dot = func() []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		panic(err)
	}
	return b.Bytes()
}()

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

type total struct {
	Total int `json:"total"`
}

// demo is a server with one of everything, made with the SDK.
func demo(name string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: name, Version: "7"}, nil)
	released := make(chan struct{}) // ends the tool steps
	var once sync.Once
	readOnly := &sdk.ToolAnnotations{ReadOnlyHint: true}
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds two numbers.", Annotations: readOnly},
		func(_ context.Context, _ *sdk.CallToolRequest, in sum) (*sdk.CallToolResult, total, error) {
			return nil, total{in.A + in.B}, nil
		})
	say := func(tool string, f func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		s.AddTool(&sdk.Tool{Name: tool, Description: "The tool " + tool + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}, f)
	}
	say("fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := texts("the disk is full")
		r.IsError = true
		return r, nil
	})
	say("sleep", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second): // a stateless server is not told that nobody waits
		}
		return texts("slept"), nil
	})
	say("media", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "see\u202e\x07 this"},
			&sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 1234)},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 5)},
			&sdk.ResourceLink{URI: "demo://notes", Name: "notes"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://x", Text: "inside"}},
			&sdk.ImageContent{MIMEType: "image/x-wrong", Data: dot},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "demo://dot", MIMEType: "image/png", Blob: dot}},
		}}, nil
	})
	say("big", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return texts(strings.Repeat("é", maxResult)), nil
	})
	say("steps", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3, Message: "step",
			})
		}
		select {
		case <-released:
		case <-ctx.Done():
		}
		return texts("done"), nil
	})
	say("release", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		once.Do(func() { close(released) })
		return texts("released"), nil
	})
	say("pid", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return texts(fmt.Sprint(os.Getpid())), nil
	})
	say("env", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return texts(strings.Join(os.Environ(), "\n")), nil
	})
	say("crash", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		os.Exit(9)
		return nil, nil
	})
	say("ask", ask)
	s.AddResource(&sdk.Resource{URI: "demo://notes", Name: "notes", Description: "Our notes.", MIMEType: "text/plain"}, read("remember the milk"))
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "demo://day/{day}", Name: "day"}, read(""))
	s.AddPrompt(&sdk.Prompt{Name: "greet", Description: "Greets.", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Hello, " + r.Params.Arguments["who"]}}}}, nil
		})
	return s
}

func texts(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func read(text string) sdk.ResourceHandler {
	return func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		if text == "" {
			text = "the day " + r.Params.URI
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: text}}}, nil
	}
}

// ask asks for a name, in whichever way the client speaks.
func ask(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if answer, ok := r.Params.InputResponses["name"].(*sdk.ElicitResult); ok {
		return texts(fmt.Sprintf("%s: %v, state %q", answer.Action, answer.Content["name"], r.Params.RequestState)), nil
	}
	return &sdk.CallToolResult{RequestState: "s1", InputRequests: sdk.InputRequestMap{"name": &sdk.ElicitParams{
		Mode: "form", Message: "What is your name?",
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
	}}}, nil
}

// serve puts a server on loopback. A stateless one speaks 2026-07-28.
func serve(t *testing.T, s *sdk.Server, stateless bool) *httptest.Server {
	t.Helper()
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: stateless}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

func at(url string) Settings { return Settings{URL: url, NewTools: true, TrustHints: true} }

// hurry makes options that wait for nothing long.
func hurry(servers map[string]Settings) Options {
	return Options{
		Servers: servers, Connect: 5 * time.Second,
		pace: pace{least: 10 * time.Millisecond, most: 100 * time.Millisecond, gap: 10 * time.Millisecond, grace: 300 * time.Millisecond, optional: 3 * time.Second},
	}
}

func open(t *testing.T, o Options) *Servers {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// openOne opens one server called demo.
func openOne(t *testing.T, s Settings) *Server {
	t.Helper()
	server, _ := open(t, hurry(map[string]Settings{"demo": s})).Server("demo")
	return server
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// snapshot is what a render sees.
func rendered(event string, trust chat.Role) harness.Snapshot {
	return harness.Snapshot{
		Agent: "tested", Conversation: "c1", Trust: trust, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Thread: chat.Thread{Channel: "slack", Account: "T1", Room: "C1", Root: "1"}, Event: chat.Event{ID: event},
	}
}

// mounted renders an agent that uses the server.
func mounted(t *testing.T, s *Server, event string, trust chat.Role) harness.Manifest {
	t.Helper()
	m, err := harness.Render(func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		Use(c, s)
		return ""
	}, rendered(event, trust))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mountedNames(m harness.Manifest) string {
	var out []string
	for _, t := range m.Tools {
		out = append(out, t.Name)
	}
	return strings.Join(out, " ")
}

// invoke runs a tool of a manifest as a step does.
func invoke(t *testing.T, m harness.Manifest, name, args string) (string, error) {
	t.Helper()
	tool, ok := m.Tool(name)
	if !ok {
		t.Fatalf("%s is not mounted; there are %s", name, mountedNames(m))
	}
	snap := rendered("E1", chat.Member)
	return tool.Run(t.Context(), harness.NewScope(snap, nil).Call("call1", name), json.RawMessage(args))
}

// A log collects what is logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// A stranger is a server made by hand: it answers each method as it likes.
type stranger map[string]func(w http.ResponseWriter, r *http.Request, id, params json.RawMessage)

func (s stranger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var msg struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&msg); err != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if f, ok := s[msg.Method]; ok {
		f(w, r, msg.ID, msg.Params)
		return
	}
	switch msg.Method {
	case "server/discover":
		answer(w, msg.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0}`)
	case "tools/list":
		answer(w, msg.ID, toolList("", "look"))
	case "tools/call":
		answer(w, msg.ID, `{"resultType":"complete","content":[{"type":"text","text":"seen"}]}`)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func answer(w http.ResponseWriter, id json.RawMessage, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

// toolList is a page of tools by name.
func toolList(next string, names ...string) string {
	var defs []string
	for _, n := range names {
		defs = append(defs, fmt.Sprintf(`{"name":%q,"description":"The tool %s.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, n, n))
	}
	return fmt.Sprintf(`{"resultType":"complete","tools":[%s],"nextCursor":%q,"ttlMs":3600000}`, strings.Join(defs, ","), next)
}

func (s stranger) start(t *testing.T) string {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h.URL
}

func signalsIgnored() {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGTERM)
}

func errorAs[T error](err error) T {
	var e T
	_ = errors.As(err, &e)
	return e
}
