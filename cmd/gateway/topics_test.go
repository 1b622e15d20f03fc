package main

import "testing"

func TestIsTopic(t *testing.T) {
	t.Parallel()
	topics := []string{"slack.mention", "slack.*", "stripe.TYPE", "stripe.*"}
	for on, want := range map[string]bool{
		"slack.mention": true, "slack.*": true, "slack.shout": false, "slack.mention.x": false, "slack.": false,
		"stripe.invoice.paid": true, "stripe.invoice.*": true, "stripe.*": true, "stripe.TYPE": true, "stripe.": false, "stripe": false,
		"stripe.invoice.*.x": false, "stripe.a b": false, "*": false, "": false, "stripes.x": false,
	} {
		if got := isTopic(topics, on); got != want {
			t.Errorf("%q: %v, want %v", on, got, want)
		}
	}
}
