package scripted_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heddlehq/heddle/model"
	"github.com/heddlehq/heddle/model/scripted"
)

func ask(ctx context.Context, p *scripted.Provider, text string) (model.Response, error) {
	r := model.Request{Model: "m", Messages: []model.Message{{Role: model.User, Parts: []model.Part{{Kind: model.Text, Text: text}}}}}
	return p.Stream(ctx, r, nil)
}

func TestSteps(t *testing.T) {
	t.Parallel()
	p := scripted.New(
		scripted.Say("hello"),
		scripted.Call("bash", `{"command":"ls"}`),
		scripted.Answer(model.Part{Kind: model.Text, Text: "two"}, scripted.ToolCall("a", ""), scripted.ToolCall("b", "{")),
		scripted.Fault(model.Limited, time.Second),
		scripted.Fault(model.Overflow, 0),
	)
	ctx := context.Background()
	if got, err := ask(ctx, p, "1"); err != nil || got.Parts[0].Text != "hello" || got.Stop != model.StopEnd || got.Model != "m" || got.ID == "" || got.Raw == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ask(ctx, p, "2"); err != nil || got.Stop != model.StopTools || got.Parts[0].CallID != "call_1" || string(got.Parts[0].Args) != `{"command":"ls"}` {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ask(ctx, p, "3"); err != nil || got.Parts[1].CallID != "call_1" || got.Parts[2].CallID != "call_2" || got.Parts[2].BadArgs != "{" {
		t.Errorf("%+v, %v", got, err)
	}
	var e *model.Error
	if _, err := ask(ctx, p, "4"); !errors.As(err, &e) || e.Fault != model.Limited || e.RetryAfter != time.Second || e.Provider != "scripted" || e.Model != "m" {
		t.Errorf("%v", err)
	}
	if _, err := ask(ctx, p, "5"); !errors.As(err, &e) || e.Fault != model.Overflow {
		t.Errorf("%v", err)
	}
	if _, err := ask(ctx, p, "6"); !errors.As(err, &e) || e.Code != "script_over" {
		t.Errorf("%v", err)
	}
	if seen := p.Requests(); len(seen) != 6 || seen[2].Messages[0].Parts[0].Text != "3" {
		t.Errorf("%d requests were kept: %+v", len(seen), seen)
	}
}

func TestPlayPaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := scripted.Play(scripted.Say("one two three"), time.Second)
		var words []string
		start := time.Now()
		_, err := p.Stream(t.Context(), model.Request{}, func(d model.Delta) { words = append(words, d.Text) })
		if err != nil || strings.Join(words, "|") != "one |two |three" || time.Since(start) != 3*time.Second {
			t.Errorf("%q after %s: %v", words, time.Since(start), err)
		}
	})
}

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		p := scripted.New(scripted.Until(open, scripted.Say("a")), scripted.Until(open, scripted.Say("b")))
		lost := errors.New("lease lost")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(lost) })
		var e *model.Error
		if _, err := ask(ctx, p, ""); !errors.As(err, &e) || e.Fault != model.Canceled || !errors.Is(err, lost) {
			t.Errorf("%v", err)
		}
		time.AfterFunc(time.Second, func() { close(open) })
		if got, err := ask(t.Context(), p, ""); err != nil || got.Parts[0].Text != "b" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// TestGivenUp: a step that does not look at its context is cut off after it.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var e *model.Error
	if _, err := ask(ctx, scripted.New(scripted.Say("a")), ""); !errors.As(err, &e) || e.Fault != model.Canceled {
		t.Errorf("%v", err)
	}
}
