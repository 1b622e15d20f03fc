package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/sandbox"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/vault"
)

type runCmd struct{}

// parts are what a gateway is made of.
type parts struct {
	channels  []channels.Channel
	models    *model.Names
	agents    map[string]harness.Agent
	routes    []dispatch.Route
	rooms     map[chat.Thread]dispatch.Answer
	bots      map[dispatch.Bot]bool
	marks     bool
	signs     *dispatch.Signs
	talk      chat.Role
	limits    turn.Limits
	sandboxes map[string]sandbox.Provider
	names     map[string]string // of models, for showing
	offer     *offer
	file      *fileSettings // for showing
	level     slog.Level    // of the log
	tokens    []string      // of the API
}

// partsOf reads all settings; what is wrong or odd is noted in them.
func partsOf(s *config.Settings) parts {
	f := readFile(s)
	p := parts{file: &f, talk: f.access.Talk, limits: f.limits(s), sandboxes: map[string]sandbox.Provider{}, level: logLevel(s)}
	checkListen(s, varListen)
	checkListen(s, varAdmin)
	p.tokens = adminTokens(s)
	checkStore(s)
	before := s.Refused()
	for _, setup := range channelSetups {
		if c := setup(s, &f); c != nil {
			p.channels = append(p.channels, c)
		}
	}
	if len(p.channels) == 0 && len(p.tokens) == 0 && s.Refused() == before {
		s.Refuse("SLACK_BOT_TOKEN", "no channel is enabled", "SLACK_BOT_TOKEN with SLACK_APP_TOKEN (Socket Mode) or SLACK_SIGNING_SECRET (HTTP), DISCORD_BOT_TOKEN, GITHUB_WEBHOOK_SECRET, STRIPE_WEBHOOK_SECRET, a source in webhooks, or "+varToken.Name+" for the API alone (try: gateway demo, which needs none)")
	}
	var providers []model.Provider
	for _, setup := range providerSetups {
		providers = append(providers, setup(s)...)
	}
	if len(providers) == 0 {
		s.Refuse("OPENAI_API_KEY", "no model provider", "OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or OLLAMA_HOST (try: gateway demo, which needs none)")
	} else {
		p.models = f.names(s, providers)
	}
	for _, setup := range sandboxSetups {
		b := setup()
		p.sandboxes[b.Name()] = b
	}
	p.offer = offerOf(s, &f, p.channels...)
	p.agents, p.names = f.agentsOf(s, p.models, p.sandboxes, p.offer), f.models
	p.routes = f.routesOf(s)
	p.rooms, p.bots, p.marks = f.roomsOf(s), f.bots(), f.threads.Marks == nil || *f.threads.Marks
	p.checkPlaces(s)
	p.odd(s)
	return p
}

// odd warns of settings that do not do what somebody may expect of them.
func (p *parts) odd(s *config.Settings) {
	for _, n := range p.unknown() {
		s.Warn("models", n+" is not known; safe figures are used (section figures replaces them)")
	}
	p.unrouted(s)
	p.unanswered(s)
}

// keeper is what an engine keeps things in.
type keeper interface {
	state.Log
	state.Values
}

// engine makes the engine over a store; a wrong agent is a settings error.
func (p *parts) engine(log keeper, logger *slog.Logger) (*turn.Engine, error) {
	roles := dispatch.NewRoles(p.channels, p.bots, time.Now, logger)
	p.offer.recall.open(log, p.channels, roles, logger)
	p.signs = dispatch.NewSigns(p.channels, log, p.marks, time.Now, logger)
	e, err := turn.New(turn.Options{
		Progress: p.signs.Progress, Refused: p.signs.Refused,
		Log: log, Values: log, Agents: p.agents, Models: p.models, Sandboxes: p.sandboxes, Role: roles.Role, Talk: p.talk, Limits: p.limits, Busy: dispatch.Busy(p.routes), Where: dispatch.Where(p.routes),
		Compose: dispatch.Compose(p.channels), Fetch: dispatch.Fetch(p.channels, log), Clock: time.Now, Logger: logger, Version: versionText(),
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSettings, err)
	}
	return e, nil
}

