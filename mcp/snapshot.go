package mcp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heddlehq/heddle/harness"
)

// Bounds on what of one server is mounted.
const (
	maxMounted      = 128
	maxMountedBytes = 256 << 10 // of all definitions
	maxToolName     = 128       // bytes of the server's name for a tool
	maxSeen         = 2 * maxMounted
)

// A Quarantined tool is one that the server lists and that is not mounted.
type Quarantined struct {
	Tool   string // the server's name for it, cleaned
	Reason string
}

// A snapshot is what of a server may be mounted. It does not change.
type snapshot struct {
	tools       []*tool // by name
	resources   bool
	prompts     bool
	quarantined []Quarantined
	missing     []string // tools of the settings that the server does not list
}

// A tool is one of the server's tools that may be mounted.
type tool struct {
	name      string // for the model
	def       *sdk.Tool
	digest    string
	input     schema
	names     map[string]string // the server's, of arguments that have another one for the model
	output    schema            // zero if the server promises none
	promises  bool              // it has an output schema
	again     bool              // may be called again after a lost connection
	harnessed harness.Tool
}

// same says whether two snapshots are the same to everybody.
func (s *snapshot) same(o *snapshot) bool {
	return o != nil && slices.Equal(s.tools, o.tools) && s.resources == o.resources && s.prompts == o.prompts &&
		slices.Equal(s.quarantined, o.quarantined) && slices.Equal(s.missing, o.missing)
}

// find looks a tool up by the server's name for it.
func (s *snapshot) find(name string) *tool {
	if s == nil {
		return nil
	}
	for _, t := range s.tools {
		if t.def.Name == name {
			return t
		}
	}
	return nil
}

// build decides what of a listing is mounted. seen holds the digests that this
// process saw first of tools that are not in the lock file; build adds to it.
func (s *Server) build(l listing, seen map[string]string) *snapshot {
	pins, pinned := s.o.Lock[s.name]
	out := &snapshot{
		resources: l.resources && s.settings.allows(allowResources) && (s.settings.NewTools || pins.Resources),
		prompts:   l.prompts && s.settings.allows(allowPrompts) && (s.settings.NewTools || pins.Prompts),
	}
	times := map[string]int{}
	for _, t := range l.tools {
		times[t.Name]++
	}
	bytes := 0
	for _, def := range slices.SortedStableFunc(slices.Values(l.tools), func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) }) {
		if !s.settings.allows(def.Name) {
			continue
		}
		t, err := s.admit(def, pins, pinned, seen)
		if err == nil {
			bytes += len(t.harnessed.Doc) + len(t.harnessed.Schema) + len(t.output.shown)
			switch {
			case times[def.Name] > 1:
				err = fmt.Errorf("it is listed %d times", times[def.Name])
			case len(out.tools) == maxMounted:
				err = fmt.Errorf("the server has more than %d tools; name those wanted in tools", maxMounted)
			case bytes > maxMountedBytes:
				err = fmt.Errorf("the definitions of the server have more than %d bytes; name those wanted in tools", maxMountedBytes)
			case slices.ContainsFunc(out.tools, func(o *tool) bool { return o.name == t.name }):
				err = fmt.Errorf("another tool has the name %s", t.name)
			}
		}
		if err != nil {
			out.quarantined = append(out.quarantined, Quarantined{describe(def.Name, maxReason), err.Error()})
			continue
		}
		out.tools = append(out.tools, t)
	}
	for _, name := range s.settings.Tools {
		if times[name] == 0 && !strings.HasPrefix(name, "@") {
			out.missing = append(out.missing, name)
		}
	}
	return out
}

// admit checks one definition against its pin and makes it fit to be mounted.
func (s *Server) admit(def *sdk.Tool, pins Pins, pinned bool, seen map[string]string) (*tool, error) {
	if len(def.Name) > maxToolName {
		return nil, fmt.Errorf("its name has more than %d bytes", maxToolName)
	}
	sum, err := digest(def)
	if err != nil {
		return nil, fmt.Errorf("its definition has no JSON form")
	}
	switch want, ok := pins.Tools[def.Name]; {
	case ok && want != sum:
		return nil, fmt.Errorf("its definition is not the one in the lock file")
	case ok:
	case !s.settings.NewTools && !pinned:
		return nil, fmt.Errorf("the lock file does not have the server")
	case !s.settings.NewTools:
		return nil, fmt.Errorf("the lock file does not have it")
	default:
		switch first, ok := seen[def.Name]; {
		case ok && first != sum:
			return nil, fmt.Errorf("its definition changed since it was first seen")
		case !ok && len(seen) >= maxSeen:
			return nil, fmt.Errorf("the server has shown more than %d tools since the start", maxSeen)
		}
	}
	if old := s.latest().find(def.Name); old != nil && old.digest == sum {
		return old, nil
	}
	t := &tool{name: toolName(s.name, def.Name), def: def, digest: sum, promises: def.OutputSchema != nil}
	in, err := readSchema(def.InputSchema)
	if err != nil {
		return nil, err
	}
	if t.promises {
		if t.output, err = readSchema(def.OutputSchema); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
	}
	shown, names, err := arguments(in.shown)
	if err != nil {
		return nil, err
	}
	hints := def.Annotations
	quiet := s.settings.TrustHints && hints != nil && hints.ReadOnlyHint
	t.again = quiet || s.settings.TrustHints && hints != nil && hints.IdempotentHint
	t.input, t.names = in, names
	t.harnessed = harness.NewRawTool(t.name, s.doc(def.Description), anyObject, s.runner(t)).Timeout(s.settings.timeout()).Deferred().Asks()
	t.harnessed.Schema = shown
	if quiet {
		t.harnessed = t.harnessed.Quiet()
	}
	seen[def.Name] = sum
	return t, nil
}

// doc is a description for the model.
func (s *Server) doc(text string) string {
	return fmt.Sprintf("From the MCP server %q: %s", s.name, describe(text, maxDoc))
}

// maxName is what every model's provider takes for the name of a tool, in bytes.
const maxName = 64

var oddRunes = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// The tools that stand for the resources and prompts of a server.
const (
	toolResources = "resources"
	toolPrompts   = "prompts"
)

// toolName is the name of a server's tool for the model: mcp__SERVER__TOOL. One
// that is too long, has odd characters or is taken by us gets a hash of the
// server's own name at its end, so that it is the same on every machine and
// does not depend on which other tools there are.
func toolName(server, name string) string {
	prefix := "mcp__" + server + "__"
	plain := oddRunes.ReplaceAllString(name, "_")
	if plain == name && name != "" && name != toolResources && name != toolPrompts && len(prefix)+len(name) <= maxName {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return prefix + plain[:min(len(plain), maxName-len(prefix)-len(suffix))] + suffix
}
