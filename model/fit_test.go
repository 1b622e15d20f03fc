package model_test

import (
	"testing"

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
	for _, sees := range []bool{false, true} {
		if got := (model.Spec{Images: sees}).Fit(model.Request{}).Blind; got != !sees {
			t.Errorf("sees %v: blind %v", sees, got)
		}
	}
}
