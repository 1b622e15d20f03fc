package mcp

import "github.com/heddlehq/heddle/harness"

// Use mounts what a server offers: its tools as mcp__SERVER__TOOL, and
// mcp__SERVER__resources and mcp__SERVER__prompts if it has those. Nothing is
// mounted while somebody in the thread has less than the role of the settings,
// or before the server was connected for the first time.
//
// A message "/SERVER:PROMPT name=value" shows the model that prompt.
//
// All steps that one event causes see the same list: the newest one when the
// event was first rendered. A server that changes its list in the middle of a
// turn changes the next one. A tool that was taken back or changed since then
// stays mounted, and its calls fail without being made. While the connection is
// lost, the tools stay mounted as well, and their calls fail at once.
func Use(c *harness.Context, s *Server) {
	if s == nil {
		harness.Misuse(c, "mcp.Use", "there is no such server", "name one that was opened, or leave the hook out")
		return
	}
	snap := s.at(c)
	if snap == nil || c.Trust() < s.settings.Who {
		return
	}
	for _, t := range snap.tools {
		harness.UseTool(c, t.harnessed)
	}
	if snap.resources {
		harness.UseTool(c, s.data[0])
	}
	if snap.prompts {
		harness.UseTool(c, s.data[1])
		useCommand(c, s)
	}
}
