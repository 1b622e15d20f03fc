package harness_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/sandbox"
)

// wanted is a query and the tool that does what it asks for.
type wanted struct{ query, tool string }

// services reads testdata: a thousand tools of fifty services as MCP servers
// describe them, and two hundred queries.
func services(t testing.TB) (tools []harness.Tool, queries []wanted) {
	t.Helper()
	text, err := os.ReadFile("testdata/services.txt")
	if err != nil {
		t.Fatal(err)
	}
	service := ""
	for n, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "? "):
			query, tool, _ := strings.Cut(line[2:], " => ")
			queries = append(queries, wanted{query, "mcp__" + service + "__" + tool})
		default:
			parts := strings.Split(line, " | ")
			service = parts[0]
			for _, object := range parts[2:] {
				name, what, _ := strings.Cut(object, ": ")
				tools = append(tools, verbs(service, parts[1], name, what, n)...)
			}
		}
	}
	return tools, queries
}

// verbs are the five tools of an object, worded in one of three ways.
func verbs(service, title, name, what string, style int) []harness.Tool {
	plain := strings.ReplaceAll(name, "_", " ")
	id := fmt.Sprintf(`"%s_id":{"type":"string","description":"Identifier of the %s"}`, name, plain)
	fields := `"name":{"type":"string","description":"Display name"},"description":{"type":"string"},"properties":{"type":"object","additionalProperties":{"type":"string"}}`
	page := `"limit":{"type":"integer","minimum":1,"maximum":100},"cursor":{"type":"string","description":"Where the next page begins"},"filter":{"type":"string"}`
	var out []harness.Tool
	for _, v := range []struct {
		verb, props string
		docs        [3]string
	}{
		{"list", page, [3]string{"List the %[1]ss of %[2]s, newest first. A %[1]s is %[3]s.", "Returns a page of %[1]ss (%[3]s) from %[2]s that match the filter.", "Retrieve all %[1]ss you have access to. Each is %[3]s."}},
		{"get", id, [3]string{"Get one %[1]s of %[2]s by its id. A %[1]s is %[3]s.", "Fetches the details of a %[1]s (%[3]s) in %[2]s.", "Retrieve a single %[1]s: %[3]s."}},
		{"create", fields, [3]string{"Create a new %[1]s in %[2]s. A %[1]s is %[3]s.", "Adds a %[1]s (%[3]s) to %[2]s and returns its id.", "Make a new %[1]s: %[3]s."}},
		{"update", id + "," + fields, [3]string{"Update fields of an existing %[1]s in %[2]s. A %[1]s is %[3]s.", "Modifies a %[1]s (%[3]s) in %[2]s; fields that are left out stay as they are.", "Change the given fields of a %[1]s: %[3]s."}},
		{"delete", id, [3]string{"Delete a %[1]s from %[2]s. This cannot be undone. A %[1]s is %[3]s.", "Removes a %[1]s (%[3]s) from %[2]s for good.", "Permanently delete a %[1]s: %[3]s."}},
	} {
		doc := fmt.Sprintf("From the MCP server %q: ", service) + fmt.Sprintf(v.docs[style%3], plain, title, what)
		if style%3 == 2 {
			doc = strings.Replace(doc, "%!(EXTRA string="+title+")", "", 1)
		}
		schema := json.RawMessage(`{"type":"object","properties":{` + v.props + `},"additionalProperties":false}`)
		out = append(out, harness.NewRawTool("mcp__"+service+"__"+v.verb+"_"+name, doc, schema,
			func(_ context.Context, c *harness.Call, _ json.RawMessage) (string, error) {
				return "ran " + c.Tool, nil
			}).Deferred())
	}
	return out
}

func many(tools []harness.Tool) harness.Agent {
	return func(c *harness.Context) string {
		harness.UseModel(c, "fast")
		harness.UseSandbox(c, "virtual")
		for _, t := range tools {
			harness.UseTool(c, t)
		}
		return "Help."
	}
}

// find runs search_tools and returns the names that it loaded.
func find(t testing.TB, m harness.Manifest, s harness.Snapshot, query string, limit int) []string {
	t.Helper()
	tool, ok := m.Tool("search_tools")
	if !ok {
		t.Fatal("search_tools is not mounted")
	}
	scope := harness.NewScope(s, func(context.Context) (sandbox.Sandbox, error) { return nil, nil })
	args, _ := json.Marshal(map[string]any{"query": query, "limit": limit})
	text, err := tool.Run(context.Background(), scope.Call("1", "search_tools"), args)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.SplitSeq(text, "\n") {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "- "), ": "); ok && strings.HasPrefix(line, "- ") {
			names = append(names, name)
		}
	}
	return names
}

