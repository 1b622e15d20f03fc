package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/model"
)

func TestFitThinking(t *testing.T) {
	t.Parallel()
	tests := []struct {
		has        string
		want, gets model.Thinking
	}{
		{"off low medium high", model.ThinkOff, model.ThinkOff},
		{"off low medium high", model.ThinkHigh, model.ThinkHigh},
		{"off low medium high", "", ""},
		{"low medium high", model.ThinkOff, model.ThinkLow},
		{"low high", model.ThinkMedium, model.ThinkLow},
		{"medium high", model.ThinkLow, model.ThinkMedium},
		{"off", model.ThinkHigh, model.ThinkOff},
		{"", model.ThinkHigh, ""},
		{"low", "enormous", model.ThinkLow},
	}
	for _, tt := range tests {
		if got := (model.Spec{Thinking: tt.has}).Fit(model.Request{Thinking: tt.want}).Thinking; got != tt.gets {
			t.Errorf("%q of %q: %q, want %q", tt.want, tt.has, got, tt.gets)
		}
	}
}

func TestFitImages(t *testing.T) {
	t.Parallel()
	image := model.Part{Kind: model.Image, Media: "image/png", Data: []byte("x")}
	text := func(s string) model.Part { return model.Part{Kind: model.Text, Text: s} }
	talk := func(p model.Part) []model.Message {
		return []model.Message{
			{Role: model.User, Parts: []model.Part{text("look"), p}},
			{Role: model.Assistant, Parts: []model.Part{text("I look.")}},
			{Role: model.Results, Parts: []model.Part{{Kind: model.Result, CallID: "c"}, p}},
		}
	}
	in := model.Request{Messages: talk(image)}
	if d := cmp.Diff(talk(text(model.NoImages)), (model.Spec{}).Fit(in).Messages); d != "" {
		t.Errorf("without images (-want +got):\n%s", d)
	}
	if d := cmp.Diff(talk(image), in.Messages); d != "" {
		t.Errorf("the request itself was changed:\n%s", d)
	}
	if d := cmp.Diff(talk(image), (model.Spec{Images: true}).Fit(in).Messages); d != "" {
		t.Errorf("with images (-want +got):\n%s", d)
	}
}
