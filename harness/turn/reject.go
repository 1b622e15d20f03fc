package turn

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/model"
)

// Bounds on the calls of a model.
const (
	atOnce       = 16      // calls of a step that run at a time
	mostArgs     = 1 << 20 // bytes of the arguments of one answer: more than any model can mean
	mostRejected = 2       // steps of a turn whose mistakes the model is told
)

// rejected says which mistake of the model's a call is, "" for none.
func rejected(p model.Part, mounted bool) string {
	switch {
	case !mounted:
		return record.UnknownTool
	case p.BadArgs != "":
		return record.BadArguments
	}
	return ""
}

// rejection is what the model is told of its mistake.
func rejection(j *job, depth int) string {
	switch {
	case j.part.Name == harness.TaskTool && j.rejected == record.UnknownTool && depth == harness.MaxDepth:
		return "Error: " + harness.ErrDepth.Error() + ". Nothing was run."
	case j.rejected == record.UnknownTool:
		return fmt.Sprintf("There is no tool %q in this step. Nothing was run.", j.part.Name)
	}
	return fmt.Sprintf("The arguments are not a JSON object of at most %d KiB, nested at most %d deep. Nothing was run; call again with valid JSON.", mostArgs>>10, harness.MaxNesting)
}

// tame takes out what no log can keep: arguments beyond mostArgs, or nested too
// deep, become bad ones, and the raw answer goes with them.
func tame(resp *model.Response) {
	left := mostArgs
	for i, p := range resp.Parts {
		n := len(p.Args) + len(p.BadArgs)
		if p.Kind != model.Call || n <= left && !harness.TooDeep(p.Args) {
			left -= n
			continue
		}
		resp.Parts[i].Args, resp.Parts[i].BadArgs = json.RawMessage("{}"), fmt.Sprintf("[%d bytes]", n)
		resp.Raw = nil
	}
}

// rename gives another id to a call whose own an earlier call of the turn had
// that a summary stands for: what happens outside is known by it.
func (r *run) rename(n int, resp *model.Response) {
	for i, p := range resp.Parts {
		if p.Kind == model.Call && slices.Contains(r.f.Turn.Used, p.CallID) {
			resp.Parts[i].CallID = fmt.Sprintf("%s_s%d", p.CallID, n)
		}
	}
}

// distinct says whether each call of the answer has an id of its own. Others
// cannot be told apart from what ran already.
func distinct(r model.Request, resp model.Response) bool {
	var used map[string]bool
	for _, p := range resp.Parts {
		if p.Kind != model.Call {
			continue
		}
		if used == nil {
			used = callIDs(r)
		}
		if p.CallID == "" || used[p.CallID] {
			return false
		}
		used[p.CallID] = true
	}
	return true
}

func callIDs(r model.Request) map[string]bool {
	ids := map[string]bool{}
	for _, m := range r.Messages {
		for i := range m.Parts {
			if p := &m.Parts[i]; p.Kind == model.Call {
				ids[p.CallID] = true
			}
		}
	}
	return ids
}
