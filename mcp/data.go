package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heddlehq/heddle/harness"
)

// maxURI bounds what is asked for, in bytes.
const maxURI = 4 << 10

// A Resource is something to read, or with Template a pattern of URIs to read.
// All of it is the server's, cleaned.
type Resource struct {
	URI      string `json:"uri"`
	Template bool   `json:"template,omitempty"` // {name} in URI stands for a value
	Name     string `json:"name,omitempty"`
	Doc      string `json:"doc,omitempty"`
	Media    string `json:"media,omitempty"`
}

// A Prompt is a text that the server makes of arguments.
type Prompt struct {
	Name string      `json:"name"`
	Doc  string      `json:"doc,omitempty"`
	Args []PromptArg `json:"args,omitempty"`
}

// A PromptArg is an argument of a prompt.
type PromptArg struct {
	Name     string `json:"name"`
	Doc      string `json:"doc,omitempty"`
	Required bool   `json:"required,omitempty"`
}

// Resources lists what can be read, templates last.
func (s *Server) Resources(ctx context.Context) ([]Resource, error) {
	return do(ctx, s, true, nil, func(ctx context.Context, sess *session) ([]Resource, error) {
		var out []Resource
		fixed, err := pages("resources", func(cursor string) ([]*sdk.Resource, string, error) {
			r, err := sess.cs.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Resources, r.NextCursor, nil
		})
		if err != nil {
			return nil, err
		}
		for _, r := range fixed {
			if r != nil && len(r.URI) <= maxURI {
				out = append(out, Resource{URI: plain(r.URI), Name: describe(r.Name, maxReason), Doc: describe(r.Description, maxDoc), Media: describe(r.MIMEType, maxReason)})
			}
		}
		patterns, err := pages("templates", func(cursor string) ([]*sdk.ResourceTemplate, string, error) {
			r, err := sess.cs.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.ResourceTemplates, r.NextCursor, nil
		})
		if err != nil && !answered(err) { // a server need not have templates
			return nil, err
		}
		for _, r := range patterns {
			if r != nil && len(r.URITemplate) <= maxURI {
				out = append(out, Resource{URI: plain(r.URITemplate), Template: true, Name: describe(r.Name, maxReason), Doc: describe(r.Description, maxDoc), Media: describe(r.MIMEType, maxReason)})
			}
		}
		return out, nil
	})
}

// Read reads a resource: at most 64 KiB of text; what is not text is only named.
func (s *Server) Read(ctx context.Context, uri string) (string, error) {
	if uri == "" || len(uri) > maxURI {
		return "", fmt.Errorf("want a uri of at most %d bytes", maxURI)
	}
	return do(ctx, s, true, nil, func(ctx context.Context, sess *session) (string, error) {
		var got *sdk.ReadResourceResult
		if _, err := sess.cs.ReadResource(context.WithValue(ctx, readKey{}, &got), &sdk.ReadResourceParams{URI: uri}); err != nil {
			return "", err
		}
		if err := s.asking(got.NeedsInput(), got.InputRequests, got.RequestState); err != nil {
			return "", err
		}
		var b strings.Builder
		for _, c := range got.Contents {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(renderResource(c))
			if b.Len() > 2*maxResult {
				break
			}
		}
		return clip(b.String(), maxResult), nil
	})
}

// Prompts lists the prompts.
func (s *Server) Prompts(ctx context.Context) ([]Prompt, error) {
	return do(ctx, s, true, nil, func(ctx context.Context, sess *session) ([]Prompt, error) {
		list, err := pages("prompts", func(cursor string) ([]*sdk.Prompt, string, error) {
			r, err := sess.cs.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Prompts, r.NextCursor, nil
		})
		if err != nil {
			return nil, err
		}
		var out []Prompt
		for _, p := range list {
			if p == nil {
				continue
			}
			q := Prompt{Name: plain(p.Name), Doc: describe(p.Description, maxDoc)}
			for _, a := range p.Arguments {
				if a != nil {
					q.Args = append(q.Args, PromptArg{plain(a.Name), describe(a.Description, maxReason), a.Required})
				}
			}
			out = append(out, q)
		}
		return out, nil
	})
}

// Prompt makes the text of a prompt: its messages, each with who says it.
func (s *Server) Prompt(ctx context.Context, name string, args map[string]string) (string, error) {
	return do(ctx, s, true, nil, func(ctx context.Context, sess *session) (string, error) {
		r, err := sess.cs.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			return "", err
		}
		if err := s.asking(r.NeedsInput(), r.InputRequests, r.RequestState); err != nil {
			return "", err
		}
		var b strings.Builder
		for _, m := range r.Messages {
			if m != nil && b.Len() <= maxResult {
				fmt.Fprintf(&b, "%s: %s\n", describe(string(m.Role), 32), render([]sdk.Content{m.Content}))
			}
		}
		return clip(strings.TrimSuffix(b.String(), "\n"), maxResult), nil
	})
}

func (s *Server) resourcesTool() harness.Tool {
	type in struct {
		URI string `json:"uri,omitempty" jsonschema:"what to read, from the list; without it the list is returned"`
	}
	doc := fmt.Sprintf("Lists what the MCP server %q has to read, or reads one of it.", s.name)
	return harness.NewTool("mcp__"+s.name+"__"+toolResources, doc, func(ctx context.Context, call *harness.Call, a in) (text string, err error) {
		defer s.audit(call, "mcp__"+s.name+"__"+toolResources, time.Now(), &err)
		if a.URI == "" {
			list, err := s.Resources(ctx)
			return lines(list), tell(err)
		}
		text, err = s.Read(ctx, a.URI)
		return text, tell(err)
	}).Timeout(s.settings.timeout()).Quiet().Deferred()
}

func (s *Server) promptsTool() harness.Tool {
	type in struct {
		Name string            `json:"name,omitempty" jsonschema:"which prompt, from the list; without it the list is returned"`
		Args map[string]string `json:"args,omitempty" jsonschema:"the prompt's arguments by name"`
	}
	doc := fmt.Sprintf("Lists the prompts of the MCP server %q, or makes the text of one.", s.name)
	return harness.NewTool("mcp__"+s.name+"__"+toolPrompts, doc, func(ctx context.Context, call *harness.Call, a in) (text string, err error) {
		defer s.audit(call, "mcp__"+s.name+"__"+toolPrompts, time.Now(), &err)
		if a.Name == "" {
			list, err := s.Prompts(ctx)
			return lines(list), tell(err)
		}
		text, err = s.Prompt(ctx, a.Name, a.Args)
		return text, tell(err)
	}).Timeout(s.settings.timeout()).Quiet().Deferred()
}

// lines writes a list for the model, a JSON object a line.
func lines[T any](list []T) string {
	var b strings.Builder
	for _, one := range list {
		line, err := json.Marshal(one)
		if err != nil {
			continue // unreachable: texts only
		}
		b.Write(line)
		b.WriteString("\n")
		if b.Len() > maxResult {
			break
		}
	}
	return clip(b.String(), maxResult)
}
