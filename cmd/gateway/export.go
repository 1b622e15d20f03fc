package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// exportFormat is the version of the form of an exported log.
const exportFormat = 1

// exportHead is the first line of an exported log.
type exportHead struct {
	Format       int         `json:"format"`
	Conversation state.ID    `json:"conversation"`
	Agent        string      `json:"agent"`
	Thread       chat.Thread `json:"thread"`
	CreatedAt    time.Time   `json:"created_at"`
	Records      int         `json:"records"`
	Chain        string      `json:"chain"` // of the whole log, see record.Link
}

// exportLine is one record of it.
type exportLine struct {
	Seq   int64           `json:"seq"`
	At    time.Time       `json:"at"`
	Kind  string          `json:"kind"`
	Chain string          `json:"chain"` // of the log up to this record, see record.Link
	Data  json.RawMessage `json:"data"`
	// Exact is the data byte for byte, when it holds what no terminal should get.
	Exact []byte `json:"exact,omitempty"`
}

type exportCmd struct {
	ID string `arg:"" help:"Id of the conversation, or its thread key."`
}

// Run writes the log as JSON lines.
func (c exportCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	v, err := viewOf(ctx, st, c.ID)
	if err != nil {
		return err
	}
	return exportLog(e.stdout, v)
}

func exportLog(out io.Writer, v state.View) error {
	lines := make([]exportLine, 0, len(v.Records))
	chain := ""
	for _, r := range v.Records {
		chain = record.Link(chain, r)
		l := exportLine{Seq: r.Seq, At: r.At, Kind: r.Kind, Chain: chain, Data: escaped(r.Data)}
		if !bytes.Equal(l.Data, r.Data) {
			l.Exact = r.Data
		}
		lines = append(lines, l)
	}
	head := exportHead{
		Format: exportFormat, Conversation: v.Conversation.ID, Agent: v.Conversation.Agent, Thread: v.Conversation.Thread,
		CreatedAt: v.Conversation.CreatedAt, Records: len(lines), Chain: chain,
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // it would change the data
	if err := enc.Encode(head); err != nil {
		return err
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("record %d: %w", l.Seq, err)
		}
	}
	return w.Flush()
}

// escaped is JSON in which no rune is left that a terminal could take for a command.
func escaped(data []byte) []byte {
	if string(data) == printable(string(data)) {
		return data
	}
	var b strings.Builder
	for _, r := range string(data) {
		switch {
		case printable(string(r)) == string(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}

// importLog reads an exported log and checks that every line of it is whole.
func importLog(in io.Reader) (state.View, error) {
	var v state.View
	var head exportHead
	dec := json.NewDecoder(in)
	if err := dec.Decode(&head); err != nil {
		return v, fmt.Errorf("no exported log: %w", err)
	}
	if head.Format != exportFormat {
		return v, fmt.Errorf("no exported log of format %d: found %d", exportFormat, head.Format)
	}
	v.Conversation = state.Conversation{ID: head.Conversation, Agent: head.Agent, Thread: head.Thread, CreatedAt: head.CreatedAt, Seq: int64(head.Records)}
	chain := ""
	for n := int64(1); dec.More(); n++ {
		var l exportLine
		if err := dec.Decode(&l); err != nil {
			return v, fmt.Errorf("record %d: %w", n, err)
		}
		r := state.Record{Seq: l.Seq, At: l.At, Kind: l.Kind, Data: l.Data}
		if l.Exact != nil {
			r.Data = l.Exact
		}
		chain = record.Link(chain, r)
		switch {
		case l.Seq != n:
			return v, fmt.Errorf("record %d stands where record %d should: one is missing or was moved", l.Seq, n)
		case l.Exact != nil && !bytes.Equal(escaped(l.Exact), l.Data):
			return v, fmt.Errorf("record %d: its data and its exact data differ", n)
		case chain != l.Chain:
			return v, fmt.Errorf("record %d is not what was exported", n)
		}
		v.Records = append(v.Records, r)
	}
	if len(v.Records) != head.Records || chain != head.Chain {
		return v, fmt.Errorf("the log was cut: %d records of %d are there", len(v.Records), head.Records)
	}
	return v, nil
}

// openLog reads a log from a file that was exported, or from the store.
func openLog(ctx context.Context, s *config.Settings, ref string) (v state.View, err error) {
	f, err := os.Open(ref)
	if err == nil {
		defer func() { err = errors.Join(err, f.Close()) }()
		if v, err = importLog(f); err != nil {
			return v, fmt.Errorf("%s: %w", ref, err)
		}
		return v, nil
	}
	st, err := openStore(ctx, s, true)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return viewOf(ctx, st, ref)
}

type verifyCmd struct {
	Log   string `arg:"" help:"Id of a conversation, its thread key, or a file that was exported."`
	Known string `placeholder:"CHAIN" help:"A value that was kept elsewhere: the chain of a log line 'turn settled', or that of an export. The log must still contain what it stands for."`
	JSON  bool   `help:"One JSON object."`
}

// Run checks one log.
func (c verifyCmd) Run(ctx context.Context, e env, s *config.Settings) error {
	v, err := openLog(ctx, s, c.Log)
	if err != nil {
		return err
	}
	a, err := record.Verify(v.Records)
	if err != nil {
		return fmt.Errorf("conversation %s: %w", v.Conversation.ID, err)
	}
	if c.Known != "" && !slices.Contains(a.Links, c.Known) {
		return fmt.Errorf("conversation %s: the log does not go on from what the value %q stands for", v.Conversation.ID, c.Known)
	}
	if c.JSON {
		type found struct {
			Conversation state.ID `json:"conversation"`
			record.Audit
			Chain string `json:"chain"`
		}
		return jsonLines(e.stdout, []found{{v.Conversation.ID, a, a.Last()}})
	}
	_, err = fmt.Fprintf(e.stdout, "conversation %s is as it was written: %s, of which all but the last %d are vouched for by %s\nchain %s\n",
		v.Conversation.ID, count(a.Records, "record", "records"), a.NotSure, count(a.Checked, "end of a turn", "ends of turns"), a.Last())
	return err
}
