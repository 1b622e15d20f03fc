package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/dispatch"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/memory"
	"github.com/heddlehq/heddle/memory/embedder"
	"github.com/heddlehq/heddle/model/openai"
	"github.com/heddlehq/heddle/state"
)

// memorySettings are the section memory.
type memorySettings struct {
	Embedder string `yaml:"embedder" doc:"What compares texts by meaning: openai/MODEL (the server of OPENAI_BASE_URL), ollama/MODEL (of OLLAMA_HOST), or ngram, which needs no server and knows parts of words only. A change needs: gateway memory reindex."`
}

// recall is the memory of a gateway: known when agents are made, there when the
// store is open.
type recall struct {
	embedder memory.Embedder // nil if the setting is wrong
	memory   *memory.Memory
	used     bool // by an agent
}

// recallOf reads the section.
func recallOf(s *config.Settings, f memorySettings) *recall {
	const at = "memory.embedder"
	provider, id, _ := strings.Cut(f.Embedder, "/")
	key, base, ollama := openai.Servers(s)
	switch {
	case f.Embedder == "ngram":
		return &recall{embedder: embedder.NGram{}}
	case provider == "openai" && id != "":
		if key == "" && base == openai.DefaultBaseURL {
			s.Refuse(at, fmt.Sprintf("%q without a key", f.Embedder), "OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none")
		}
		return &recall{embedder: embedder.OpenAI(embedder.Options{Model: id, BaseURL: base, APIKey: key})}
	case provider == "ollama" && id != "":
		if ollama == "" {
			s.Refuse(at, fmt.Sprintf("%q without a server", f.Embedder), "OLLAMA_HOST")
		}
		return &recall{embedder: embedder.Ollama(embedder.Options{Model: id, BaseURL: strings.TrimSuffix(openai.OllamaURL(ollama), "/v1")})}
	}
	s.Refuse(at, fmt.Sprintf("%q", f.Embedder), "openai/MODEL, ollama/MODEL or ngram")
	return &recall{}
}

// use is the hook of agents that remember.
func (r *recall) use(c *harness.Context) { memory.Use(c, r.memory) }

// rooms is a channel that can tell who reads a room.
type rooms interface {
	// Open says whether everybody in the account may read the thread's room.
	Open(ctx context.Context, t chat.Thread) (bool, error)
}

// open makes the memory over a store.
func (r *recall) open(values state.Values, cs []channels.Channel, roles *dispatch.Roles, logger *slog.Logger) {
	r.memory = memory.New(memory.Options{
		Values: values, Embedder: r.embedder, Log: logger, Role: roles.Role,
		Open: func(ctx context.Context, t chat.Thread) (bool, error) {
			for _, c := range cs {
				if o, ok := c.(rooms); ok && c.Name() == t.Channel {
					return o.Open(ctx, t)
				}
			}
			return false, nil
		},
	})
}

// check fails if agents remember and what is there does not fit the embedder.
func (r *recall) check(ctx context.Context) error {
	if !r.used {
		return nil
	}
	err := r.memory.Check(ctx)
	if mismatch := (*memory.MismatchError)(nil); errors.As(err, &mismatch) {
		return fmt.Errorf("%w: %w", errSettings, err)
	}
	return err
}

type memoryCmd struct {
	Search  memorySearchCmd  `cmd:"" help:"Search what an account remembers, as an operator: rooms and roles do not count."`
	Stats   memoryStatsCmd   `cmd:"" help:"Tell what each account's index takes and how long a search in it."`
	Forget  memoryForgetCmd  `cmd:"" help:"Delete what an account remembers, by the names that search prints. No gateway may run."`
	Reindex memoryReindexCmd `cmd:"" help:"Embed everything by the embedder of the settings. No gateway may run. A job that is interrupted goes on when it is repeated."`
}

