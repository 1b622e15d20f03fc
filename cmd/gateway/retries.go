package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/heddlehq/heddle/config"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

type retriesCmd struct {
	ID    string `arg:"" optional:"" help:"Id of a conversation, or its thread key; all conversations if there is none."`
	Class string `default:"any" enum:"any,transient,rate limited,invalid arguments,permission,not found,context overflow,outcome unknown,deterministic bug,budget,crash" help:"Only those of one class: ${enum}."`
	JSON  bool   `help:"One JSON object a retry, and one with the sums."`
}

// tried is a retry and its conversation.
type tried struct {
	Conversation state.ID `json:"conversation"`
	record.Retry
}

// triedSum sums retries up.
type triedSum struct {
	Retries int           `json:"retries"`
	Wait    time.Duration `json:"wait_ns"`
	Took    time.Duration `json:"took_ns"`
	Cost    float64       `json:"cost"` // US dollars
}

// Run lists retries.
func (c retriesCmd) Run(ctx context.Context, e env, s *config.Settings) (err error) {
	st, err := openStore(ctx, s, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	var all []tried
	add := func(v state.View) error {
		rs, err := record.Retries(v.Records)
		if err != nil {
			return fmt.Errorf("conversation %s: %w", v.Conversation.ID, err)
		}
		for _, r := range rs {
			if c.Class == "any" || string(r.Class) == c.Class {
				all = append(all, tried{v.Conversation.ID, r})
			}
		}
		return nil
	}
	if c.ID != "" {
		v, err := viewOf(ctx, st, c.ID)
		if err != nil {
			return err
		}
		if err := add(v); err != nil {
			return err
		}
	} else if err := eachView(ctx, st, add); err != nil {
		return err
	}
	return c.show(e, all)
}

// eachView reads every conversation, the latest first.
func eachView(ctx context.Context, st state.Store, f func(state.View) error) error {
	const page = 100
	seen := map[state.ID]bool{}
	for before := (time.Time{}); ; {
		cs, err := st.Conversations(ctx, before, page)
		if err != nil {
			return err
		}
		more := false
		for _, c := range cs {
			if seen[c.ID] {
				continue
			}
			seen[c.ID], more = true, true
			v, err := st.Load(ctx, c.ID, 0)
			if err != nil {
				return err
			}
			if err := f(v); err != nil {
				return err
			}
		}
		if !more || len(cs) < page {
			return nil
		}
		before = cs[len(cs)-1].UpdatedAt.Add(1) // others may have the same time
	}
}

func (c retriesCmd) show(e env, all []tried) error {
	var sum triedSum
	for _, r := range all {
		sum.Retries++
		sum.Wait += r.Wait
		sum.Took += r.Took
		sum.Cost += r.Cost
	}
	if c.JSON {
		if err := jsonLines(e.stdout, all); err != nil {
			return err
		}
		return jsonLines(e.stdout, []triedSum{sum})
	}
	w := tabwriter.NewWriter(e.stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "CONVERSATION\tRECORD\tSTEP\tTRY\tCLASS\tWHAT\tWAITED\tTOOK\tCOST\tVERSION\tRESULT")
	for _, r := range all {
		what := strings.TrimSpace(r.Asked + r.Tool + " " + string(r.Fault) + " " + r.Code)
		if r.Status != 0 {
			what += fmt.Sprintf(" (%d)", r.Status)
		}
		if r.Next != "" {
			what += ", then " + r.Next
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%s\t%v\t%v\t$%.4f\t%s\t%s\n", r.Conversation, r.Record, r.Step, r.Try, r.Class,
			printable(what), r.Wait.Round(time.Millisecond), r.Took.Round(time.Millisecond), r.Cost, printable(r.Version), r.Result)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "%s: waited %v, took %v, cost $%.4f\n", count(sum.Retries, "retry", "retries"), sum.Wait.Round(time.Millisecond), sum.Took.Round(time.Millisecond), sum.Cost)
	return err
}