// unknown lists the models of the settings for which there are no figures.
func (p *parts) unknown() []string {
	if p.models == nil {
		return nil
	}
	names := slices.Collect(maps.Values(p.names))
	for _, after := range p.file.after {
		names = append(names, after...)
	}
	for _, a := range p.file.agents {
		names = append(names, a.Model, a.Compaction.Model)
		for _, r := range a.Ladder {
			names = append(names, r.Model)
		}
	}
	slices.Sort(names)
	var out []string
	for _, n := range names {
		if c, err := p.models.Resolve(n); err == nil && !c.Spec.Known && !slices.Contains(out, c.Full()) {
			out = append(out, c.Full())
		}
	}
	return out
}

func (p *parts) close() {
	for _, b := range p.sandboxes {
		_ = b.Close() // the process ends
	}
}

// gcPercent lets the heap grow to three times what lives in it before it is
// collected: that is little, and a tenth of the processor time is saved.
const gcPercent = 200

// Run serves until ctx ends.
func (runCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	if _, set := e.lookup("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	p := partsOf(s)
	defer p.close()
	if err := s.Err(); err != nil {
		return err
	}
	logger := newLogger(s.Redact(e.stderr), e.stderr, p.level)
	st, err := openStore(ctx, s, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	for _, w := range s.Warnings() {
		logger.Warn("setting is odd", "setting", w)
	}
	if err := p.offer.servers.open(ctx, st, logger); err != nil {
		return err
	}
	defer p.offer.servers.close()
	engine, err := p.engine(st, logger)
	if err != nil {
		return err
	}
	if err := p.offer.recall.check(ctx); err != nil {
		return err
	}
	if err := p.remember(st); err != nil {
		return err
	}
	if err := identify(ctx, p.channels, logger); err != nil {
		return err
	}
	g := dispatch.New(dispatch.Options{
		Store: st, Channels: p.channels, Routes: p.routes, Rooms: p.rooms, Silence: p.file.threads.silence(), Bots: p.bots, Signs: p.signs, Engine: engine,
		Owner: owner(), Clock: time.Now, Logger: logger,
	})
	ln, err := listen(s, varListen)
	if err != nil {
		return err
	}
	admin, err := listen(s, varAdmin)
	if err != nil {
		_ = ln.Close() // nothing has come yet
		return err
	}
	logger.Info("gateway ready", "listen", ln.Addr().String(), "admin", admin.Addr().String(), "version", versionText())
	err = serveBoth(ctx, g, ln, p.api(st, engine.Fits, logger), admin, logger)
	logger.Info("gateway stopped")
	return err
}

// remember gives the channels a place for what they keep.
func (p *parts) remember(st state.Values) error {
	var secrets channels.Memory
	if keys := p.offer.servers.keys; len(keys) > 0 {
		v, err := vault.New(st, keys...)
		if err != nil {
			return err
		}
		secrets = v
	}
	dispatch.Remember(p.channels, st, secrets)
	return nil
}

// identifier is a channel that can ask its provider who it is.
type identifier interface {
	Identify(ctx context.Context) error
}

// identify finds a token that the provider refuses before anything listens.
// A provider that cannot be reached is no reason not to start.
func identify(ctx context.Context, cs []channels.Channel, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	errs := make([]error, len(cs)) // all at once: one that hangs must not take the time of the others
	var asking sync.WaitGroup
	for n, c := range cs {
		if i, ok := c.(identifier); ok {
			asking.Go(func() { errs[n] = i.Identify(ctx) })
		}
	}
	asking.Wait()
	for n, c := range cs {
		err := errs[n]
		var se *channels.SendError
		switch {
		case errors.As(err, &se) && se.Verdict == channels.Rejected:
			return fmt.Errorf("%w: %s refuses its token: %s", errSettings, c.Name(), se.Reason)
		case err != nil:
			logger.Warn("provider not reached", "channel", c.Name(), "err", err)
		}
		if n, ok := c.(interface{ Notes() []string }); ok {
			for _, note := range n.Notes() {
				logger.Warn("application may do less than is expected", "channel", c.Name(), "note", note)
			}
		}
	}
	return nil
}

// owner names this process in leases.
func owner() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), rand.Text()[:8])
}

func logLevel(s *config.Settings) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(s.Get(varLogLevel))); err != nil {
		s.Refuse(varLogLevel.Name, fmt.Sprintf("%q", s.Get(varLogLevel)), "debug, info, warn or error")
	}
	return l
}

// newLogger writes text on a terminal and JSON otherwise; in both a duration has its unit.
func newLogger(w io.Writer, f *os.File, level slog.Level) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}}
	if isTerminal(f) {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