// with opens the store and does something with the memory in it.
func (memoryCmd) with(ctx context.Context, e env, s *config.Settings, readOnly bool, do func(*memory.Memory) error) (err error) {
	f := readFile(s)
	r := recallOf(s, f.memory)
	if err := s.Err(); err != nil {
		return err
	}
	st, err := openStore(ctx, s, readOnly)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	logger := newLogger(s.Redact(e.stderr), e.stderr, slog.LevelWarn)
	return do(memory.New(memory.Options{Values: st, Embedder: r.embedder, Log: logger}))
}

type memorySearchCmd struct {
	Account string `required:"" help:"Whose memory: slack/T01." placeholder:"CHANNEL/ACCOUNT"`
	Limit   int    `default:"5" help:"At most so many, 20 or less."`
	Query   string `arg:"" help:"What to look for."`
}

// Run searches.
func (c memorySearchCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	account, err := chat.ParseThread(c.Account)
	if err != nil {
		return err
	}
	return memoryCmd{}.with(ctx, e, s, true, func(m *memory.Memory) error {
		r, err := m.Search(ctx, memory.Query{Text: c.Query, Thread: account, Limit: c.Limit, Everything: true})
		if err != nil {
			return err
		}
		if r.WordsOnly {
			fmt.Fprintln(e.stderr, "The embedder was not reached; this was searched by words only.")
		}
		if len(r.Found) == 0 {
			fmt.Fprintln(e.stderr, "nothing is remembered of that")
		}
		for _, f := range r.Found {
			where := "found in its room only"
			if f.Open {
				where = "found in the whole account"
			}
			fmt.Fprintf(e.stdout, "%s  %s of %s in %s by %s (%s), %s\n    %s\n", f.Name, f.Kind, f.At.UTC().Format(time.RFC3339),
				f.Thread.Key(), printable(f.Author.ID), f.Role, where, strings.ReplaceAll(printable(f.Text), "\n", "\n    "))
		}
		return nil
	})
}

type memoryStatsCmd struct {
	JSON bool `help:"One JSON object a line."`
}

// Run measures every index.
func (c memoryStatsCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	return memoryCmd{}.with(ctx, e, s, true, func(m *memory.Memory) error {
		names, err := m.Accounts(ctx)
		if err != nil {
			return err
		}
		var all []memory.Stats
		for _, name := range names {
			one, err := m.Stats(ctx, name)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		if c.JSON {
			return jsonLines(e.stdout, all)
		}
		w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "ACCOUNT\tEMBEDDER\tDIMENSION\tITEMS\tNOTES\tNO VECTOR\tBYTES\tIN MEMORY\tP50\tP99")
		for _, o := range all {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%v\t%v\n", o.Account, o.Embedder, o.Dimension, o.Items, o.Notes, o.Bare,
				o.Stored, o.InMemory, o.Median.Round(time.Microsecond), o.P99.Round(time.Microsecond))
		}
		return w.Flush()
	})
}

type memoryForgetCmd struct {
	Account string   `required:"" help:"Whose memory: slack/T01." placeholder:"CHANNEL/ACCOUNT"`
	Names   []string `arg:"" help:"What to delete."`
}

// Run deletes.
func (c memoryForgetCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	return memoryCmd{}.with(ctx, e, s, false, func(m *memory.Memory) error {
		if err := m.Forget(ctx, c.Account, c.Names...); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.stdout, "%d forgotten; the conversations themselves stay\n", len(c.Names))
		return err
	})
}

type memoryReindexCmd struct {
	Again bool `help:"Also what this embedder made already: the model behind the name has changed."`
}

// Run embeds all accounts again.
func (c memoryReindexCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	return memoryCmd{}.with(ctx, e, s, false, func(m *memory.Memory) error {
		names, err := m.Accounts(ctx)
		if err != nil {
			return err
		}
		for _, name := range names {
			total := 0
			if err := m.Reindex(ctx, name, c.Again, func(done int) { total = done }); err != nil {
				return fmt.Errorf("%s, after %d items (repeat the command to go on): %w", name, total, err)
			}
			fmt.Fprintf(e.stdout, "%s: %d items embedded by %s\n", name, total, m.Embedder.Name())
		}
		return nil
	})
}
