package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/slack"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	fakeslack "github.com/heddlehq/heddle/fakes/slack"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state/sqlite"
)

type demoCmd struct {
	Once bool `help:"End after the scene instead of going on; fails if the scene did."`
}

const (
	demoUser     = "U0ANNA"
	demoQuestion = "which deploy was the slowest, and by how much over the average? monday 41, tuesday 38, wednesday 97, thursday 40, friday 44 (minutes)"
)

// Run plays the demo: a signed mention goes through the front door of a real
// gateway with a real store. Only Slack is make-believe, and the model if
// there is none.
func (c demoCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	dir, err := os.MkdirTemp("", "heddle-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	d := &demo{out: e.stdout}
	err = d.play(ctx, e, s, dir, func(ctx context.Context) error {
		lack, err := d.scene(ctx)
		switch {
		case err != nil || c.Once && lack == "":
			return err
		case c.Once:
			return errors.New(lack)
		case lack != "":
			d.say("\n%s", lack)
		}
		return d.talk(ctx, e.stdin)
	})
	if err != nil && ctx.Err() != nil {
		return errors.New("stopped before the answer; of a demo nothing is kept")
	}
	return err
}

// demo is the stage.
type demo struct {
	out   io.Writer
	slack *fakeslack.Workspace
	stage *stage
	front string // address of the gateway
	root  string // first message of the thread
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// play runs a gateway while act goes on.
func (d *demo) play(ctx context.Context, e env, s *config.Settings, dir string, act func(context.Context) error) (err error) {
	provider, names, note := demoModel(ctx, s)
	d.slack = fakeslack.New(fakeslack.Options{Users: []fakeslack.User{{ID: demoUser, Name: "anna"}}})
	api, err := serve(d.slack)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	p, err := d.parts(s, "http://"+api.Addr, asking{provider, d}, names)
	if err != nil {
		return err
	}
	defer p.close()
	st, err := sqlite.Open(ctx, filepath.Join(dir, "demo.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	logger := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	d.stage = &stage{Store: st, demo: d, ends: make(chan turnEnd, 1)}
	engine, err := p.engine(d.stage, logger)
	if err != nil {
		return err
	}
	g := dispatch.New(dispatch.Options{
		Store: d.stage, Channels: p.channels, Routes: p.routes, Engine: engine, Owner: owner(), Clock: time.Now,
		Logger: logger, Drain: demoDrain,
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.front = "http://" + ln.Addr().String()
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.Run(run, ln) }()
	defer func() {
		stop()
		if e := <-ended; !errors.Is(e, dispatch.ErrDrainTimeout) { // no start will go on with a store that is thrown away
			err = errors.Join(err, e)
		}
	}()
	d.say("Heddle demo: a real gateway on a throw-away SQLite file; Slack is make-believe.\nThe model: %s\n", note)
	return act(ctx)
}

// demoDrain gives turns a second to end: who stops a demo does not wait for them.
const demoDrain = 6 * time.Second

// scene is the question of the demo and what comes of it: what it lacks, "" if
// the model climbed and answered.
func (d *demo) scene(ctx context.Context) (lack string, err error) {
	d.say("A signed app_mention arrives at POST /slack/events:")
	end, err := d.mention(ctx, demoQuestion)
	switch {
	case err != nil:
		return "", err
	case end.Outcome != record.Answered:
		return fmt.Sprintf("there is no answer: the turn is %s (%s)", end.Outcome, end.Reason), nil
	case !end.climbed:
		return "the model answered without enhance, so it stayed at the first level and had no shell; another one may climb", nil
	}
	d.say("\n%s", demoEnd)
	return "", nil
}

const demoEnd = `That is all of it: the mention was on disk before Slack got its 200, the model
climbed from "fast" to "strong" with a shell inside one response, and the reply
was posted once. To connect a real workspace: make a Slack app from
channels/slack/manifest.yaml, then

  export SLACK_APP_TOKEN=xapp-... SLACK_BOT_TOKEN=xoxb-... ANTHROPIC_API_KEY=...
  go run ./cmd/gateway run        # or bin/gateway run, after make build

No public address is needed; README.md says more.`

// parts are those of a gateway whose Slack is the fake one.
func (d *demo) parts(s *config.Settings, api string, provider model.Provider, names map[string]string) (parts, error) {
	o := d.slack.Options()
	ch, err := slack.New(slack.Options{
		SigningSecrets: []string{o.SigningSecret}, BotToken: o.BotToken, APIURL: api + "/api/",
		Access: slack.Access{Members: []string{"all"}},
	})
	if err != nil {
		return parts{}, err
	}
	n, err := model.NewNames([]model.Provider{provider}, names, nil)
	if err != nil {
		return parts{}, err
	}
	f := fileSettings{}
	p := parts{
		channels: []channels.Channel{ch}, models: n, talk: chat.Member, sandboxes: map[string]sandbox.Provider{},
		offer: &offer{servers: &remotes{}, recall: &recall{}},
	}
	for _, setup := range sandboxSetups {
		b := setup()
		p.sandboxes[b.Name()] = b
	}
	p.agents, p.routes = f.agentsOf(s, n, p.sandboxes, p.offer), f.routesOf(s)
	return p, nil
}

// mention delivers what somebody said and shows the thread until it is answered.
func (d *demo) mention(ctx context.Context, text string) (turnEnd, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	d.say("  @anna: @heddle %s", text)
	before := len(d.slack.Posts())
	delivery := d.slack.Mention(fakeslack.Words{User: demoUser, Text: text, Thread: d.root})
	d.root = cmp.Or(d.root, delivery.TS)
	req, err := delivery.Request(d.front + "/slack/events")
	if err != nil {
		return turnEnd{}, err
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		return turnEnd{}, err
	}
	_ = res.Body.Close()
	d.say("  | %s in %v: recorded before it was acknowledged", res.Status, time.Since(began).Round(time.Millisecond/10))
	select {
	case end := <-d.stage.ends:
		posts, err := d.slack.WaitPosts(ctx, before+end.Posts)
		if err != nil {
			return end, err
		}
		for _, p := range posts[before:] {
			d.say("  heddle: %s", p.Text)
		}
		return end, nil
	case <-ctx.Done():
		return turnEnd{}, fmt.Errorf("wait for the end of the turn: %w", context.Cause(ctx))
	}
}

// talk lets the person at the terminal go on in the thread.
func (d *demo) talk(ctx context.Context, in io.Reader) error {
	d.say("\nStill serving at %s. Write a line to go on in the thread; Ctrl-C ends it.", d.front)
	lines := make(chan string)
	go func() { // ends with the process: reading a terminal cannot be stopped
		sc := bufio.NewScanner(in)
		for sc.Scan() {
			lines <- sc.Text()
		}
		close(lines)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, more := <-lines:
			if !more {
				return nil
			}
			if line == "" {
				continue
			}
			if _, err := d.mention(ctx, line); err != nil {
				return err
			}
		}
	}
}

// serve listens on loopback.
func serve(h http.Handler) (*http.Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	srv := &http.Server{Addr: ln.Addr().String(), Handler: h, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = srv.Serve(ln) }() // until Close
	return srv, nil
}
