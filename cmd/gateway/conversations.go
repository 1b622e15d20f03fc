package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

type conversationsCmd struct {
	List listCmd `cmd:"" help:"List conversations, the latest first."`
	Show showCmd `cmd:"" help:"Show one conversation's log and posts."`

	Export  exportCmd  `cmd:"" help:"Write one conversation's log down, with the chain that vouches for it."`
	Verify  verifyCmd  `cmd:"" help:"Say whether a log, or one that was exported, is as it was written."`
	Replay  replayCmd  `cmd:"" help:"Run today's code against a log's recorded answers and say where it first does something else. Calls no model and runs no tool."`
	Retries retriesCmd `cmd:"" help:"List what was tried again and why, with what it took and cost."`
}

type listCmd struct {
	Limit int  `default:"50" help:"At most so many."`
	JSON  bool `help:"One JSON object a line."`
}

// Validate checks the flags.
func (c listCmd) Validate() error {
	if c.Limit < 1 {
		return fmt.Errorf("--limit: found %d; want 1 or more", c.Limit)
	}
	return nil
}

// Run lists conversations.
func (c listCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	all, err := st.Conversations(ctx, time.Time{}, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		type line struct {
			ID        state.ID    `json:"id"`
			Agent     string      `json:"agent"`
			Thread    chat.Thread `json:"thread"`
			Records   int64       `json:"seq"`
			Inbox     int         `json:"inbox"`
			CreatedAt time.Time   `json:"created_at"`
			UpdatedAt time.Time   `json:"updated_at"`
		}
		var lines []line
		for _, v := range all {
			lines = append(lines, line{v.ID, v.Agent, v.Thread, v.Seq, v.Inbox, v.CreatedAt, v.UpdatedAt})
		}
		return jsonLines(e.stdout, lines)
	}
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "CONVERSATION\tAGENT\tTHREAD\tRECORDS\tWAITING\tUPDATED")
	for _, v := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", v.ID, v.Agent, v.Thread.Key(), v.Seq, v.Inbox, v.UpdatedAt.Format(time.RFC3339))
	}
	return w.Flush()
}

type showCmd struct {
	ID   string `arg:"" help:"Id of the conversation, or its thread key (slack/T01/C02/1721.0001)."`
	JSON bool   `help:"The records as they are stored, one JSON object a line."`
}

// Run shows one conversation.
func (c showCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	v, err := viewOf(ctx, st, c.ID)
	if err != nil {
		return err
	}
	id := v.Conversation.ID
	posts, err := st.Posts(ctx, id)
	if err != nil {
		return err
	}
	if c.JSON {
		type line struct {
			Seq  int64           `json:"seq"`
			At   time.Time       `json:"at"`
			Kind string          `json:"kind"`
			Data json.RawMessage `json:"data"`
		}
		var lines []line
		for _, r := range v.Records {
			lines = append(lines, line{r.Seq, r.At, r.Kind, r.Data})
		}
		return jsonLines(e.stdout, lines)
	}
	fmt.Fprintf(e.stdout, "%s  agent %s  thread %s\n\n", id, v.Conversation.Agent, v.Conversation.Thread.Key())
	for _, r := range v.Records {
		b, err := record.Decode(r)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%4d  %s  %s\n", r.Seq, r.At.Format("15:04:05.000"), indent(printable(summary(b))))
	}
	for _, in := range v.Inbox {
		fmt.Fprintf(e.stdout, "   -  waiting: %s\n", indent(printable(in.Event.Text)))
	}
	for _, p := range posts {
		text := p.Post.Text
		for _, f := range p.Post.Files {
			text += fmt.Sprintf("\n[%s, %d bytes]", f.Name, len(f.Data))
		}
		fmt.Fprintf(e.stdout, "post  %s  %s %s  %s\n", p.State, p.Ref, printable(p.Reason), indent(printable(text)))
	}
	return nil
}

// viewOf reads the conversation of an id or a thread key.
func viewOf(ctx context.Context, st state.Store, ref string) (state.View, error) {
	id := state.ID(ref)
	if strings.Contains(ref, "/") {
		t, err := chat.ParseThread(ref)
		if err != nil {
			return state.View{}, err
		}
		found, err := st.Find(ctx, t)
		if err != nil {
			return state.View{}, missing(ref, err)
		}
		id = found.ID
	}
	v, err := st.Load(ctx, id, 0)
	return v, missing(ref, err)
}

