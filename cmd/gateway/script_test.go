package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/heddlehq/heddle/sandbox/virtual"
)

func TestMain(m *testing.M) {
	if virtual.IsWorker(os.Args) {
		os.Exit(virtual.Worker(os.Stdin, os.Stdout))
	}
	if playMCP() {
		return
	}
	os.Exit(run(m))
}

// run builds the program as it is released, for the scripts: a test binary,
// above all one with the race detector, is another program.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "heddle-gateway-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "gateway"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return m.Run()
}

// TestScript runs the whole-program scripts: the real program as a process of
// its own, between a fake Slack and a fake model. world_test.go has the commands.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setupWorld,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"github": cmdGitHub, "model": cmdModel, "start": cmdStart, "kill9": cmdKill, "term": cmdTerm, "ended": cmdEnded,
			"mention": cmdMention, "refused": cmdRefused, "reply": cmdReply, "edit": cmdEdit, "again": cmdAgain, "storm": cmdStorm, "raw": cmdRaw,
			"posts": cmdPosts, "posted": cmdPosted, "soon": cmdSoon, "fault": cmdFault, "await-call": cmdAwaitCall, "await-model": cmdAwaitModel, "release-model": cmdReleaseModel,
			"requests": cmdRequests, "await-record": cmdAwaitRecord, "status": cmdStatus, "limit-writes": cmdLimitWrites, "quiet": cmdQuiet,
			"attach": cmdAttach, "called": cmdCalled, "sent-file": cmdSentFile, "login": cmdLogin, "logged": cmdLogged, "logged-soon": cmdLoggedSoon, "api": cmdAPI,
			"stripe": cmdStripe, "discord": cmdDiscord, "webhook": cmdWebhook, "under": cmdUnder, "stands": cmdStands, "sockets": cmdSockets, "socket": cmdSocket, "by-socket": cmdBySocket,
			"by-socket-again": cmdBySocketAgain, "said": cmdSaid, "take-back": cmdTakeBack, "marked": cmdMarked,
			"slash": cmdSlash, "click": cmdClick, "last": cmdLast, "whispered": cmdWhispered,
			"install": cmdInstall, "unheard": cmdUnheard, "storm-mention": cmdStormMention, "tampered": cmdTampered,
		},
	})
}
