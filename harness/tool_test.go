package harness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/harness"
)

// Arguments that do not fit the schema never reach the tool, and the error says
// what is wrong.
func TestArgumentsAreValidated(t *testing.T) {
	t.Parallel()
	type in struct {
		Name  string   `json:"name" jsonschema:"who"`
		Count int      `json:"count,omitempty"`
		Tags  []string `json:"tags,omitempty"`
	}
	runs := 0
	tool := harness.NewTool("greet", "Greets.", func(_ context.Context, _ *harness.Call, a in) (string, error) {
		runs++
		return a.Name, nil
	})
	call := harness.NewScope(snapshot(), nil).Call("call_1", "greet")
	for args, want := range map[string]string{
		``:                          `missing properties: ["name"]`,
		`{}`:                        `missing properties: ["name"]`,
		`[]`:                        `type`,
		`{`:                         `not JSON`,
		`{"name":5}`:                `type`,
		`{"name":"x","count":"5"}`:  `type`,
		`{"name":"x","count":1.5}`:  `type`,
		`{"name":"x","tags":[1]}`:   `type`,
		`{"name":"x","nonsense":1}`: `nonsense`,
		`{"Name":"x"}`:              `Name`,
	} {
		_, err := tool.Run(context.Background(), call, json.RawMessage(args))
		if !errors.Is(err, harness.ErrArgs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %q", args, err, want)
		}
	}
	if runs != 0 {
		t.Errorf("the tool ran %d times", runs)
	}
	if out, err := tool.Run(context.Background(), call, json.RawMessage(`{"name":"x","count":2,"tags":["a"]}`)); out != "x" || err != nil || runs != 1 {
		t.Errorf("good arguments gave %q, %v", out, err)
	}
	if s := string(tool.Schema); !strings.Contains(s, `"required":["name"]`) || !strings.Contains(s, `"description":"who"`) {
		t.Errorf("the schema is %s", s)
	}
}

func TestToolResults(t *testing.T) {
	t.Parallel()
	call := harness.NewScope(snapshot(), nil).Call("call_1", "x")
	type out struct {
		N int `json:"n"`
	}
	for name, tt := range map[string]struct {
		tool harness.Tool
		want string
	}{
		"text": {tool(func(context.Context) (string, error) { return "as it is", nil }), "as it is"},
		"json": {tool(func(context.Context) (out, error) { return out{3}, nil }), `{"n":3}`},
		"none": {tool(func(context.Context) (any, error) { return nil, nil }), "null"},
		"bad":  {tool(func(context.Context) (any, error) { return make(chan int), nil }), "error: the result of x has no JSON form: json: unsupported type: chan int"},
		"fail": {tool(func(context.Context) (string, error) { return "lost", errors.New("no luck") }), "error: no luck"},
		"exit": {tool(func(context.Context) (string, error) { runtime.Goexit(); return "", nil }), "error: it ended without a result"},
	} {
		if got := said(tt.tool.Run(context.Background(), call, nil)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func tool[Out any](run func(context.Context) (Out, error)) harness.Tool {
	return harness.NewTool("x", "", func(ctx context.Context, _ *harness.Call, _ struct{}) (Out, error) { return run(ctx) })
}

func TestToolPanic(t *testing.T) {
	t.Parallel()
	_, err := tool(func(context.Context) (string, error) { panic("people's words") }).
		Run(context.Background(), harness.NewScope(snapshot(), nil).Call("call_1", "x"), nil)
	var p *harness.PanicError
	if !errors.As(err, &p) || p.Value != "people's words" || !strings.Contains(string(p.Stack), "TestToolPanic") {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "people") {
		t.Errorf("the error holds what the tool panicked with: %v", err)
	}
}

// Time is over when the tool says so or, if it says nothing, a moment later.
func TestToolTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		call := harness.NewScope(snapshot(), nil).Call("call_1", "x")
		run := func(ctx context.Context, f func(context.Context) (string, error)) (string, time.Duration) {
			began := time.Now()
			return said(tool(f).Timeout(time.Minute).Run(ctx, call, nil)), time.Since(began)
		}
		late := make(chan struct{})
		for name, tt := range map[string]struct {
			f    func(context.Context) (string, error)
			want string
			took time.Duration
		}{
			"heeds":    {func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "error: x did not finish within 1m0s; its outcome is unknown", time.Minute},
			"finishes": {func(ctx context.Context) (string, error) { <-ctx.Done(); return "half", nil }, "half", time.Minute},
			"reports":  {func(ctx context.Context) (string, error) { <-ctx.Done(); return "", errors.New("three of five sent") }, "error: three of five sent", time.Minute},
			"stuck":    {func(context.Context) (string, error) { <-late; return "", nil }, "error: x did not finish within 1m0s; its outcome is unknown", time.Minute + time.Second},
		} {
			if got, took := run(context.Background(), tt.f); got != tt.want || took != tt.took {
				t.Errorf("%s: %q after %v, want %q after %v", name, got, took, tt.want, tt.took)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(5*time.Second, cancel)
		if got, took := run(ctx, func(context.Context) (string, error) { <-late; return "", nil }); got != "error: context canceled" || took != 6*time.Second {
			t.Errorf("a stuck tool of a cancelled step: %q after %v", got, took)
		}
		close(late)
	})
}

// A tool is tried again when it failed, and only then; its finished steps are
// not repeated. What cannot help is not tried.
func TestRetry(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fails error
		args  string
		tries int
		took  time.Duration
	}{
		"works at last":   {errors.New("not now"), `{"n":2}`, 3, 300 * time.Millisecond},
		"works at once":   {errors.New("not now"), `{"n":0}`, 1, 0},
		"gives up":        {errors.New("not now"), `{"n":9}`, 4, 700 * time.Millisecond},
		"bad arguments":   {nil, `{"n":""}`, 0, 0},
		"its own look":    {fmt.Errorf("%w: n is odd", harness.ErrArgs), `{"n":9}`, 1, 0},
		"a wait":          {&harness.Wait{}, `{"n":9}`, 1, 0},
		"beyond its time": {errors.New("not now"), `{"n":90}`, 4, 1 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				type in struct {
					N int `json:"n"`
				}
				tries, steps := 0, 0
				tool := harness.NewTool("shaky", "", func(ctx context.Context, c *harness.Call, a in) (string, error) {
					tries++
					if _, err := harness.Step(ctx, c, "first", func(context.Context) (int, error) { steps++; return 1, nil }); err != nil {
						return "", err
					}
					if tries <= a.N {
						return "", tt.fails
					}
					return "done", nil
				}).Retry(3).Timeout(time.Minute)
				if name == "beyond its time" {
					tool = tool.Retry(50).Timeout(time.Second)
				}
				began := time.Now()
				scope := harness.NewScope(harness.Snapshot{}, nil)
				text, err := tool.Run(context.Background(), scope.Call("1", "shaky"), json.RawMessage(tt.args))
				if took := time.Since(began); tries != tt.tries || steps != min(1, tries) || took != tt.took || (text == "done") != (err == nil) {
					t.Errorf("%q, %v after %d tries and %v; its first step ran %d times", text, err, tries, took, steps)
				}
			})
		})
	}
}
