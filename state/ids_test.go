package state_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// TestIDsNeverMove holds keys and ids to what the first version made: whoever
// changes one loses every conversation and posts everything twice.
func TestIDsNeverMove(t *testing.T) {
	t.Parallel()
	for key, c := range map[string]struct {
		thread chat.Thread
		id     state.ID
		turn   string
		post   string
	}{
		"slack/T01/C02/1721.0001": {
			chat.Thread{Channel: "slack", Account: "T01", Room: "C02", Root: "1721.0001"},
			"c6hnfkst64367c6v7xzflz7hhqa", "tf7xcoeii5m7ddnnaonapepsyaa", "tf7xcoeii5m7ddnnaonapepsyaa/3/1",
		},
		"slack/T01/D02/": {
			chat.Thread{Channel: "slack", Account: "T01", Room: "D02", Root: ""},
			"chnldzio7vqokhcmampsrzibeqi", "tvzhi3sgtvkaa2q4mubtjkwqeaq", "tvzhi3sgtvkaa2q4mubtjkwqeaq/3/1",
		},
		"discord/11/22/33": {
			chat.Thread{Channel: "discord", Account: "11", Room: "22", Root: "33"},
			"cc7inf7i26zdkeggtwq75hvgj4a", "ttqb62u4vgxkvizw774jaj3jezq", "ttqb62u4vgxkvizw774jaj3jezq/3/1",
		},
		"github/123456//issues%2F42": {
			chat.Thread{Channel: "github", Account: "123456", Room: "", Root: "issues/42"},
			"contgs5q5eiewrun2lia7hm4xba", "tdiahgeh6ou6pn7aurgyf23hgx4", "tdiahgeh6ou6pn7aurgyf23hgx4/3/1",
		},
		"stripe/acct_1%2Ftest//cus_9%20x": {
			chat.Thread{Channel: "stripe", Account: "acct_1/test", Room: "", Root: "cus_9 x"},
			"cmvfay6fgfznindu5xv4ok7xkiy", "tw45jw2cleynmuravkkgzs7mvvi", "tw45jw2cleynmuravkkgzs7mvvi/3/1",
		},
		"api/assistant/%C3%A4%25/": {
			chat.Thread{Channel: "api", Account: "assistant", Room: "ä%", Root: ""},
			"co47psicsyry4ogtvand4dhtpc4", "t2vz2qstzjqlf6bigzstev5fhkq", "t2vz2qstzjqlf6bigzstev5fhkq/3/1",
		},
	} {
		id := state.ConversationID("assistant", c.thread)
		turn := state.TurnID(id, 7)
		got := [4]string{c.thread.Key(), string(id), turn, state.PostKey(turn, 3, 1)}
		want := [4]string{key, string(c.id), c.turn, c.post}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", key, d)
		}
		if back, err := chat.ParseThread(key); err != nil || back != c.thread {
			t.Errorf("%s is read as %+v, %v", key, back, err)
		}
	}
	thread := chat.Thread{Channel: "slack", Account: "T01"}
	if state.ConversationID("assistant", thread) == state.ConversationID("billing", thread) {
		t.Error("two agents have one id")
	}
}

func TestHeldUntil(t *testing.T) {
	t.Parallel()
	first := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{0: 1, 3: 4, 4: 5, 9: 5} {
		if got := state.HeldUntil(first.Add(after*time.Second), first, time.Second).Sub(first); got != want*time.Second {
			t.Errorf("after %d s it is held until %v, want %d s", after, got, want)
		}
	}
}
