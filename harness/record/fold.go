package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/state"
)

// A Fold is the present of a conversation: its log read from the beginning.
// Equal logs give equal folds on every machine.
type Fold struct {
	Seq      int64                      `json:"seq"` // of the last record applied
	Messages []model.Message            `json:"messages"`
	State    map[string]json.RawMessage `json:"state,omitempty"`
	Versions map[string]int             `json:"versions,omitempty"` // of the forms in State, without those of version 1
	Initial  json.RawMessage            `json:"initial,omitempty"`  // data of the first event
	Voices   []Voice                    `json:"voices,omitempty"`   // whose text the model can see
	Newest   map[string]time.Time       `json:"newest,omitempty"`   // by thread: when what was said last was said, as its provider says
	Home     chat.Thread                `json:"home,omitzero"`      // channel and account of the first event: where voices without a thread spoke
	View     harness.View               `json:"view"`               // what the model was last told it has
	Digest   string                     `json:"digest,omitempty"`   // of View, "" before the first step
	Order    []string                   `json:"order,omitempty"`    // tools of the request, as they first came
	Gone     []model.Tool               `json:"gone,omitempty"`     // those of Order that are not mounted any more
	Warm     bool                       `json:"warm,omitempty"`     // the last answer used the provider's cache
	Turn     *Turn                      `json:"turn,omitempty"`     // the one not settled
	Turns    int                        `json:"turns"`              // settled ones
	Data     map[string]int64           `json:"data,omitempty"`     // Seq of the newest value for programs, by name
	Parent   *Forked                    `json:"parent,omitempty"`   // where the conversation was forked
	Usage    model.Usage                `json:"usage"`
	Cost     float64                    `json:"cost,omitempty"`
	Ended    *Settled                   `json:"ended,omitempty"` // of a task that is over: how
	Due      *Due                       `json:"due,omitempty"`   // the settled turn whose callbacks have not run
	// Counted is what the first CountedTo messages and all before them take in
	// tokens, as the provider counted at the last answer; 0 if it did not.
	Counted   int `json:"counted,omitempty"`
	CountedTo int `json:"counted_to,omitempty"`
	// Chain is the digest of the log so far, see Link.
	Chain string `json:"chain,omitempty"`
	// Cited are the digests of the texts that the model was shown last, by
	// source, as far as no summary stands for them.
	Cited map[string]string `json:"cited,omitempty"`
	// Version is of the code that made the last manifest.
	Version string `json:"version,omitempty"`

	Mode    Mode        `json:"mode,omitempty"`
	Allowed int         `json:"allowed,omitempty"` // steps, while stepping
	Policy  chat.Policy `json:"policy,omitempty"`  // of this conversation, "" for its route's
	Ahead   []int64     `json:"ahead,omitempty"`   // places of events in the inbox that were obeyed before their turn
	Crashes int         `json:"crashes,omitempty"` // attempts in a row that left nothing in the log
	// BotTurns counts the turns that bots have begun since a person spoke.
	BotTurns int  `json:"bot_turns,omitempty"`
	Work     Work `json:"work,omitzero"`

	Declared []Declared `json:"declared,omitempty"` // files of what was heard since the last answer
	Files    []Kept     `json:"files,omitempty"`    // that people attached
}

// A Voice is an author and the weakest role that was seen of them.
type Voice = harness.Voice

// A Turn is the part of the log that is not settled.
type Turn struct {
	ID    string       `json:"id"`
	Event chat.Event   `json:"event"`          // the newest taken
	Refs  []string     `json:"refs,omitempty"` // see Mark: what was heard
	Step  int          `json:"step"`           // the last one recorded, 0 before the first
	Calls []model.Part `json:"calls,omitempty"`
	Began bool         `json:"began,omitempty"` // the start callbacks have run
	Sent  int          `json:"sent,omitempty"`  // how often callbacks sent the model back to work
	// Nudged is how often the harness sent it back for an answer in the form of
	// Want, the schema that an event of the turn came with; Result is that answer.
	Nudged int             `json:"nudged,omitempty"`
	Want   json.RawMessage `json:"want,omitempty"`
	Result *Resulted       `json:"result,omitempty"`
	Hops   int             `json:"hops,omitempty"` // how many dispatches led to it
	// Rejected counts the steps with calls that were the model's mistake, the
	// last of which was RejectedAt.
	Rejected   int         `json:"rejected,omitempty"`
	RejectedAt int         `json:"rejected_at,omitempty"`
	Memos      []Memo      `json:"memos,omitempty"` // of the open calls
	Usage      model.Usage `json:"usage"`
	Cost       float64     `json:"cost,omitempty"`
	Asks       []Asked     `json:"asks,omitempty"`  // of the open calls, not answered
	Heard      []Heard     `json:"heard,omitempty"` // while calls are open
	Partial    Partial     `json:"partial,omitzero"`
	Used       []string    `json:"used,omitempty"` // ids of calls that a summary stands for since the turn began
	// Probes counts the looks at open calls of unknown outcome.
	Probes map[string]int `json:"probes,omitempty"`
	// Unclear is the tool of a call whose outcome only people can find out.
	Unclear string `json:"unclear,omitempty"`
	// Questions counts all that calls of the turn have asked or waited for.
	Questions int `json:"questions,omitempty"`
	// Tasks are the presents of the open tasks, by the calls that gave them.
	Tasks map[string]*Fold `json:"tasks,omitempty"`
}

