package slack

import (
	"testing"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

func TestOpened(t *testing.T) {
	t.Parallel()
	var c channels.Opener = &Channel{}
	for at, want := range map[string]string{
		"slack/T1/C1": "slack/T1/C1/7.1", "slack/T1/G1": "slack/T1/G1/7.1", "slack/T1/C1/5.1": "slack/T1/C1/5.1", "slack/T1/D1": "slack/T1/D1/",
	} {
		thread, err := chat.ParseThread(at)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Opened(chat.Post{Thread: thread, Open: true}, "7.1").Key(); got != want {
			t.Errorf("a post to %s opens %s, want %s", at, got, want)
		}
	}
}
