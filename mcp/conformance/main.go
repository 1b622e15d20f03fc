// Command conformance is the client under test of the MCP conformance suite: it
// does what a scenario asks for with package mcp, as the gateway would.
// See tools/conformance/run.sh.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/heddlehq/heddle/mcp"
)

const server = "tested"

// given is what the suite hands to some scenarios.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	ToolCalls    []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance URL")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(endpoint, scenario string) error {
	var g given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			return fmt.Errorf("context of the scenario: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	servers, err := mcp.Open(ctx, options(endpoint, scenario, g))
	if err != nil {
		return err
	}
	defer servers.Close()
	s, _ := servers.Server(server)
	switch scenario {
	case "http-standard-headers":
		return everyKind(ctx, s)
	case "http-custom-headers":
		for _, c := range g.ToolCalls {
			call(ctx, s, c.Name, c.Arguments)
		}
	case "json-schema-2020-12-preservation":
		return echoSchema(ctx, s)
	default:
		everyTool(ctx, s, scenario)
	}
	return nil
}

func options(endpoint, scenario string, g given) mcp.Options {
	settings := mcp.Settings{
		URL: endpoint, NewTools: true, TrustHints: true, Timeout: 20 * time.Second,
		Protocol: os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"),
	}
	if strings.HasPrefix(scenario, "auth/") {
		settings.OAuth = &mcp.OAuth{
			Redirect: "http://localhost:3000/callback", Private: true,
			Client: "https://conformance-test.local/client-metadata.json",
		}
		if g.ClientID != "" {
			settings.OAuth.Client, settings.OAuth.Secret = g.ClientID, g.ClientSecret
		}
	}
	return mcp.Options{
		Servers: map[string]mcp.Settings{server: settings},
		Version: "1.0.0", Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Answer: accept, Authorize: logIn,
	}
}

// accept answers questions as a person who agrees to every default.
func accept(_ context.Context, q mcp.Question) (mcp.Answer, error) {
	var schema struct {
		Properties map[string]struct {
			Type    string `json:"type"`
			Default any    `json:"default"`
		} `json:"properties"`
	}
	if q.Schema != nil {
		if err := json.Unmarshal(q.Schema, &schema); err != nil {
			return mcp.Answer{}, err
		}
	}
	values := map[string]any{}
	for name, p := range schema.Properties {
		switch {
		case p.Default != nil:
			values[name] = p.Default
		case p.Type == "boolean":
			values[name] = true
		}
	}
	return mcp.Answer{Accept: true, Values: values}, nil
}

// logIn follows the log-in page, which sends on at once in this suite.
func logIn(ctx context.Context, _, page string) (mcp.Grant, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return mcp.Grant{}, err
	}
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(req)
	if err != nil {
		return mcp.Grant{}, err
	}
	if err := resp.Body.Close(); err != nil {
		return mcp.Grant{}, err
	}
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil {
		return mcp.Grant{}, err
	}
	q := to.Query()
	return mcp.Grant{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss")}, nil
}

// call calls a tool and tells how it went; whether it may fail is the suite's to say.
func call(ctx context.Context, s *mcp.Server, name string, args json.RawMessage) {
	r, err := s.Call(ctx, name, args)
	fmt.Println(name, r.Text, err)
}

// arguments are what the tools of the suite want.
var arguments = map[string]string{
	"tools_call":                `{"a":5,"b":3}`,
	"http-invalid-tool-headers": `{"region":"us-west1"}`,
}

func everyTool(ctx context.Context, s *mcp.Server, scenario string) {
	args := arguments[scenario]
	if args == "" {
		args = "{}"
	}
	for _, t := range s.Tools() {
		call(ctx, s, t.Name, json.RawMessage(args))
	}
}

// everyKind makes one request of each kind.
func everyKind(ctx context.Context, s *mcp.Server) error {
	if tools := s.Tools(); len(tools) > 0 {
		call(ctx, s, tools[0].Name, json.RawMessage("{}"))
	}
	resources, err := s.Resources(ctx)
	if err != nil {
		return err
	}
	for _, r := range resources[:min(1, len(resources))] {
		if _, err := s.Read(ctx, r.URI); err != nil {
			return err
		}
	}
	prompts, err := s.Prompts(ctx)
	if err != nil {
		return err
	}
	for _, p := range prompts[:min(1, len(prompts))] {
		if _, err := s.Prompt(ctx, p.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends a schema back as it came.
func echoSchema(ctx context.Context, s *mcp.Server) error {
	for _, t := range s.Tools() {
		if t.Name == "json_schema_2020_12_tool" {
			args, err := json.Marshal(map[string]any{"schema": t.Schema})
			if err != nil {
				return err
			}
			call(ctx, s, "json_schema_echo", args)
			return nil
		}
	}
	return errors.New("the tool with the schema is not there")
}