// Add applies records in order. It fails on a gap and on what it cannot decode.
func (f *Fold) Add(records []state.Record) error {
	for _, r := range records {
		if r.Seq != f.Seq+1 {
			return fmt.Errorf("record %d follows record %d: the log has a gap", r.Seq, f.Seq)
		}
		b, err := Decode(r)
		if err != nil {
			return err
		}
		f.Append(r, b)
	}
	return nil
}

// Append adds the next entry and the record that holds it.
func (f *Fold) Append(r state.Record, b Body) {
	f.Chain = Link(f.Chain, r)
	f.Apply(b)
}

// Apply adds the next entry without its record: the chain stays.
func (f *Fold) Apply(b Body) {
	f.Seq++
	if _, ok := b.(Resumed); !ok {
		f.Crashes = 0
	}
	switch b := b.(type) {
	case Heard:
		f.heard(b)
	case Asked, Probed, Chunk, Torn:
		f.underway(b)
	case Data:
		f.Data = put(f.Data, b.Name, f.Seq, true)
	case Dispatched, Posted:
	case Forked:
		f.forked(b)
	case Passed, Controlled, Rested, Resumed:
		f.steered(b)
	case Fetched, Unshown:
		f.filed(b)
	case Retried:
		f.spend(b.Usage, b.Cost)
	case Rendered:
		f.rendered(b)
		if b.Version != "" {
			f.Version = b.Version
		}
	case Told:
		f.say(model.User, model.Part{Kind: model.Text, Text: Notice(b.Text)})
	case Cited:
		f.say(model.User, model.Part{Kind: model.Text, Text: Cite(b)})
		f.Cited = put(f.Cited, b.Source, b.Digest, true)
	case Began:
		if f.Turn != nil {
			f.Turn.Began = true
		}
	case Sent:
		f.sent(b)
		f.say(model.User, model.Part{Kind: model.Text, Text: Notice(b.Text)})
	case Memo:
		if f.Turn != nil {
			f.Turn.Memos = append(f.Turn.Memos, b)
			f.Turn.answered(b.Call, b.Name)
		}
	case Said:
		f.said(b)
	case Did:
		f.did(b)
		f.catchUp(false)
	case Wrote:
		f.wrote(b)
	case Resulted:
		if f.Turn != nil {
			f.Turn.Result = &b
		}
	case Notified:
		f.Due = nil
	case Folded:
		f.folded(b)
	case Child:
		f.Seq-- // Spend counts it
		f.Spend(b.Body)
		if f.Turn != nil {
			f.Task(b.Task[0]).Apply(b.below())
		}
	case Settled:
		f.unsaid()
		f.catchUp(true)
		if b.Outcome == Aborted {
			f.say(model.User, model.Part{Kind: model.Text, Text: Notice(aborted[b.Reason])})
		}
		if b.Due != "" && f.Turn != nil {
			f.Due = &Due{Settled: b, Event: f.Turn.Event, Hops: f.Turn.Hops}
		}
		f.Turn, f.Work = nil, Work{}
		f.Turns++
		if b.Answer != "" {
			f.Ended = &b
		}
	}
}

// below is the entry as the log of the outermost task has it.
func (c Child) below() Body {
	if len(c.Task) == 1 {
		return c.Body
	}
	c.Task = c.Task[1:]
	return c
}

// Task is the present of an open task, made if there is none. There must be a turn.
func (f *Fold) Task(call string) *Fold {
	t := f.Turn.Tasks[call]
	if t == nil {
		t = &Fold{}
		if f.Turn.Tasks == nil {
			f.Turn.Tasks = map[string]*Fold{}
		}
		f.Turn.Tasks[call] = t
	}
	return t
}

