package script_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model/script"
)

// play has a conversation with a fresh player for every line, so that nothing
// but the conversation says where the script is.
func play(t *testing.T, text string, users ...string) (said []string) {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var talk []script.Message
	for _, u := range users {
		talk = append(talk, script.Message{Role: "user", Text: u})
		for {
			l, ok, err := script.NewPlayer(s).Next(context.Background(), talk)
			if err != nil || !ok {
				t.Fatalf("after %v: %v, %v", talk, ok, err)
			}
			said = append(said, l.Say)
			talk = append(talk, script.Message{Role: "assistant", Text: l.Say})
			if l.Calls == nil {
				break
			}
			talk = append(talk, script.Message{Role: "results", Text: "ran " + l.Calls[0].Name})
			talk = append(talk, script.Message{Role: "user", Text: "<announcement>"})
		}
	}
	return said
}

func TestPlay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		users, want  []string
	}{
		{"in order", "say: one\nsay: two", []string{"a", "b"}, []string{"one", "two"}},
		{"calls go on", "say: let me\nand call: bash {}\nsay: {result}\nsay: three", []string{"a", "b"}, []string{"let me", "ran bash", "three"}},
		{"scenes", "when \"x\"\nsay: x1\nand call: a\nsay: x2 {result}\nwhen \"y\"\nsay: y1", []string{"y", "an x", "y y", "x"}, []string{"y1", "x1", "x2 ran a", "y1", "x1", "x2 ran a"}},
		{"before any scene", "say: start\nwhen \"x\"\nsay: x1", []string{"a", "x"}, []string{"start", "x1"}},
		{"two lines of text", "say: a\nand say: b", []string{"hi"}, []string{"a\nb"}},
		{"comments and blanks", "# c\n\n  say: a  ", []string{"hi"}, []string{"a"}},
		{"the user's words", "when \"\"\nsay: you: {user}", []string{"one", "two"}, []string{"you: one", "you: two"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, play(t, tt.script, tt.users...)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestOnce(t *testing.T) {
	t.Parallel()
	s, err := script.Parse("fault: limited 1s\nfault: transient\nsay: a\nsay: half\nand fault: truncated\nsay: b\nfault: denied")
	if err != nil {
		t.Fatal(err)
	}
	p := script.NewPlayer(s)
	talk := []script.Message{{Role: "user", Text: "hi"}}
	next := func() script.Line {
		t.Helper()
		l, ok, err := p.Next(context.Background(), talk)
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		return l
	}
	want := []script.Line{{Fault: "limited", After: time.Second}, {Fault: "transient"}, {Say: "a"}, {Say: "a"}}
	for _, w := range want {
		if d := cmp.Diff(w, next()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	talk = append(talk, script.Message{Role: "assistant", Text: "a"})
	for _, w := range []script.Line{{Say: "half", Fault: "truncated"}, {Say: "b"}} {
		if d := cmp.Diff(w, next()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	talk = append(talk, script.Message{Role: "assistant", Text: "b"})
	if l := next(); l.Fault != "denied" {
		t.Errorf("%+v", l)
	}
	if l, ok, _ := p.Next(context.Background(), talk); ok {
		t.Errorf("the script is over, got %+v", l)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := script.Parse("wait\nsay: a")
		if err != nil {
			t.Fatal(err)
		}
		p := script.NewPlayer(s)
		said := make(chan string, 1)
		go func() {
			l, _, _ := p.Next(t.Context(), nil)
			said <- l.Say
		}()
		if err := p.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(said) != 0 {
			t.Fatal("it did not wait")
		}
		if err := p.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-said; got != "a" {
			t.Errorf("said %q", got)
		}

		p = script.NewPlayer(s)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := p.Next(ctx, nil); err != context.DeadlineExceeded {
			t.Errorf("want the context's end, got %v", err)
		}
		if err := p.Release(ctx); err != context.DeadlineExceeded {
			t.Errorf("nobody waits, got %v", err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"say: a\nshout: b":  "script line 2",
		"and say: a":        "nothing before",
		"when deploy":       "want when",
		"when \"(\"":        "pattern",
		"fault: tired":      "want one of transient limited",
		"fault: limited 1x": "fault limited",
		"call:":             "want call",
	} {
		if _, err := script.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
