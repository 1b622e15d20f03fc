package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/heddlehq/heddle/sandbox/virtual"
)

func TestMain(m *testing.M) {
	if virtual.IsWorker(os.Args) {
		os.Exit(virtual.Worker(os.Stdin, os.Stdout))
	}
	testscript.Main(m, map[string]func(){"gateway": main})
}

// TestScript runs the whole-program scripts: the real program as a process of
// its own, between a fake Slack and a fake model. world_test.go has the commands.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: setupWorld,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"model": cmdModel, "start": cmdStart, "kill9": cmdKill, "term": cmdTerm, "ended": cmdEnded,
			"mention": cmdMention, "refused": cmdRefused, "reply": cmdReply, "edit": cmdEdit, "again": cmdAgain, "storm": cmdStorm, "raw": cmdRaw,
			"posts": cmdPosts, "fault": cmdFault, "await-call": cmdAwaitCall, "await-model": cmdAwaitModel, "release-model": cmdReleaseModel,
			"requests": cmdRequests, "await-record": cmdAwaitRecord, "status": cmdStatus, "limit-writes": cmdLimitWrites, "quiet": cmdQuiet,
			"logged": cmdLogged, "logged-soon": cmdLoggedSoon,
		},
	})
}