// Spend counts the next entry as one of a task that has applied it itself: what
// it cost, this conversation paid.
func (f *Fold) Spend(b Body) {
	f.Seq++
	f.Crashes = 0
	for {
		c, ok := b.(Child)
		if !ok {
			break
		}
		b = c.Body
	}
	switch b := b.(type) {
	case Said:
		f.spend(b.Usage, b.Cost)
	case Folded:
		f.spend(b.Usage, b.Cost)
	case Retried:
		f.spend(b.Usage, b.Cost)
	}
}

func (f *Fold) spend(u model.Usage, cost float64) {
	f.Usage, f.Cost = f.Usage.Plus(u), f.Cost+cost
	if f.Turn != nil {
		f.Turn.Usage, f.Turn.Cost = f.Turn.Usage.Plus(u), f.Turn.Cost+cost
	}
}

// A Due is a settled turn whose callbacks have not run.
type Due struct {
	Settled Settled    `json:"settled"`
	Event   chat.Event `json:"event"` // the newest that the turn took
	Hops    int        `json:"hops,omitempty"`
}

func (f *Fold) sent(b Sent) {
	if t := f.Turn; t != nil {
		t.Result = nil
		if b.Hook == "" {
			t.Nudged++
		} else {
			t.Sent++
		}
	}
}

func (f *Fold) wrote(b Wrote) {
	f.State = put(f.State, b.Name, b.Value, b.Value != nil)
	f.Versions = put(f.Versions, b.Name, b.Version, b.Value != nil && b.Version > 1)
}

// put sets or takes away one entry; a map without entries is nil, as it reads back.
func put[V any](m map[string]V, name string, v V, there bool) map[string]V {
	if !there {
		delete(m, name)
		if len(m) == 0 {
			return nil
		}
		return m
	}
	if m == nil {
		m = map[string]V{}
	}
	m[name] = v
	return m
}

func (f *Fold) heard(b Heard) {
	if !f.later(b) {
		f.hearNow(b)
	}
}

func (f *Fold) hearNow(b Heard) {
	if len(f.Voices) == 0 && f.Initial == nil {
		f.Initial = b.Event.Data
	}
	if f.Turn == nil && b.Turn != "" {
		f.Turn, f.Work = &Turn{ID: b.Turn}, Work{}
		if f.Mode == Stepping {
			f.Allowed = 1
		}
		if b.Event.Author.Bot {
			f.BotTurns++
		}
	}
	if b.Event.Author.ID != "" && !b.Event.Author.Bot {
		f.BotTurns = 0
	}
	of := Mark(b.Event.Thread, b.Event.Ref)
	if b.Event.Kind == chat.Deleted {
		f.redact(of)
		f.say(model.User, model.Part{Kind: model.Text, Text: Quote(b)})
		return // nothing was said
	}
	if t := b.Event.At; t.After(f.Newest[b.Event.Thread.Key()]) {
		f.Newest = put(f.Newest, b.Event.Thread.Key(), t, true)
	}
	if f.Turn != nil && b.Turn != "" {
		if of != "" && !slices.Contains(f.Turn.Refs, of) {
			f.Turn.Refs = append(f.Turn.Refs, of)
		}
		f.Turn.Event, f.Turn.Result = b.Event, nil // what was said since changes it
		f.Turn.Hops = max(f.Turn.Hops, Hops(b.Event))
		if b.Event.Want != nil {
			f.Turn.Want = b.Event.Want
		}
	}
	f.say(model.User, model.Part{Kind: model.Text, Text: Quote(b), Of: of})
	f.declare(b)
	v := Voice{Author: b.Event.Author, Role: b.Role}
	if at := (chat.Thread{Channel: b.Event.Thread.Channel, Account: b.Event.Thread.Account}); f.Home == (chat.Thread{}) {
		f.Home = at
	} else if at != f.Home && at.Channel != "" {
		v.Thread = at
	}
	f.hear(v)
}

// hear counts a voice among those whose text the model can see.
func (f *Fold) hear(v Voice) {
	i := slices.IndexFunc(f.Voices, func(o Voice) bool {
		return o.Author.ID == v.Author.ID && o.Author.Account == v.Author.Account && o.Thread == v.Thread
	})
	if i < 0 {
		f.Voices = append(f.Voices, v)
	} else {
		f.Voices[i].Role = min(f.Voices[i].Role, v.Role)
	}
}

func (f *Fold) said(b Said) {
	f.spend(b.Usage, b.Cost)
	f.Warm = b.Usage.Cached+b.Usage.CacheWrite > 0
	f.Allowed = max(f.Allowed-1, 0)
	f.Declared = nil
	if f.Turn != nil {
		f.Turn.Step = b.Step
		f.Turn.Partial.Text = ""
		f.Turn.Calls = nil
		for _, p := range b.Parts {
			if p.Kind == model.Call {
				f.Turn.Calls = append(f.Turn.Calls, p)
			}
			if p.Kind == model.Text && strings.TrimSpace(p.Text) != "" {
				f.Work.Text = p.Text
			}
		}
	}
	if len(b.Parts) > 0 {
		f.Messages = append(f.Messages, model.Message{Role: model.Assistant, Parts: b.Parts})
	}
	f.Counted, f.CountedTo = 0, 0
	if n := b.Usage.In + b.Usage.Out; n > 0 {
		f.Counted, f.CountedTo = n, len(f.Messages)
	}
}

