package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heddlehq/heddle/harness"
)

// A Result is what a tool answered. All of it is the server's.
type Result struct {
	Text       string          // for the model; at most 64 KiB, images, sounds and other bytes only named
	Structured json.RawMessage // fits the tool's output schema; nil if there is none
	Images     []Image         // in order, as they are named in Text
}

// An Image is one in the answer of a tool.
type Image struct {
	Media string // as the server says
	Data  []byte
	named string // what Text says of it
}

// A Tool is one that may be called, in the server's own words but for Mounted.
type Tool struct {
	Name    string
	Mounted string // its name for the model
	Doc     string // cleaned
	Schema  any    // of its arguments
	Output  any    // nil if it promises none
}

// Tools are the tools that may be called, by name.
func (s *Server) Tools() []Tool {
	snap := s.latest()
	if snap == nil {
		return nil
	}
	var out []Tool
	for _, t := range snap.tools {
		out = append(out, Tool{t.def.Name, t.name, describe(t.def.Description, maxDoc), t.def.InputSchema, t.def.OutputSchema})
	}
	return out
}

// Call calls a tool by the server's name for it. It fails with a *ToolError if
// the tool says that it failed, a *QuestionError, a *ConnError, or another error
// if the tool is not mounted or its answer is not what it promised.
func (s *Server) Call(ctx context.Context, name string, args json.RawMessage) (Result, error) {
	t := s.latest().find(name)
	if t == nil {
		return Result{}, fmt.Errorf("mcp server %q has no tool %q that may be called", s.name, describe(name, maxReason))
	}
	return s.call(ctx, t, args, nil, nil)
}

// runner is what the harness runs for a tool.
func (s *Server) runner(t *tool) func(context.Context, *harness.Call, json.RawMessage) (string, error) {
	return func(ctx context.Context, call *harness.Call, args json.RawMessage) (text string, err error) {
		defer s.audit(call, t.name, time.Now(), &err)
		if now := s.latest().find(t.def.Name); now == nil || now.digest != t.digest {
			return "", fmt.Errorf("mcp server %q no longer offers this tool as it was declared; nothing was run", s.name)
		}
		args = t.original(args)
		if err := t.input.check(args); err != nil && !errors.Is(err, errCost) { // then the server has to
			return "", fmt.Errorf("%w: %s", harness.ErrArgs, describe(err.Error(), maxDoc))
		}
		r, err := s.talk(ctx, call, t, args)
		return show(call, r), tell(err)
	}
}

// show puts the images of an answer into the call's result, as far as models can
// be shown them, and returns the text with what it says of these set right.
func show(call *harness.Call, r Result) string {
	for _, i := range r.Images {
		if call.Show(i.Data) == nil {
			r.Text = strings.Replace(r.Text, i.named, strings.TrimSuffix(i.named, "not shown]")+"shown after the results]", 1)
		}
	}
	return r.Text
}

// audit logs a call: who caused it, where, and whether it failed; what it was
// about is in the conversation.
func (s *Server) audit(call *harness.Call, tool string, began time.Time, err *error) {
	if errors.As(*err, new(*harness.Wait)) {
		s.log.Info("mcp tool asks people", "tool", tool, "thread", call.Thread().Key(), "call", call.ID)
		return
	}
	s.log.Info("mcp tool called", "tool", tool, "thread", call.Thread().Key(), "author", call.Event().Author.ID,
		"call", call.ID, "failed", *err != nil, "took", time.Since(began))
}

// call makes a call; told answers what the server asked at the last one. tried
// learns of a try that was made again, unless it is nil.
func (s *Server) call(ctx context.Context, t *tool, args json.RawMessage, told *reply, tried func(harness.Try)) (Result, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	return do(ctx, s, t.again, tried, func(ctx context.Context, sess *session) (Result, error) {
		p := &sdk.CallToolParams{Name: t.def.Name, Arguments: args}
		if told != nil && len(told.responses) > 0 {
			p.InputResponses, p.RequestState = told.responses, told.state
		}
		if s.o.Progress != nil {
			token, stop := sess.heed(func(g Progress) {
				g.Server, g.Tool = s.name, t.name
				s.o.Progress(g)
			})
			defer stop()
			p.Meta = sdk.Meta{"progressToken": token}
		}
		before := sess.askedCount()
		res, err := sess.cs.CallTool(ctx, p)
		if err != nil {
			return Result{}, err
		}
		if err := s.asking(res.NeedsInput(), res.InputRequests, res.RequestState); err != nil {
			return Result{}, err
		}
		return s.result(t, res, sess.askedSince(before))
	})
}

// result makes the result of an answer.
func (s *Server) result(t *tool, res *sdk.CallToolResult, asked []Question) (Result, error) {
	text := render(res.Content)
	if res.IsError {
		if text == "" {
			text = "the tool failed without saying why"
		}
		if len(asked) > 0 {
			return Result{}, &QuestionError{Server: s.name, Questions: asked, Text: text, over: true}
		}
		return Result{}, &ToolError{text}
	}
	r := Result{Text: text, Images: images(res.Content)}
	if err := r.structured(t, res.StructuredContent); err != nil {
		return Result{}, err
	}
	if len(asked) > 0 {
		r.Text = clip(tell(&QuestionError{Server: s.name, Questions: asked}).Error()+"\n\n"+r.Text, maxResult)
	}
	return r, nil
}

