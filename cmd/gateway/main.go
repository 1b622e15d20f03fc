// Command gateway turns chat threads into durable agent conversations.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	"github.com/heddlehq/heddle/sandbox/virtual"
	"github.com/heddlehq/heddle/state"
)

// Exit codes; scripts rely on them.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitTryAgain = 75
	exitSettings = 78
)

// version is stamped by the build.
var version = ""

func main() {
	if virtual.IsWorker(os.Args) {
		os.Exit(virtual.Worker(os.Stdin, os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	os.Exit(Main(ctx, os.Args[1:], env{lookup: os.LookupEnv, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}

// env is what a command may touch of the process.
type env struct {
	lookup         func(string) (string, bool)
	stdin          *os.File
	stdout, stderr *os.File
}

// cli is the command line.
type cli struct {
	Config string `help:"Settings file (default: $HEDDLE_CONFIG, else ./gateway.yaml if it exists)." placeholder:"FILE"`

	Run           runCmd           `cmd:"" default:"1" help:"Serve: take events in, answer them, until stopped."`
	Check         checkCmd         `cmd:"" help:"Explain the settings in force and say what is wrong with them."`
	Demo          demoCmd          `cmd:"" help:"Show it all with a make-believe Slack; needs no key and no server."`
	Ask           askCmd           `cmd:"" help:"Say something to an agent of the running gateway and print the answer."`
	Send          sendCmd          `cmd:"" help:"Say something in a conversation of a channel; it is answered there."`
	Why           whyCmd           `cmd:"" help:"Explain what became of a message: received, admitted, allowed, turn, posts."`
	Replay        redeliverCmd     `cmd:"" help:"Deliver recorded deliveries to the running gateway, signed with the configured secret."`
	Conversations conversationsCmd `cmd:"" help:"Look at conversations in the store, also beside a running gateway."`
	Outbox        outboxCmd        `cmd:"" help:"Look at the posts that are not sent, try dead ones again, give others up."`
	Skills        skillsCmd        `cmd:"" help:"Look at skills and pin them."`
	Memory        memoryCmd        `cmd:"" help:"Look at what is remembered, and embed it again."`
	MCP           mcpCmd           `cmd:"" name:"mcp" help:"Look at MCP servers and pin their tools."`
	Secrets       secretsCmd       `cmd:"" help:"Keys for the secrets in the store."`
	Hooks         hooksCmd         `cmd:"" help:"List what an agent in Go may declare."`
	Version       versionCmd       `cmd:"" help:"Print the version."`
}

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string, e env) (code int) {
	var c cli
	exited := false
	parser, err := kong.New(&c, kong.Name("gateway"), kong.UsageOnError(), kong.Writers(e.stdout, e.stderr),
		kong.Description("Heddle turns chat threads into durable agent conversations."),
		kong.Exit(func(n int) { exited, code = true, n }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(e))
	if err != nil {
		panic(err) // the command line is declared wrongly
	}
	cmd, err := parser.Parse(args)
	if exited {
		return code
	}
	if err != nil {
		fmt.Fprintf(e.stderr, "gateway: %v\nTry: gateway --help\n", err)
		return exitUsage
	}
	return report(e.stderr, cmd.Run(c.settings(e)))
}

func (c *cli) settings(e env) *config.Settings { return config.Open(c.Config, e.lookup) }

// report prints an error and returns the exit code that it means.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(w, "gateway: %v\n", err)
	var wrong config.Problems
	switch {
	case errors.As(err, &wrong), errors.Is(err, errSettings), errors.Is(err, state.ErrNewer):
		return exitSettings
	case errors.Is(err, state.ErrLocked), errors.Is(err, errTaken), errors.Is(err, errNoGateway), errors.Is(err, errAway), errors.Is(err, dispatch.ErrDrainTimeout):
		return exitTryAgain
	}
	return exitFailed
}

// errSettings marks what only an operator's change of settings can mend.
var errSettings = errors.New("settings are wrong")

// errAway marks a server that is needed and was not reached.
var errAway = errors.New("not reached")

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(e env) error {
	_, err := fmt.Fprintln(e.stdout, "gateway "+versionText())
	return err
}

func versionText() string {
	if version != "" {
		return version
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}
