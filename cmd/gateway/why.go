package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// A whyCmd explains what became of one message.
type whyCmd struct {
	What string `arg:"" help:"Link to a message, as its channel copies it, or an event's id."`
	JSON bool   `help:"As JSON, an object a line."`
}

// An account is what became of one event.
type account struct {
	Channel      string          `json:"channel"`
	Event        string          `json:"event"`
	Received     time.Time       `json:"received,omitzero"`
	Status       string          `json:"status"` // "ignored", "waiting", "running", "passed", "heard" or "settled"
	Reason       string          `json:"reason,omitempty"`
	Conversation state.ID        `json:"conversation,omitempty"`
	Agent        string          `json:"agent,omitempty"`
	Thread       string          `json:"thread,omitempty"`
	Entry        int64           `json:"entry,omitempty"` // its place in the inbox
	Author       string          `json:"author,omitempty"`
	Role         string          `json:"role,omitempty"`
	Topic        string          `json:"topic,omitempty"`
	Route        string          `json:"route,omitempty"`
	Turn         string          `json:"turn,omitempty"`
	With         []string        `json:"with,omitempty"` // other events that the turn took
	Outcome      string          `json:"outcome,omitempty"`
	Posts        []accountedPost `json:"posts,omitempty"`
}

type accountedPost struct {
	Key    string          `json:"key"`
	State  state.PostState `json:"state"`
	Ref    string          `json:"ref,omitempty"`
	Reason string          `json:"reason,omitempty"`
}

var errNeverHeard = errors.New("no event of it is known: it was not delivered in the last 31 days, or told nothing that concerns agents " +
	"(the gateway's log counts those as ignored, with reasons). Is the bot in the room, and does the app get such events?")

// Run explains.
func (c whyCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	p := partsOf(s)
	defer p.close()
	if err := s.Err(); err != nil {
		return err
	}
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	found, err := c.find(ctx, st, p.channels)
	if err != nil {
		return err
	}
	for i := range found {
		if found[i].Conversation == "" {
			continue
		}
		if err := found[i].trace(ctx, st, p.routes); err != nil {
			return err
		}
	}
	if c.JSON {
		return jsonLines(e.stdout, found)
	}
	for i, a := range found {
		if i > 0 {
			fmt.Fprintln(e.stdout)
		}
		a.print(e)
	}
	return nil
}

// find returns the events that are meant.
func (c whyCmd) find(ctx context.Context, st state.Reader, cs []channels.Channel) (out []account, err error) {
	u, _ := url.Parse(c.What)
	linked := u != nil && u.Scheme != "" && u.Host != ""
	known := false
	for _, ch := range cs {
		var acts []state.Act
		if l, ok := ch.(channels.Linker); ok && linked {
			same, err := l.Linked(ctx, u)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", ch.Name(), err)
			}
			known = known || same != ""
			if acts, err = st.Acts(ctx, ch.Name(), same); err != nil {
				return nil, err
			}
		} else if !linked {
			a, err := st.Event(ctx, ch.Name(), c.What)
			switch {
			case errors.Is(err, state.ErrNotFound):
				continue
			case err != nil:
				return nil, err
			}
			acts = []state.Act{{Event: c.What, Admission: a}}
		}
		for _, a := range acts {
			one := account{Channel: ch.Name(), Event: a.Event, Received: a.At, Status: "waiting", Reason: a.Reason, Conversation: a.Conversation, Entry: a.Seq}
			if a.Status == state.Ignored {
				one.Status = "ignored"
			}
			out = append(out, one)
		}
	}
	switch {
	case len(out) > 0:
		return out, nil
	case linked && !known:
		return nil, fmt.Errorf("found a link that no enabled channel knows; want one to a message, as the channel copies it")
	}
	return nil, errNeverHeard
}

// trace follows an admitted event through its conversation.
func (a *account) trace(ctx context.Context, st state.Store, routes []dispatch.Route) error {
	v, err := st.Load(ctx, a.Conversation, 0)
	if err != nil {
		return err
	}
	a.Agent, a.Thread = v.Conversation.Agent, v.Conversation.Thread.Key()
	for _, in := range v.Inbox {
		if in.Event.ID == a.Event {
			a.from(in.Event, routes)
		}
	}
	for _, r := range v.Records {
		b, err := record.Decode(r)
		if err != nil {
			return fmt.Errorf("record %d of %s: %w", r.Seq, a.Conversation, err)
		}
		a.take(b, routes)
	}
	if a.Turn == "" {
		return nil
	}
	posts, err := st.Posts(ctx, a.Conversation)
	for _, p := range posts {
		if strings.HasPrefix(p.Post.Key, a.Turn+"/") {
			a.Posts = append(a.Posts, accountedPost{p.Post.Key, p.State, p.Ref, p.Reason})
		}
	}
	return err
}

