package turn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness"
	"github.com/heddlehq/heddle/harness/record"
	"github.com/heddlehq/heddle/state"
)

// dispatched records a text for a conversation and puts what admits it into the
// outbox of the same commit. Its event has the id of the post, so that it is heard
// once, however often it is delivered. The last part of the id is the place of the
// record in its log: a callback may run twice in a step.
func (r *run) dispatched(turn string, n int, m harness.Message) {
	key := fmt.Sprintf("%s/%d/%s/%d", turn, n, digest([]byte(m.Call)), r.f.Seq+1)
	r.add(record.Dispatched{Turn: turn, Step: n, Call: m.Call, Key: key, To: m.To, Text: m.Text})
	text, err := json.Marshal(state.Admit{Agent: r.conv.Agent, Event: chat.Event{
		ID: "dispatch/" + key, Thread: m.To, Kind: chat.Message, Topic: "dispatch", Text: m.Text,
		Author: chat.Author{ID: string(r.conv.ID), Account: chat.ConversationAccount},
		Facts:  map[string]string{record.FactTrust: m.Trust.String(), record.FactHops: strconv.Itoa(m.Hops)},
	}})
	if err != nil {
		r.err = errors.Join(r.err, err)
		return
	}
	r.batch.Posts = append(r.batch.Posts, chat.Post{
		Key: key, Thread: chat.Thread{Channel: chat.ToConversation, Account: string(r.conv.ID)}, Text: string(text),
	})
}

// carried is the role of what another conversation has sent.
func carried(e chat.Event) chat.Role {
	role := chat.Outsider
	_ = role.UnmarshalText([]byte(e.Facts[record.FactTrust])) // else it stays the weakest
	return role
}
