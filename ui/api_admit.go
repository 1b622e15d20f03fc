package ui

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// author is whoever holds a token.
var author = chat.Author{ID: "api", Account: chat.APIAccount}

// topics are the ways to steer a conversation.
var topics = []string{chat.Abort, chat.Pause, chat.Resume, chat.Step, chat.SetPolicy}

// admitTime bounds the wait for the store.
const admitTime = 5 * time.Second

// An admitted is the answer to what was admitted: the event is on disk.
type admitted struct {
	Conversation state.ID `json:"conversation"`
	Channel      string   `json:"channel"`
	Event        string   `json:"event"`
	Status       string   `json:"status"` // "admitted", or "duplicate" of what had the same key
}

// send starts or continues a conversation.
func (a *API) send(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Text   string          `json:"text"`
		Data   json.RawMessage `json:"data"`
		Result json.RawMessage `json:"result"`
		Key    string          `json:"key"`
		Files  []attached      `json:"files"`
	}
	t, err := a.target(r)
	if err != nil {
		return err
	}
	if err := readUpTo(w, r, maxMessage, &b); err != nil {
		return err
	}
	if len(b.Text)+len(b.Data)+len(b.Result) > maxBody-1024 { // the rest is for names
		return fail(tooLarge, "the message is too large without its files")
	}
	e := chat.Event{Kind: chat.Message, Topic: "message", Text: b.Text, Data: canonical(b.Data), Want: canonical(b.Result)}
	switch {
	case strings.TrimSpace(e.Text) == "" && e.Data == nil && len(b.Files) == 0:
		return fail(badRequest, "neither text nor data nor files")
	case e.Want != nil && e.Want[0] != '{':
		return fail(badRequest, "result is no JSON Schema: want an object")
	}
	_, err = a.Store.Find(r.Context(), t.thread)
	first := errors.Is(err, state.ErrNotFound)
	if err != nil && !first {
		return err
	}
	e.Thread = t.thread
	if a.Fits(t.agent, e, first) != nil { // why would show the data
		e.Want = nil
		if a.Fits(t.agent, e, first) != nil {
			return fail(badRequest, "data is not what the agent begins with")
		}
		return fail(badRequest, "result is no JSON Schema that can be used")
	}
	if e.Files, err = a.attach(r.Context(), t.thread, b.Files); err != nil {
		return err
	}
	return a.admit(w, r, t, e, b.Key)
}

// control makes the handler that admits one way to steer.
func (a *API) control(topic string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var b struct {
			Turn   string `json:"turn"`
			Policy string `json:"policy"` // "" for that of the route
			Key    string `json:"key"`
		}
		t, err := a.existing(r)
		if err != nil {
			return err
		}
		if err := read(w, r, &b); err != nil {
			return err
		}
		switch {
		case b.Turn != "" && (topic != chat.Abort || !isTurn.MatchString(b.Turn)):
			return fail(badRequest, "turn is for abort and names a turn of the conversation")
		case b.Policy != "" && (topic != chat.SetPolicy || new(chat.Policy).UnmarshalText([]byte(b.Policy)) != nil):
			return fail(badRequest, "policy is for the path policy: join, queue, steer, replace, drop, or nothing for the route's")
		}
		e := chat.Event{Kind: chat.Control, Topic: topic, Text: b.Turn + b.Policy} // at most one of them
		return a.admit(w, r, t, e, b.Key)
	}
}

var (
	isTurn = regexp.MustCompile(`^t[a-z2-7]{26}$`)
	isKey  = regexp.MustCompile(`^[A-Za-z0-9._~:-]{1,128}$`)
)

// admit stores the event and answers when it is on disk. A key is for one
// event of a channel: again with the same content it does nothing and gets the
// same answer.
func (a *API) admit(w http.ResponseWriter, r *http.Request, t target, e chat.Event, key string) error {
	if key == "" {
		key = rand.Text()
	}
	if !isKey.MatchString(key) {
		return fail(badRequest, "a key has 1 to 128 letters, digits and . _ ~ : -")
	}
	e.ID, e.Thread, e.Author = "api:"+key, t.thread, author
	got, err := a.store(r.Context(), t.agent, e)
	if err != nil {
		return err
	}
	status := "admitted"
	if got.Status == state.Duplicate {
		status = "duplicate"
	}
	w.Header().Set("Location", "/api/v1/events/"+url.PathEscape(e.Thread.Channel)+"/"+url.PathEscape(e.ID))
	return reply(w, http.StatusAccepted, admitted{got.Conversation, e.Thread.Channel, e.ID, status})
}

// store admits the event.
func (a *API) store(ctx context.Context, agent string, e chat.Event) (state.Admission, error) {
	// Who hangs up does not undo it: the answer to the next try is the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), admitTime)
	defer cancel()
	out, err := a.Store.Admit(ctx, []state.Admit{{Event: e, Agent: agent}})
	switch {
	case err != nil:
		a.Logger.Error("event not admitted", "channel", e.Thread.Channel, "event", e.ID, "err", err)
		return state.Admission{}, fail(storeFailed, "the event is not stored")
	case out[0].Conflict:
		return state.Admission{}, fail(keyUsed, "the key was used for something else")
	}
	return out[0], nil
}

// canonical is JSON that is equal for equal values, whatever the order of
// names and the blanks; nil for null and for nothing. The value is valid JSON.
func canonical(v json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	var any any
	if d.Decode(&any) != nil || any == nil {
		return nil
	}
	data, err := json.Marshal(any)
	if err != nil {
		return nil // unreachable: it has been decoded
	}
	return data
}