// take notes what a record says of the event or its turn.
func (a *account) take(b record.Body, routes []dispatch.Route) {
	switch b := b.(type) {
	case record.Passed:
		if b.Event == a.Event {
			a.Status, a.Reason, a.Author = "passed", b.Reason, b.Author.ID
		}
	case record.Heard:
		switch {
		case b.Event.ID == a.Event:
			a.Status, a.Turn, a.Role = "heard", b.Turn, b.Role.String()
			if b.Turn != "" {
				a.Status = "running"
			}
			a.from(b.Event, routes)
		case b.Turn != "" && (b.Turn == a.Turn || a.Turn == ""):
			if a.Turn == "" {
				a.With = nil // of the turns before
			}
			a.With = append(a.With, b.Event.ID)
		}
	case record.Settled:
		switch {
		case b.Turn == a.Turn && a.Turn != "":
			a.Status, a.Outcome = "settled", string(b.Outcome)
			if b.Reason != "" {
				a.Outcome += ", " + b.Reason
			}
		case a.Turn == "":
			a.With = nil
		}
	}
}

func (a *account) from(e chat.Event, routes []dispatch.Route) {
	a.Author, a.Topic = e.Author.ID, e.Thread.Channel+"."+e.Topic
	if i := dispatch.Match(routes, e); i >= 0 {
		a.Route = fmt.Sprintf("routes[%d], which answers with %s", i, routes[i].Agent)
	}
}

// print writes the account down, a step a line.
func (a *account) print(e env) {
	line := func(what, format string, args ...any) {
		fmt.Fprintf(e.stdout, "%-12s %s\n", what, printable(fmt.Sprintf(format, args...)))
	}
	at := ""
	if !a.Received.IsZero() {
		at = " at " + a.Received.Format(time.RFC3339)
	}
	line("received", "event %s of %s%s; its signature or connection was verified", a.Event, a.Channel, at)
	if a.Status == "ignored" {
		line("ignored", "%s", a.Reason)
		if hint := hints[a.Reason]; hint != "" {
			line("", "%s", hint)
		}
		return
	}
	line("admitted", "entry %d of conversation %s (agent %s, thread %s)", a.Entry, a.Conversation, a.Agent, a.Thread)
	if a.Topic != "" {
		rule := "no route of today's settings; the thread is followed"
		if a.Route != "" {
			rule = a.Route
		}
		line("allowed", "%s by %s", a.Topic, rule)
	}
	switch a.Status {
	case "waiting":
		line("waiting", "no turn has taken it yet")
		return
	case "passed":
		line("passed over", "%s (author %s)", a.Reason, a.Author)
		if hint := hints[a.Reason]; hint != "" {
			line("", "%s", hint)
		}
		return
	}
	line("heard", "author %s as %s", a.Author, a.Role)
	if a.Turn == "" {
		line("", "it asks for no answer and is read with the next event that does")
		return
	}
	line("turn", "%s", a.Turn)
	if others := slices.DeleteFunc(slices.Clone(a.With), func(id string) bool { return id == a.Event }); len(others) > 0 {
		line("", "together with %s", strings.Join(others, ", "))
	}
	if a.Outcome == "" {
		line("", "under way")
	} else {
		line("settled", "%s", a.Outcome)
	}
	for _, p := range a.Posts {
		line("post", "%s %s %s %s", p.Key, p.State, p.Ref, p.Reason)
	}
}

// hints say what to do about the reasons that people ask for most.
var hints = map[string]string{
	"no route":        "No route of the settings names its topic; see routes in the settings file, or mention the bot.",
	state.NotFollowed: "The bot was not mentioned in its thread before; mention it there.",
	"another bot":     "Bots are not answered.",
	"role below talk": "Its author's role is below access.talk; access says who holds which role.",
	"role not known":  "The provider did not say what its author is; the gateway's log has the error.",
}
