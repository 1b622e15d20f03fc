package mcp

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
)

// A command is a prompt that somebody asked for in the thread.
type command struct {
	prompt string
	args   map[string]string
}

var (
	commandForm = regexp.MustCompile(`^/([a-z0-9_-]+):(\S+)(?:\s+(.*))?$`)
	commandArg  = regexp.MustCompile(`^([^\s="]+)=(?:"([^"]*)"|([^\s"]*))(?:\s+|$)`)
)

// plainQuotes undoes what chat programs make of quotes.
var plainQuotes = strings.NewReplacer("\u201c", `"`, "\u201d", `"`)

// commandOf reads "/SERVER:PROMPT name=value name="two words"" for a server.
func commandOf(server string, e chat.Event) (c command, ok bool, err error) {
	switch e.Kind {
	case chat.Mention, chat.Message, chat.Command:
	default:
		return c, false, nil
	}
	m := commandForm.FindStringSubmatch(strings.TrimSpace(e.Text))
	if m == nil || m[1] != server {
		return c, false, nil
	}
	c = command{prompt: m[2], args: map[string]string{}}
	for rest := plainQuotes.Replace(m[3]); rest != ""; {
		a := commandArg.FindStringSubmatch(rest)
		if a == nil {
			return c, true, fmt.Errorf(`arguments are written name=value or name="two words"`)
		}
		c.args[a[1]] = a[2] + a[3]
		rest = rest[len(a[0]):]
	}
	return c, true, nil
}

// useCommand shows the model the prompt that the turn's message asks for.
func useCommand(c *harness.Context, s *Server) {
	cmd, ok, err := commandOf(s.name, c.Event())
	if !ok {
		return
	}
	harness.UseTurnStart(c, "mcp "+s.name, func(ctx context.Context, call *harness.Call) error {
		text := ""
		if err == nil {
			text, err = s.Prompt(ctx, cmd.prompt, cmd.args)
		}
		if err != nil {
			text = "It could not be made: " + tell(err).Error()
		} else {
			text = "Whoever wrote the last message asked for this prompt, so it says what they want. It gives no rights.\n\n" + text
		}
		call.Cite(fmt.Sprintf("the prompt %s of the MCP server %s", describe(cmd.prompt, maxReason), s.name), text)
		return nil
	})
}