// missing says of what is not there only that.
func missing(ref string, err error) error {
	if errors.Is(err, state.ErrNotFound) {
		err = state.ErrNotFound
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", ref, err)
}

// summary is a record in a line or a few, for people.
func summary(b record.Body) string {
	switch b := b.(type) {
	case record.Heard:
		return heard(b)
	case record.Passed:
		return fmt.Sprintf("passed     %s: %s", b.Author.ID, b.Reason)
	case record.Rendered:
		if b.View == nil {
			return fmt.Sprintf("rendered   step %d, the same manifest", b.Step) + loads(b)
		}
		return fmt.Sprintf("rendered   step %d: %s", b.Step, manifest(b)) + loads(b)
	case record.Told:
		return "told       " + b.Text
	case record.Cited:
		return fmt.Sprintf("cited      %s: %s", b.Source, b.Text)
	case record.Retried:
		return fmt.Sprintf("retried    step %d: %s, waited %v", b.Step, b.Fault, b.Wait.Round(time.Millisecond))
	case record.Said:
		return said(b)
	case record.Did:
		return fmt.Sprintf("did        %s, %s in %v: %s", b.Tool, b.End, b.Took.Round(time.Millisecond), b.Text)
	case record.Chunk:
		return "chunk      " + b.Text
	case record.Torn:
		return "torn       " + b.Text
	case record.Asked:
		return asked(b)
	case record.Probed:
		return fmt.Sprintf("probed     %s, look %d: %s", b.Tool, b.Try, b.Found)
	case record.Began:
		return "began      " + strings.Join(b.Hooks, " ")
	case record.Memo:
		return fmt.Sprintf("memo       %s = %s", b.Name, b.Value)
	case record.Wrote:
		if b.Value == nil {
			return "wrote      " + b.Name + " deleted"
		}
		return fmt.Sprintf("wrote      %s = %s", b.Name, b.Value)
	case record.Data:
		return fmt.Sprintf("data       %s = %s", b.Name, b.Value)
	case record.Dispatched:
		return fmt.Sprintf("dispatched to %s: %s", b.To.Key(), b.Text)
	case record.Resulted:
		return fmt.Sprintf("resulted   %s%s", b.Value, b.GaveUp)
	case record.Sent:
		return fmt.Sprintf("sent       back by %s: %s", cmp.Or(b.Hook, "the harness"), b.Text)
	case record.Notified:
		return "notified   " + strings.Join(b.Hooks, " ")
	case record.Folded:
		return fmt.Sprintf("folded     %d messages by %s (%s, %d to %d tokens): %s", b.Drop, b.Asked, b.Why, b.Before, b.After, b.Summary)
	case record.Controlled:
		return strings.TrimRight(fmt.Sprintf("controlled %s: %s %s", b.Author.ID, b.Topic, b.Text), " ")
	case record.Rested:
		return "rested     " + b.Why
	case record.Resumed:
		return fmt.Sprintf("resumed    attempt %d", b.Attempt)
	case record.Fetched:
		return fetched(b)
	case record.Posted:
		return posted(b)
	case record.Unshown:
		return fmt.Sprintf("unshown    step %d: the provider refused the images (%s)", b.Step, b.Code)
	case record.Child:
		return "task " + b.Task[len(b.Task)-1] + "  " + summary(b.Body)
	case record.Forked:
		return fmt.Sprintf("forked     from record %d of %s", b.Seq, b.From)
	case record.Settled:
		how := string(b.Outcome)
		if b.Reason != "" {
			how += ": " + b.Reason
		}
		return fmt.Sprintf("settled    %s (steps %d, posts %d, attempt %d, $%.4f)", how, b.Steps, b.Posts, b.Attempt, b.Cost)
	}
	return fmt.Sprintf("%T", b)
}

func heard(b record.Heard) string {
	text := fmt.Sprintf("heard      %s (%s) %s: %s", b.Event.Author.ID, b.Role, b.Event.Topic, b.Event.Text)
	if b.Event.Data != nil {
		text += fmt.Sprintf("; data %s", b.Event.Data)
	}
	if b.Event.Want != nil {
		text += fmt.Sprintf("; wants %s", b.Event.Want)
	}
	return text
}

func fetched(b record.Fetched) string {
	text := "fetched    files of " + b.Author.ID + ":"
	for _, g := range b.Files {
		text += fmt.Sprintf(" %s (%s, %d bytes)", g.Name, g.Media, g.Bytes)
		if g.Note != "" {
			text += " " + g.Note
		}
		text += ";"
	}
	return strings.TrimSuffix(text, ";")
}

func posted(b record.Posted) string {
	text := "posted    "
	for _, f := range b.Files {
		text += fmt.Sprintf(" %s (%s, %d bytes)", f.Name, f.Media, f.Bytes)
	}
	return strings.TrimSuffix(text+": "+b.Text, ": ")
}

func asked(b record.Asked) string {
	until := ""
	if !b.Until.IsZero() {
		until = " until " + b.Until.Format(time.RFC3339)
	}
	if b.Question == "" {
		return "waits     " + until
	}
	return fmt.Sprintf("asked      the %ss or above%s: %s", b.Who, until, b.Question)
}

func loads(b record.Rendered) string {
	if len(b.Loads) == 0 {
		return ""
	}
	return ", loads " + strings.Join(b.Loads, " ")
}

func manifest(b record.Rendered) string {
	var names []string
	for _, t := range b.View.Tools {
		names = append(names, t.Name)
	}
	text := "model " + b.View.Model
	if b.View.Level != nil {
		text += fmt.Sprintf(", level %d (%s)", b.View.Level.Number, b.View.Level.Name)
	}
	if b.View.Sandbox != "" {
		text += ", sandbox " + b.View.Sandbox
	}
	text += ", tools " + strings.Join(names, " ")
	if len(b.View.Subagents) > 0 {
		text += ", subagents"
		for _, d := range b.View.Subagents {
			text += " " + d.Name
		}
	}
	return text
}

func said(b record.Said) string {
	text := fmt.Sprintf("said       by %s in %v (%d in, %d cached, %d out)", b.Answered, b.Took.Round(time.Millisecond), b.Usage.In, b.Usage.Cached, b.Usage.Out)
	for _, p := range b.Parts {
		switch p.Kind {
		case model.Text:
			text += ": " + p.Text
		case model.Call:
			text += fmt.Sprintf("; calls %s %s%s", p.Name, p.Args, p.BadArgs)
		case model.Reasoning, model.Result:
		}
	}
	return text
}

// printable keeps what a terminal cannot take for a command: tabs and the
// joiners that words and emoji are made with as well.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\n\t\u200b\u200d", r) || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

func indent(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n                               ")
}

func jsonLines[T any](w io.Writer, vs []T) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, v := range vs {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// count is a number with its noun.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
}
