package mcp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// A message asks for a prompt of a server by name; anything else is a message.
func TestCommandOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]command{
		"/demo:greet":                        {"greet", map[string]string{}},
		"  /demo:greet who=Ada ":             {"greet", map[string]string{"who": "Ada"}},
		`/demo:a.b who="Ada and Bob" x= y=1`: {"a.b", map[string]string{"who": "Ada and Bob", "x": "", "y": "1"}},
		"/demo:greet who=\u201cAda B\u201d":  {"greet", map[string]string{"who": "Ada B"}},
		"/demo:greet\nwho=Ada":               {"greet", map[string]string{"who": "Ada"}},
		"/other:greet who=Ada":               {},
		"see /demo:greet":                    {},
		"/demo greet":                        {},
		"/demo:":                             {},
		"":                                   {},
	} {
		got, ok, err := commandOf("demo", chat.Event{Kind: chat.Mention, Text: text})
		if d := cmp.Diff(want, got, cmp.AllowUnexported(command{})); d != "" || ok != (want.prompt != "") || err != nil {
			t.Errorf("%q: %t, %v (-want +got):\n%s", text, ok, err, d)
		}
	}
	for _, text := range []string{"/demo:greet Ada", `/demo:greet who="Ada`, "/demo:greet =Ada", `/demo:greet who="a"b`} {
		if _, ok, err := commandOf("demo", chat.Event{Kind: chat.Message, Text: text}); !ok || err == nil {
			t.Errorf("%q: %t, %v, want an error", text, ok, err)
		}
	}
	if _, ok, _ := commandOf("demo", chat.Event{Kind: chat.Notice, Text: "/demo:greet"}); ok {
		t.Error("a machine's notice asks for a prompt")
	}
}

// The model is shown the prompt as a citation, an error as well, and nothing
// where the server is not mounted.
func TestCommand(t *testing.T) {
	t.Parallel()
	settings := at(serve(t, demo("d"), true).URL)
	settings.Who = chat.Member
	s := openOne(t, settings)
	for _, tt := range []struct {
		text  string
		trust chat.Role
		want  string
	}{
		{"/demo:greet who=Ada", chat.Member, "no rights.\n\nuser: Hello, Ada"},
		{"/demo:none", chat.Member, "It could not be made: it answered with error -3"},
		{"/demo:greet Ada", chat.Member, "It could not be made: arguments are written name=value"},
		{"/demo:greet who=Ada", chat.Outsider, ""},
		{"hello", chat.Member, ""},
	} {
		snap := rendered("E-"+tt.text, tt.trust)
		snap.Event.Kind, snap.Event.Text = chat.Mention, tt.text
		m, err := harness.Render(func(c *harness.Context) string {
			harness.UseModel(c, "fast")
			Use(c, s)
			return ""
		}, snap)
		if err != nil {
			t.Fatal(err)
		}
		scope := harness.NewScope(snap, nil)
		for _, start := range m.Starts {
			if err := start.Run(t.Context(), scope.Call("start", "")); err != nil {
				t.Errorf("%q: %v", tt.text, err)
			}
		}
		got := scope.Citations()
		if (len(got) == 0) != (tt.want == "") || len(got) == 1 && (!strings.Contains(got[0].Text, tt.want) || !strings.HasSuffix(got[0].Source, " of the MCP server demo")) {
			t.Errorf("%q for %s: %+v, want %q", tt.text, tt.trust, got, tt.want)
		}
	}
}
