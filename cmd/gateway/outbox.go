package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/heddlehq/heddle/client"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/state"
)

type outboxCmd struct {
	List  outboxListCmd  `cmd:"" help:"List the posts that are not sent, the last queued first."`
	Retry outboxRetryCmd `cmd:"" help:"Queue dead posts again. Where an attempt may have made one, that is looked for first."`
	Drop  outboxDropCmd  `cmd:"" help:"Give posts up that wait, or whose outcome is unknown."`
}

type outboxListCmd struct {
	Limit int  `default:"50" help:"At most so many."`
	JSON  bool `help:"One JSON object a line."`
}

// Validate checks the flags.
func (c outboxListCmd) Validate() error { return listCmd{Limit: c.Limit}.Validate() }

// Run lists posts.
func (c outboxListCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	all, err := st.Unsent(ctx, c.Limit)
	if err != nil {
		return err
	}
	if c.JSON {
		type line struct {
			Key          string          `json:"key"`
			Conversation state.ID        `json:"conversation"`
			Thread       string          `json:"thread"`
			State        state.PostState `json:"state"`
			Reason       string          `json:"reason,omitempty"`
			Attempts     int             `json:"attempts"`
			QueuedAt     time.Time       `json:"queued_at"`
			Text         string          `json:"text"`
		}
		var lines []line
		for _, p := range all {
			lines = append(lines, line{p.Post.Key, p.Conversation, p.Post.Thread.Key(), p.State, p.Reason, p.Attempts, p.QueuedAt, p.Post.Text})
		}
		return jsonLines(e.stdout, lines)
	}
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "POST\tTHREAD\tSTATE\tATTEMPTS\tQUEUED\tREASON")
	for _, p := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", p.Post.Key, p.Post.Thread.Key(), p.State, p.Attempts, p.QueuedAt.Format(time.RFC3339), printable(p.Reason))
	}
	return w.Flush()
}

type outboxRetryCmd struct {
	Keys []string `arg:"" optional:"" help:"The posts, as list names them."`
	All  bool     `help:"All that are dead, but for those that were dropped."`
	URL  string   `help:"Admin listener of the gateway, if it runs (default: where the settings put it)."`
}

// Validate checks the flags.
func (c outboxRetryCmd) Validate() error {
	if c.All == (len(c.Keys) > 0) {
		return errors.New("found neither posts nor --all, or both; want one of them")
	}
	return nil
}

// Run queues posts again.
func (c outboxRetryCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	o, err := openOutbox(ctx, s, c.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	return revise(ctx, e, o, c.Keys, state.Dead, "queued again", o.Retry)
}

type outboxDropCmd struct {
	Keys []string `arg:"" help:"The posts, as list names them."`
	URL  string   `help:"Admin listener of the gateway, if it runs (default: where the settings put it)."`
}

// Run gives posts up.
func (c outboxDropCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	o, err := openOutbox(ctx, s, c.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	return revise(ctx, e, o, c.Keys, "", "dropped", o.Drop)
}

// mostUnsent is how many posts a command looks through.
const mostUnsent = 500

// revise does something to the posts with the keys or, without keys, to all of a
// state.
func revise(ctx context.Context, e env, o outbox, keys []string, all state.PostState, done string, do func(ctx context.Context, conversation, key string) error) error {
	posts, err := o.Outbox(ctx, mostUnsent)
	if err != nil {
		return err
	}
	every := len(keys) == 0
	of, with := map[string]string{}, map[string]bool{} // with: a part that is queued again with an earlier one
	for _, p := range posts {
		of[p.Key], with[p.Key] = p.Conversation, all == state.Dead && p.Reason == state.Holed
		if every && p.State == string(all) && p.Reason != state.Dropped {
			keys = append(keys, p.Key)
		}
	}
	failed := 0
	for _, key := range keys {
		err := state.ErrNotFound
		if id := of[key]; id != "" {
			err = do(ctx, id, key)
		}
		var refused *client.Error
		missing := errors.Is(err, state.ErrNotFound) || errors.As(err, &refused) && refused.Code == "no_such_post"
		switch {
		case missing && !with[key]:
			failed++
			fmt.Fprintf(e.stdout, "%s  no such post, or its state does not allow it\n", printable(key))
		case err != nil && !missing:
			return err
		default:
			fmt.Fprintf(e.stdout, "%s  %s\n", printable(key), done)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d posts were left as they are", failed, len(keys))
	}
	return nil
}

// An outbox is that of the store or, while a gateway has it, of the gateway.
type outbox interface {
	Outbox(ctx context.Context, limit int) ([]client.Post, error)
	Retry(ctx context.Context, conversation, key string) error
	Drop(ctx context.Context, conversation, key string) error
	Close() error
}

// openOutbox opens the store, or asks the gateway that has it.
func openOutbox(ctx context.Context, s *config.Settings, at string) (outbox, error) {
	tokens := adminTokens(s)
	if at == "" {
		st, err := openStore(ctx, s, false)
		if err == nil {
			return ownOutbox{st}, nil
		}
		if !errors.Is(err, state.ErrLocked) {
			return nil, err
		}
		if len(tokens) == 0 {
			return nil, fmt.Errorf("%w: set %s to the token of the gateway that runs, or stop it", err, varToken.Name)
		}
		at = adminURL(s.Get(varAdmin))
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, config.Problems{{Setting: varToken.Name, Found: "nothing", Want: "the token of the running gateway"}}
	}
	return itsOutbox{&client.Client{URL: at, Token: tokens[0]}}, nil
}

// itsOutbox is that of a running gateway.
type itsOutbox struct{ *client.Client }

func (o itsOutbox) Outbox(ctx context.Context, limit int) ([]client.Post, error) {
	out, err := o.Client.Outbox(ctx, limit)
	return out, reached(o.URL, err)
}

func (itsOutbox) Close() error { return nil }

// ownOutbox is that of a store which no gateway has.
type ownOutbox struct{ state.Store }

func (o ownOutbox) Outbox(ctx context.Context, limit int) (out []client.Post, err error) {
	all, err := o.Unsent(ctx, limit)
	for _, p := range all {
		out = append(out, client.Post{Conversation: string(p.Conversation), Key: p.Post.Key, State: string(p.State), Reason: p.Reason})
	}
	return out, err
}

func (o ownOutbox) Retry(ctx context.Context, conversation, key string) error {
	return o.RetryPost(ctx, state.ID(conversation), key)
}

func (o ownOutbox) Drop(ctx context.Context, conversation, key string) error {
	return o.DropPost(ctx, state.ID(conversation), key)
}
