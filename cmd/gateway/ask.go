package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/client"
	"github.com/heddlehq/heddle/config"
)

// An askCmd is one message over the API of a running gateway.
type askCmd struct {
	Message string   `arg:"" help:"What to say; - reads it from standard input."`
	Agent   string   `help:"Who answers (default: the only agent of the settings)."`
	ID      string   `help:"Conversation to begin or go on with (default: a new one)."`
	Key     string   `help:"Name of this message: said again under it, it is not answered again."`
	Data    string   `help:"JSON that the agent gets with the message." placeholder:"JSON"`
	Want    string   `help:"JSON Schema that the answer must fit." placeholder:"SCHEMA"`
	URL     string   `help:"Admin listener of the gateway (default: where the settings put it)."`
	File    []string `help:"File that goes with the message; may be given several times." type:"existingfile"`
	JSON    bool     `help:"Everything about the outcome, as JSON."`
}

// errNotAnswered is why ask fails though the gateway did its part.
var errNotAnswered = errors.New("the message was not answered")

// Validate checks the flags.
func (c askCmd) Validate() error {
	for flag, text := range map[string]string{"--data": c.Data, "--want": c.Want} {
		if text != "" && !json.Valid([]byte(text)) {
			return fmt.Errorf("%s: found no JSON; want a value such as {\"n\":1}", flag)
		}
	}
	return nil
}

// Run says the message and prints the answer.
func (c askCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	m, err := c.message(e)
	if err != nil {
		return err
	}
	agent, err := c.agent(s)
	if err != nil {
		return err
	}
	api, err := apiOf(s, c.URL)
	if err != nil {
		return err
	}
	ref := client.Ref{Agent: agent, ID: c.ID}
	if ref.ID == "" {
		ref.ID = "ask-" + strings.ToLower(rand.Text())
	}
	a, err := api.Send(ctx, ref, m)
	if err != nil {
		return reached(api.URL, err)
	}
	out, err := api.Wait(ctx, a.Channel, a.Event)
	if err != nil {
		return reached(api.URL, err)
	}
	return c.show(e, out)
}

func (c askCmd) message(e env) (m client.Message, err error) {
	m = client.Message{Text: c.Message, Key: c.Key}
	if c.Message == "-" {
		text, err := io.ReadAll(e.stdin)
		if err != nil {
			return m, fmt.Errorf("standard input: %w", err)
		}
		m.Text = string(text)
	}
	for _, name := range c.File {
		data, err := os.ReadFile(name)
		if err != nil {
			return m, err
		}
		m.Files = append(m.Files, client.Attachment{Name: filepath.Base(name), MediaType: mime.TypeByExtension(filepath.Ext(name)), Data: data})
	}
	if c.Data != "" {
		m.Data = json.RawMessage(c.Data)
	}
	if c.Want != "" {
		m.Result = json.RawMessage(c.Want)
	}
	return m, nil
}

// show prints what became of the message.
func (c askCmd) show(e env, out client.Event) error {
	switch {
	case c.JSON:
		if err := jsonLines(e.stdout, []client.Event{out}); err != nil {
			return err
		}
	case len(out.Value) > 0:
		fmt.Fprintln(e.stdout, string(out.Value))
	case out.Answer != "":
		fmt.Fprintln(e.stdout, printable(out.Answer))
	}
	if out.Outcome == "answered" {
		return nil
	}
	why := out.Outcome
	if why == "" {
		why = out.Status
	}
	if reason := out.Reason + out.GaveUp; reason != "" {
		why += ", " + printable(reason)
	}
	return fmt.Errorf("%w: %s", errNotAnswered, why)
}

// agent is who is asked: by default the only agent of the settings.
func (c askCmd) agent(s *config.Settings) (string, error) {
	f := readFile(s)
	names := slices.Sorted(maps.Keys(f.agents))
	switch {
	case c.Agent != "":
		return c.Agent, nil
	case len(names) == 0:
		return usualAgent, nil
	case len(names) == 1:
		return names[0], nil
	}
	return "", fmt.Errorf("--agent: found none; want one of %s", strings.Join(names, ", "))
}

// adminURL is where a gateway of this machine that listens at an address is asked.
func adminURL(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// reached says what to do when no gateway answers.
func reached(at string, err error) error {
	var no *url.Error
	if errors.As(err, &no) {
		return fmt.Errorf("%w at %s: %w", errNoGateway, at, no.Err)
	}
	return err
}

// errNoGateway ends a command that needs a running gateway.
var errNoGateway = errors.New("no gateway answers; start one with gateway run")