// structured checks and adds the structured part of an answer.
func (r *Result) structured(t *tool, content any) error {
	if content == nil {
		if t.promises {
			return fault("the answer has no structured content, which the tool promises; it is not used")
		}
		return nil
	}
	b, err := json.Marshal(content)
	if err != nil || len(b) > maxResult {
		return fault("the structured content has more than %d bytes or no JSON form; it is not used", maxResult)
	}
	switch err := t.output.check(b); {
	case errors.Is(err, errCost):
		return fault("the structured content takes too long to be checked against the schema that the tool promises; it is not used")
	case err != nil:
		return fault("the structured content does not fit the schema that the tool promises; it is not used: %s", describe(err.Error(), maxReason))
	}
	r.Structured = b
	if !sameJSON(r.Text, b) {
		r.Text = clip(strings.TrimPrefix(r.Text+"\n"+plain(string(b)), "\n"), maxResult)
	}
	return nil
}

// sameJSON says whether a text is a JSON value, as servers repeat it for old clients.
func sameJSON(text string, b []byte) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return false
	}
	again, err := json.Marshal(v)
	return err == nil && string(again) == string(b)
}

// render makes the text of an answer's parts.
func render(content []sdk.Content) string {
	var b strings.Builder
	for _, c := range content {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		switch c := c.(type) {
		case *sdk.TextContent:
			b.WriteString(plain(c.Text))
		case *sdk.ImageContent:
			b.WriteString(unshown("image", c.MIMEType, len(c.Data)))
		case *sdk.AudioContent:
			b.WriteString(unshown("sound", c.MIMEType, len(c.Data)))
		case *sdk.ResourceLink:
			fmt.Fprintf(&b, "[resource %s %s]", describe(c.URI, maxReason), describe(c.Name, maxReason))
		case *sdk.EmbeddedResource:
			b.WriteString(renderResource(c.Resource))
		default:
			b.WriteString("[a part of an unknown kind, not shown]")
		}
		if b.Len() > 2*maxResult {
			break
		}
	}
	return clip(b.String(), maxResult)
}

// images are those among the parts of an answer.
func images(content []sdk.Content) []Image {
	var out []Image
	for _, c := range content {
		switch c := c.(type) {
		case *sdk.ImageContent:
			out = append(out, Image{c.MIMEType, c.Data, unshown("image", c.MIMEType, len(c.Data))})
		case *sdk.EmbeddedResource:
			if r := c.Resource; r != nil && r.Blob != nil && harness.IsImage(r.Blob) {
				out = append(out, Image{r.MIMEType, r.Blob, renderResource(r)})
			}
		}
	}
	return out
}

func renderResource(c *sdk.ResourceContents) string {
	switch {
	case c == nil:
		return ""
	case c.Blob != nil:
		return unshown("resource "+describe(c.URI, maxReason), c.MIMEType, len(c.Blob))
	}
	return plain(c.Text)
}

func unshown(what, media string, bytes int) string {
	return fmt.Sprintf("[%s %s, %d bytes, not shown]", what, describe(media, maxReason), bytes)
}

// do makes one call on the present session, within the server's time limit.
// Where the server forgot the session, or again says that repeating does no
// harm, it is made once more on the next one, and tried learns of that.
func do[T any](ctx context.Context, s *Server, again bool, tried func(harness.Try), f func(context.Context, *session) (T, error)) (T, error) {
	var none T
	ctx, cancel := context.WithTimeout(ctx, s.settings.timeout())
	defer cancel()
	for first := true; ; first = false {
		sess, err := s.borrow()
		if err != nil {
			return none, err
		}
		began := time.Now()
		out, err := f(ctx, sess)
		sess.calls.Done()
		if err == nil || ctx.Err() != nil || answered(err) {
			return out, s.explain(ctx, err)
		}
		sess.lose(err)
		if !first || !again && !errors.Is(err, sdk.ErrSessionMissing) {
			return none, s.explain(ctx, err)
		}
		lost := time.Now()
		wait, stop := context.WithTimeout(ctx, s.o.Connect)
		gone := s.after(wait, sess)
		stop()
		if gone != nil {
			return none, s.explain(ctx, err)
		}
		if tried != nil {
			tried(harness.Try{Took: lost.Sub(began), Wait: time.Since(lost)})
		}
	}
}

// explain makes an error of a call one that a model can act on.
func (s *Server) explain(ctx context.Context, err error) error {
	switch asked := s.askedByError(err); {
	case err == nil:
		return nil
	case asked != nil:
		return asked
	case rpcError(err) != nil:
		return &ToolError{reason(err)}
	case answered(err):
		return err
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	return &ConnError{Server: s.name, Reason: reason(err), Sent: !unsent(err), Err: err}
}
