package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/channels/slack"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	fakeslack "github.com/heddlehq/heddle/fakes/slack"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/model/script"
	"github.com/heddlehq/heddle/model/scripted"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state/sqlite"
)

type demoCmd struct {
	Once bool `help:"End after the scene instead of going on."`
}

const (
	demoUser     = "U0ANNA"
	demoQuestion = "which deploy was the slowest, and by how much over the average? monday 41, tuesday 38, wednesday 97, thursday 40, friday 44 (minutes)"
)

// demoScript is what the scripted model says. Its calls are really made: the
// numbers in its answer come out of the shell.
const demoScript = `
when "slowest"
call: enhance {"reason":"counting is safer with a shell than by heart"}
call: bash {"command":"printf 'monday 41\\ntuesday 38\\nwednesday 97\\nthursday 40\\nfriday 44\\n' > deploys.txt\nawk '{ sum += $2; if ($2 > max) { max = $2; day = $1 } }\n     END { printf \"%s took %d minutes, %d more than the average of %d\\n\", day, max, max - sum/NR, sum/NR }' deploys.txt"}
say: **Counted, not guessed:** {result}
when ""
say: I am only a script: with a key I would answer. You said: {user}
`

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
	return d.play(ctx, e, s, dir, c.Once)
}

// demo is the stage.
type demo struct {
	out   io.Writer
	slack *fakeslack.Workspace
	front string // address of the gateway
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) play(ctx context.Context, e env, s *config.Settings, dir string, once bool) (err error) {
	provider, names, note := demoModel(ctx, s)
	d.slack = fakeslack.New(fakeslack.Options{Users: []fakeslack.User{{ID: demoUser, Name: "anna"}}})
	api, err := serve(d.slack)
	if err != nil {
		return err
	}
	defer api.Close()
	p, err := d.parts(s, "http://"+api.Addr, provider, names)
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
	watched := &stage{Store: st, demo: d}
	engine, err := p.engine(watched, logger)
	if err != nil {
		return err
	}
	g := dispatch.New(dispatch.Options{Store: watched, Channels: p.channels, Routes: p.routes, Engine: engine, Owner: owner(), Clock: time.Now, Logger: logger})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.front = "http://" + ln.Addr().String()
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- g.Run(run, ln) }()
	defer func() { stop(); err = errors.Join(err, <-ended) }()

	d.say("Heddle demo: a real gateway on a throw-away SQLite file; Slack is make-believe.\nThe model: %s\n", note)
	d.say("A signed app_mention arrives at POST /slack/events:")
	if err := d.mention(ctx, fakeslack.Words{User: demoUser, Text: demoQuestion}, 1); err != nil {
		return err
	}
	d.say("\n%s", demoEnd)
	if once {
		return nil
	}
	return d.talk(ctx, e.stdin)
}

const demoEnd = `That is all of it: the mention was on disk before Slack got its 200, the model
climbed from "fast" to "strong" with a shell inside one response, and the reply
was posted once. To connect a real workspace: make a Slack app from the manifest
in README.md, then

  SLACK_BOT_TOKEN=xoxb-... SLACK_SIGNING_SECRET=... OPENAI_API_KEY=... gateway run

and point the app's event URL at https://YOUR-HOST/slack/events.`

// parts are those of a gateway whose Slack is the fake one.
func (d *demo) parts(s *config.Settings, api string, provider model.Provider, names map[string]string) (parts, error) {
	o := d.slack.Options()
	ch, err := slack.New(slack.Options{SigningSecrets: []string{o.SigningSecret}, BotToken: o.BotToken, APIURL: api + "/api/",
		Access: slack.Access{Members: []string{"all"}}})
	if err != nil {
		return parts{}, err
	}
	n, err := model.NewNames([]model.Provider{provider}, names, nil)
	if err != nil {
		return parts{}, err
	}
	f := fileSettings{}
	p := parts{channels: []channels.Channel{ch}, models: n, talk: chat.Member, sandboxes: map[string]sandbox.Provider{}}
	for _, setup := range sandboxSetups {
		b := setup()
		p.sandboxes[b.Name()] = b
	}
	p.agents, p.routes = f.agentsOf(s, n, p.sandboxes), f.routesOf(s)
	return p, nil
}

// demoModel picks a real model if there is one, else the script.
func demoModel(ctx context.Context, s *config.Settings) (p model.Provider, names map[string]string, note string) {
	for _, setup := range providerSetups {
		for _, p := range setup(s) {
			if usual := usualModels[p.Name()]; usual != nil {
				fast, strong := p.Name()+"/"+usual["fast"], p.Name()+"/"+usual["strong"]
				return p, map[string]string{"fast": fast, "strong": strong}, fmt.Sprintf("a real one answers: %s, then %s.", fast, strong)
			}
		}
	}
	const host = "127.0.0.1:11434"
	if id := ollamaModel(ctx, host); id != "" {
		full := "ollama/" + id
		return openai.Ollama(host), map[string]string{"fast": full, "strong": full}, "a real one answers: " + full + " on this machine."
	}
	sc, err := script.Parse(demoScript)
	if err != nil {
		panic(err) // the script is a constant
	}
	play := scripted.Play(plain(scripted.Script(script.NewPlayer(sc))), 20*time.Millisecond)
	return play, map[string]string{"fast": "scripted/fast", "strong": "scripted/strong"},
		"none: a script plays its part (there is no key and no Ollama). All else is real, the shell too."
}

// plain leaves the exit code out of what the script repeats from the shell.
func plain(step scripted.Step) scripted.Step {
	return func(ctx context.Context, r model.Request) (model.Response, error) {
		resp, err := step(ctx, r)
		for i, p := range resp.Parts {
			if p.Kind == model.Text {
				resp.Parts[i].Text = strings.ReplaceAll(p.Text, "\n[exit code 0]", "")
			}
		}
		return resp, err
	}
}

// ollamaModel asks a local Ollama for its first model, "" if there is none.
func ollamaModel(ctx context.Context, host string) string {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/api/tags", nil)
	if err != nil {
		return ""
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var list struct {
		Models []struct{ Name string }
	}
	if json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&list) != nil || len(list.Models) == 0 {
		return ""
	}
	return list.Models[0].Name
}

// mention delivers what somebody said and shows the thread until it has n posts.
func (d *demo) mention(ctx context.Context, w fakeslack.Words, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	d.say("  @anna: @heddle %s", w.Text)
	delivery := d.slack.Mention(w)
	req, err := delivery.Request(d.front + "/slack/events")
	if err != nil {
		return err
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(req.WithContext(ctx))
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	d.say("  | %s in %v: recorded before it was acknowledged", res.Status, time.Since(began).Round(time.Millisecond/10))
	posts, err := d.slack.WaitPosts(ctx, n)
	if err != nil {
		return err
	}
	d.say("  heddle: %s", posts[n-1].Text)
	return nil
}

// talk lets the person at the terminal go on in the thread.
func (d *demo) talk(ctx context.Context, in *os.File) error {
	d.say("\nStill serving at %s. Write a line to go on in the thread; Ctrl-C ends it.", d.front)
	lines := make(chan string)
	go func() { // ends with the process: reading a terminal cannot be stopped
		sc := bufio.NewScanner(in)
		for sc.Scan() {
			lines <- sc.Text()
		}
	}()
	root := d.slack.Posts()[0].Thread.Root
	for {
		select {
		case <-ctx.Done():
			return nil
		case line := <-lines:
			if line == "" {
				continue
			}
			n := len(d.slack.Posts()) + 1
			if err := d.mention(ctx, fakeslack.Words{User: demoUser, Text: line, Thread: root}, n); err != nil {
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
