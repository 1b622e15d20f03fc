package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/heddlehq/heddle/client"
	"github.com/heddlehq/heddle/config"
)

// A sendCmd says something in a conversation of a channel, over the API of a
// running gateway: what a person would type there, for schedules and scripts.
type sendCmd struct {
	Thread  string `arg:"" help:"The conversation's thread (slack/T01/C02/1721.0001) or id."`
	Message string `arg:"" help:"What to say; - reads it from standard input. It is said by an admin, and answered in the thread."`
	Key     string `help:"Name of this message: sent again under it, it is not answered again."`
	URL     string `help:"Admin listener of the gateway (default: where the settings put it)."`
}

// Run sends the message.
func (c sendCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	api, err := apiOf(s, c.URL)
	if err != nil {
		return err
	}
	m, err := askCmd{Message: c.Message, Key: c.Key}.message(e)
	if err != nil {
		return err
	}
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	v, err := viewOf(ctx, st, c.Thread)
	if err != nil {
		return err
	}
	a, err := api.Send(ctx, client.Ref{ID: string(v.Conversation.ID)}, m)
	if err != nil {
		return reached(api.URL, err)
	}
	fmt.Fprintf(e.stdout, "%s  %s in %s; gateway why %s says what becomes of it\n", a.Event, a.Status, v.Conversation.Thread.Key(), a.Event)
	return nil
}

// apiOf is a client of the running gateway.
func apiOf(s *config.Settings, at string) (*client.Client, error) {
	tokens := adminTokens(s)
	if err := s.Err(); err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, config.Problems{{Setting: varToken.Name, Found: "nothing", Want: "the token of the running gateway"}}
	}
	if at == "" {
		at = adminURL(s.Get(varAdmin))
	}
	return &client.Client{URL: at, Token: tokens[0]}, nil
}
