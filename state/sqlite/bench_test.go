package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/sqlite"
)

// BenchmarkTurn is what one mention in a new thread costs the store, with 16
// of them under way: Admit, Claim, Load, Commit, ClaimPosts, SettlePost.
func BenchmarkTurn(b *testing.B) {
	b.Run("new threads", func(b *testing.B) {
		benchmarkTurn(b, func(n int64) string { return fmt.Sprintf("1721%06d.000100", n) })
	})
	b.Run("1000 threads", func(b *testing.B) {
		benchmarkTurn(b, func(n int64) string { return fmt.Sprintf("1721%06d.000100", n%1000) })
	})
}

func benchmarkTurn(b *testing.B, root func(n int64) string) {
	ctx := b.Context()
	s, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "heddle.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(8) // times two processors
	before := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := next.Add(1)
			if err := benchTurn(ctx, s, n, root(n)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// processorTime is what this process has used, the caller's own work included.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchTurn(ctx context.Context, s state.Store, n int64, root string) error {
	ts := fmt.Sprintf("1721%06d.000200", n)
	_, err := s.Admit(ctx, []state.Admit{{Agent: "assistant", Event: chat.Event{
		ID: fmt.Sprintf("Ev0%09d", n), Same: "T01/C02/" + ts,
		Thread: chat.Thread{Channel: "slack", Account: "T01", Room: "C02", Root: root},
		Kind:   chat.Mention, Topic: "mention", Ref: ts, Author: chat.Author{ID: "U01", Account: "T01", Name: "Ann"},
		Text: "please look at the failing build of the main branch and say what broke it", At: time.Unix(1721000000, 0).UTC(),
	}}})
	if err != nil {
		return err
	}
	l, err := s.Claim(ctx, "worker", time.Minute)
	if err != nil {
		return err
	}
	v, err := s.Load(ctx, l.Conversation.ID, max(l.Conversation.Seq-20, 0))
	if err != nil {
		return err
	}
	turn := state.TurnID(l.Conversation.ID, v.Inbox[0].Seq)
	var records []state.Record
	for _, kind := range []string{"heard", "manifest", "said", "settled"} {
		records = append(records, state.Record{Kind: kind, Data: record})
	}
	_, err = s.Commit(ctx, l, state.Batch{
		Records: records, Taken: v.Inbox[len(v.Inbox)-1].Seq, Release: true,
		Posts: []chat.Post{{Key: state.PostKey(turn, 1, 0), Thread: l.Conversation.Thread, Text: string(record)}},
	})
	if err != nil {
		return err
	}
	posts, err := s.ClaimPosts(ctx, "worker", 1, time.Minute)
	if err != nil {
		return err
	}
	for _, p := range posts {
		if err := s.SettlePost(ctx, p, state.Outcome{State: state.Sent, Ref: ts}); err != nil {
			return err
		}
	}
	return nil
}

var record = []byte(`{"turn":"tabcdefghijklmnopqrstuvwxyz/1","text":"` + fmt.Sprintf("%0400d", 0) + `"}`)

// BenchmarkBulk is how long others wait for what writes much at once: a
// thousand values of 4 KiB, and a fork of 10 000 records.
func BenchmarkBulk(b *testing.B) {
	ctx := b.Context()
	s, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "heddle.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.Run("values", func(b *testing.B) {
		vs := make([]state.Value, 1000)
		for n := 0; b.Loop(); n++ {
			for i := range vs {
				vs[i] = state.Value{Key: fmt.Sprintf("note %06d", (n*len(vs)+i)%100_000), Data: make([]byte, 4096)}
			}
			if err := s.PutValues(ctx, "memory/slack/T01", vs...); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if vs, err := s.ListValues(ctx, "memory/slack/T01", "", 1000); err != nil || len(vs) != 1000 {
				b.Fatal(len(vs), err)
			}
		}
	})
	b.Run("fork", func(b *testing.B) {
		thread := chat.Thread{Channel: "slack", Account: "T01", Root: "long"}
		_, err := s.Admit(ctx, []state.Admit{{Agent: "assistant", Event: chat.Event{ID: "long", Thread: thread}}})
		if err != nil {
			b.Fatal(err)
		}
		l, err := s.Claim(ctx, "worker", time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		records := make([]state.Record, 10_000)
		for i := range records {
			records[i] = state.Record{Kind: "said", Data: record}
		}
		if l, err = s.Commit(ctx, l, state.Batch{Records: records}); err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			thread.Root = fmt.Sprint("fork ", n)
			if _, err := s.Fork(ctx, l.Conversation.ID, l.Conversation.Seq, "assistant", thread); err != nil {
				b.Fatal(err)
			}
		}
	})
}
