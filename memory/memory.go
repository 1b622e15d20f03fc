// Package memory lets agents find what was said before: notes that they saved
// and turns that settled, of all conversations of one account. [Use] is the hook.
//
// A search compares a query with everything the account has, by meaning
// (vectors of an [Embedder], compared exactly) and by words, and joins both
// orders. What is found keeps where it came from. It is left out where it may
// not be seen: what was said in a private room is found in that room only, and
// outsiders find nothing of other rooms. It is also left out where somebody had
// a part in it who has less trust than everybody present, so that a search never
// costs a conversation its rights; what is brought counts as a voice.
package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"sync"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/state"
)

// An Embedder turns texts into vectors, so that texts that mean the same lie
// near each other. Equal texts give equal vectors, all of one length.
type Embedder interface {
	// Name tells what made a vector, such as "openai/text-embedding-3-small".
	// Vectors of different names are never compared.
	Name() string
	// Embed returns one vector a text, in the order of the texts.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Options make a memory. Values and Embedder are required.
type Options struct {
	Values   state.Values
	Embedder Embedder
	// Role is what an author is now; with an error they count as outsider.
	// Where it is nil, everybody is what they were when it was said.
	Role func(ctx context.Context, t chat.Thread, a chat.Author) (chat.Role, error)
	// Open says whether everybody in the account may read the thread's room.
	// Where it is nil, nobody may: everything is found in its own room only.
	Open  func(ctx context.Context, t chat.Thread) (bool, error)
	Clock func() time.Time // nil for time.Now
	Log   *slog.Logger     // nil for none
	Items int              // most that an account keeps, 0 for 20 000; the oldest turns are forgotten first
	Cache int              // bytes of indexes kept in memory, 0 for 256 MiB; the one in use is kept in any case
}

// A Memory is all that is remembered. Methods may be called at once.
type Memory struct {
	Options
	tools []harness.Tool
	mu    sync.Mutex
	kept  map[account]*index
	used  []account // of kept, the latest last
}

// An account is what never mixes: one workspace, guild or repository.
type account struct{ channel, name string }

func accountOf(t chat.Thread) account { return account{t.Channel, t.Account} }

// String is the account as people write it: "slack/T01".
func (a account) String() string { return url.PathEscape(a.channel) + "/" + url.PathEscape(a.name) }

// New makes a memory. It does no I/O.
func New(o Options) *Memory {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Items == 0 {
		o.Items = 20_000
	}
	if o.Cache == 0 {
		o.Cache = 256 << 20
	}
	m := &Memory{Options: o, kept: map[account]*index{}}
	m.tools = []harness.Tool{m.searchTool(), m.saveTool()}
	return m
}

// A MismatchError says that an index and the embedder of the settings do not
// belong together. Nothing was read or changed.
type MismatchError struct {
	Account       string // "slack/T01"
	Have          string // who made the index
	HaveDimension int    // 0 if it has no vectors yet
	Want          string // the embedder of the settings
	WantDimension int    // 0 if it was not asked
}

func (e *MismatchError) Error() string {
	side := func(name string, dimension int) string {
		if dimension == 0 {
			return name
		}
		return fmt.Sprintf("%s with %d dimensions", name, dimension)
	}
	again := ""
	if e.Have == e.Want { // the model behind the name has changed
		again = " --again"
	}
	return fmt.Sprintf("the memory of %s was made by %s, the embedder is %s: run gateway memory reindex%s, or set the embedder that made it",
		e.Account, side(e.Have, e.HaveDimension), side(e.Want, e.WantDimension), again)
}

// Check fails with a *MismatchError for each account whose index another
// embedder made.
func (m *Memory) Check(ctx context.Context) error {
	heads, err := m.heads(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, h := range heads {
		errs = append(errs, m.match(h))
	}
	return errors.Join(errs...)
}

// match says whether the index was made by the embedder.
func (m *Memory) match(h head) error {
	if h.Embedder == m.Embedder.Name() {
		return nil
	}
	return &MismatchError{Account: h.account.String(), Have: h.Embedder, HaveDimension: h.Dimension, Want: m.Embedder.Name()}
}

// embedTime is how long a text that people wait for may take to be embedded.
const embedTime = 10 * time.Second

// soon embeds one text in a bounded time. If that fails, for another reason than
// a mismatch or ctx's end, it is logged and there is no vector.
func (m *Memory) soon(ctx context.Context, h head, text string) ([]float32, error) {
	within, cancel := context.WithTimeout(ctx, embedTime)
	defer cancel()
	vs, err := m.embed(within, h, []string{text})
	switch {
	case err == nil:
		return vs[0], nil
	case errors.As(err, new(*MismatchError)):
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	m.Log.Warn("text not embedded", "account", h.account.String(), "err", err)
	return nil, nil
}

// maxDimension bounds a vector: the largest models have a third of it.
const maxDimension = 1 << 14

// embed returns vectors of length one, nil for a text that has no direction.
func (m *Memory) embed(ctx context.Context, h head, texts []string) ([][]float32, error) {
	vs, err := m.Embedder.Embed(ctx, texts)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if len(vs) != len(texts) {
		return nil, fmt.Errorf("embed: %d vectors for %d texts", len(vs), len(texts))
	}
	dimension := len(vs[0])
	for i, v := range vs {
		if len(v) == 0 || len(v) != dimension {
			return nil, fmt.Errorf("embed: a vector has %d dimensions, another %d", len(v), dimension)
		}
		if len(v) > maxDimension {
			return nil, fmt.Errorf("embed: a vector has %d dimensions, at most %d are kept", len(v), maxDimension)
		}
		if h.Dimension != 0 && len(v) != h.Dimension {
			return nil, &MismatchError{Account: h.account.String(), Have: h.Embedder, HaveDimension: h.Dimension, Want: m.Embedder.Name(), WantDimension: len(v)}
		}
		if vs[i], err = unit(v); err != nil {
			return nil, err
		}
	}
	return vs, nil
}

// unit makes a vector that long 1, nil of one that is zero.
func unit(v []float32) ([]float32, error) {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return nil, errors.New("embed: a vector holds what is no number")
	}
	if sum == 0 {
		return nil, nil
	}
	out, by := make([]float32, len(v)), 1/math.Sqrt(sum)
	for i, f := range v {
		out[i] = float32(float64(f) * by)
	}
	return out, nil
}