// Of a thousand tools, the right one is among the first five for at least 180
// of 200 queries, none of which has all words of the tool's name.
func TestSearchFindsTheRightTool(t *testing.T) {
	t.Parallel()
	tools, queries := services(t)
	if len(tools) != 1000 || len(queries) != 200 {
		t.Fatalf("%d tools, %d queries", len(tools), len(queries))
	}
	m, err := harness.Render(many(tools), harness.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, q := range queries {
		if _, ok := m.Tool(q.tool); !ok {
			t.Fatalf("no tool %s", q.tool)
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(q.tool, "mcp__"), "__")
		if said := strings.Fields(strings.ToLower(q.query)); !slices.ContainsFunc(strings.Split(name, "_"), func(w string) bool { return !slices.Contains(said, w) }) {
			t.Errorf("%q repeats the name %s", q.query, name)
		}
		got := find(t, m, harness.Snapshot{}, q.query, 5)
		if slices.Contains(got, q.tool) {
			found++
		} else {
			t.Logf("%q: %s is not among %s", q.query, q.tool, strings.Join(got, " "))
		}
	}
	t.Logf("%d of %d found", found, len(queries))
	if found < 180 {
		t.Errorf("%d of %d found, want 180", found, len(queries))
	}
}

// Where definitions are small, or none may be left out, all are sent and there
// is nothing to search.
func TestSmallSetsAreSentWhole(t *testing.T) {
	t.Parallel()
	tools, _ := services(t)
	var own []harness.Tool
	for i := range 100 {
		own = append(own, harness.NewTool(fmt.Sprint("own_", i), strings.Repeat("It does much. ", 20), func(context.Context, *harness.Call, struct{}) (string, error) { return "", nil }))
	}
	for name, tt := range map[string]struct {
		tools    []harness.Tool
		deferred int
	}{
		"few of servers":        {tools[:20], 0},
		"many of the agent":     {own, 0},
		"many of both":          {slices.Concat(own, tools[:30]), 30},
		"many of servers":       {tools, 1000},
		"own beside few others": {slices.Concat(own[:2], tools[:5]), 0},
	} {
		m, err := harness.Render(many(tt.tools), harness.Snapshot{})
		if err != nil {
			t.Fatal(err)
		}
		v := m.View()
		if _, ok := m.Tool("search_tools"); ok != (tt.deferred > 0) || len(v.Deferred) != tt.deferred {
			t.Errorf("%s: search_tools is mounted: %t; %d tools are deferred, want %d", name, ok, len(v.Deferred), tt.deferred)
		}
	}
}

// A search finds mounted tools only, at most eight, and says so if it finds none.
func TestSearchFindsOnlyWhatIsMounted(t *testing.T) {
	t.Parallel()
	tools, _ := services(t)
	m, err := harness.Render(many(tools[20:]), harness.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range find(t, m, harness.Snapshot{}, "jira sprint", 8) {
		if _, ok := m.Tool(name); !ok || strings.Contains(name, "jira") {
			t.Errorf("found %s", name)
		}
	}
	for limit, want := range map[int]int{-1: 5, 0: 5, 1: 1, 8: 8, 1000: 8} {
		if got := find(t, m, harness.Snapshot{}, "create", limit); len(got) != want {
			t.Errorf("limit %d: %d found", limit, len(got))
		}
	}
	for _, query := range []string{"", "the of", "xyzzy", "\xff"} {
		if got := find(t, m, harness.Snapshot{}, query, 8); got != nil {
			t.Errorf("%q finds %v", query, got)
		}
	}
}

// Words are found in any form, and in names, descriptions and parameters.
func TestSearchWords(t *testing.T) {
	t.Parallel()
	pad, _ := services(t)
	tool := func(name, doc, schema string) harness.Tool {
		return harness.NewRawTool(name, doc, json.RawMessage(schema), func(context.Context, *harness.Call, json.RawMessage) (string, error) { return "", nil }).Deferred()
	}
	const none = `{"type":"object"}`
	m, err := harness.Render(many(slices.Concat(pad[:100], []harness.Tool{
		tool("mcp__w__getWeatherReport", "", none),
		tool("mcp__w__zap", "Quantises voltages.", none),
		tool("mcp__w__bare", "", `{"type":"object","properties":{"latitude":{"type":"number"}}}`),
		tool("mcp__w__cn", "查询天气预报", none),
	})), harness.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"weather": "getWeatherReport", "reports of the weather": "getWeatherReport", "WEATHERREPORT weather": "getWeatherReport",
		"quantised voltage": "zap", "latitudes": "bare", "天气": "cn",
	} {
		if got := find(t, m, harness.Snapshot{}, query, 1); len(got) != 1 || got[0] != "mcp__w__"+want {
			t.Errorf("%q finds %v, want %s", query, got, want)
		}
	}
}

// A conversation loads a bounded number of tools; of those beyond, the model is
// told the arguments.
func TestSearchLoadsSoMany(t *testing.T) {
	t.Parallel()
	tools, _ := services(t)
	m, err := harness.Render(many(tools), harness.Snapshot{})
	if err != nil {
		t.Fatal(err)
	}
	scope := harness.NewScope(harness.Snapshot{}, nil)
	search, _ := m.Tool("search_tools")
	text := ""
	for _, q := range strings.Fields("jira github gitlab slack stripe zendesk salesforce hubspot notion") {
		if text, err = search.Run(context.Background(), scope.Call("1", "search_tools"), json.RawMessage(`{"query":"`+q+`","limit":8}`)); err != nil {
			t.Fatal(err)
		}
	}
	writes := scope.Writes()
	var names []string
	if err := json.Unmarshal(writes[len(writes)-1].Value, &names); err != nil || len(names) != 64 {
		t.Errorf("%d tools are loaded, %v", len(names), err)
	}
	if n := strings.Count(text, "\n  arguments: {"); n != 8 || !strings.Contains(text, "- mcp__notion__") {
		t.Errorf("arguments of %d tools in\n%s", n, text)
	}
}