// use keeps the ids of calls that the model does not see any more.
func (t *Turn) use(dropped []model.Message) {
	if t == nil {
		return
	}
	for _, m := range dropped {
		for _, p := range m.Parts {
			if p.Kind == model.Call {
				t.Used = append(t.Used, p.CallID)
			}
		}
	}
}

// folded puts the summary in the place of the messages it stands for. The
// provider's cache is lost anyway, so tools that are gone leave the request.
func (f *Fold) folded(b Folded) {
	f.spend(b.Usage, b.Cost)
	summary := model.Message{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: Summary(b.Summary+b.Kept, f.View)}}}
	drop := min(b.Drop, len(f.Messages))
	f.Turn.use(f.Messages[:drop])
	f.Messages = append([]model.Message{summary}, f.Messages[drop:]...)
	f.Counted, f.CountedTo, f.Cited = 0, 0, nil
	f.Warm = false
	f.dropGone()
}

func (f *Fold) did(b Did) {
	if f.Turn != nil {
		f.Turn.Calls = slices.DeleteFunc(f.Turn.Calls, func(p model.Part) bool { return p.CallID == b.CallID })
		f.Turn.Memos = slices.DeleteFunc(f.Turn.Memos, func(m Memo) bool { return m.Call == b.CallID })
		f.Turn.answered(b.CallID, "")
		f.Turn.Probes = put(f.Turn.Probes, b.CallID, 0, false)
		if b.Unclear != "" {
			f.Turn.Unclear = b.Unclear
		}
		delete(f.Turn.Tasks, b.CallID)
		if b.Rejected != "" && f.Turn.RejectedAt != b.Step {
			f.Turn.Rejected, f.Turn.RejectedAt = f.Turn.Rejected+1, b.Step
		}
	}
	for _, v := range b.Voices {
		f.hear(v)
	}
	ps := []model.Part{{Kind: model.Result, CallID: b.CallID, Name: b.Tool, Text: Defuse(b.Text), Failed: b.End != Done}}
	for _, p := range b.Images {
		ps = append(ps, model.Part{Kind: model.Image, Media: p.Media, Ref: p.Blob})
	}
	// Results stand right behind the message with the calls, whatever was heard
	// before they were there.
	i := len(f.Messages)
	for i > 0 && f.Messages[i-1].Role == model.User {
		i--
	}
	if i == 0 {
		i = len(f.Messages) // no answer with calls is left
	}
	if i > 0 && f.Messages[i-1].Role == model.Results {
		f.Messages[i-1].Parts = append(f.Messages[i-1].Parts, ps...)
		return
	}
	f.Messages = slices.Insert(f.Messages, i, model.Message{Role: model.Results, Parts: ps})
}

func (f *Fold) say(role model.Role, p model.Part) {
	f.Messages = append(f.Messages, model.Message{Role: role, Parts: []model.Part{p}})
}

// Summarised says whether the first message is a summary already.
func (f *Fold) Summarised() bool {
	return len(f.Messages) > 0 && f.Messages[0].Role == model.User && strings.HasPrefix(f.Messages[0].Parts[0].Text, summaryMark)
}

// checkpointVersion changes when the fold reads old records differently.
const checkpointVersion = 20

// FoldBlob names the blob in which a conversation's last checkpoint is kept.
const FoldBlob = "fold"

type checkpoint struct {
	Version int      `json:"version"`
	Of      state.ID `json:"of"` // a fork gets the blobs of its original, which may have gone on since
	Fold    *Fold    `json:"fold"`
}

// Checkpoint writes the fold of a conversation down, so that the next reader
// need not begin at the first record. It is a cache: without it the fold is the same.
func (f *Fold) Checkpoint(of state.ID) ([]byte, error) {
	return encode(checkpoint{Version: checkpointVersion, Of: of, Fold: f})
}

// Restore reads a checkpoint of a conversation. One that is missing, damaged, of
// another version or of another conversation gives the empty fold.
func Restore(data []byte, of state.ID) *Fold {
	var c checkpoint
	if json.Unmarshal(data, &c) != nil || c.Version != checkpointVersion || c.Of != of || c.Fold == nil {
		return &Fold{}
	}
	return c.Fold
}
