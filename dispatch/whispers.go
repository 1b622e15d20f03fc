package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

const (
	mostWhispers = 100              // that wait; more are not made
	whisperTime  = 10 * time.Second // of one request
	whisperEvery = time.Hour        // in which one person is told once in one room
	whisperSpace = "whispers"       // who was told, by room and person
)

// whispers are what single people are to be told.
type whispers struct {
	to    map[string]channels.Whisperer
	queue chan whisper
}

type whisper struct {
	event chat.Event
	text  string
}

// Refused tells the author of an event why they are not answered: only them, once
// an hour in each room, and not at all in channels that cannot. It returns at once.
func (s *Signs) Refused(e chat.Event, text string) {
	if s.whispers.to[e.Thread.Channel] == nil || e.Author.ID == "" {
		return // the log tells
	}
	select {
	case s.whispers.queue <- whisper{e, text}:
	default:
		s.log.Warn("refusal not told", "channel", e.Thread.Channel, "event", e.ID, "err", "too many at once")
	}
}

// whisper tells people until ctx ends.
func (s *Signs) whisper(ctx context.Context) {
	for {
		select {
		case w := <-s.whispers.queue:
			s.tell(ctx, w)
		case <-ctx.Done():
			return
		}
	}
}

func (s *Signs) tell(ctx context.Context, w whisper) {
	ctx, cancel := context.WithTimeout(ctx, whisperTime)
	defer cancel()
	e := w.event
	log := s.log.With("channel", e.Thread.Channel, "event", e.ID)
	key := roomOf(e.Thread).Key() + " " + e.Author.Account + "/" + e.Author.ID
	data, err := s.values.Value(ctx, whisperSpace, key)
	var last time.Time
	if err == nil && (json.Unmarshal(data, &last) != nil || s.clock().Sub(last) >= whisperEvery) {
		err = s.put(ctx, whisperSpace, key, s.clock())
	} else if err == nil {
		return // they know
	}
	if err != nil {
		log.Warn("refusal not told", "err", err)
		return
	}
	if h := handleOf(ctx, s.values, s.clock(), e.Thread, e.Ref); h.Author == e.Author.ID {
		e.Handle = h.Handle // by another one's, that one would be told
	}
	if _, err := guard(s.log, func() (struct{}, error) {
		return struct{}{}, s.whispers.to[e.Thread.Channel].Whisper(ctx, e, w.text)
	}); err != nil {
		log.Warn("refusal not told", "err", err)
		return
	}
	log.Info("refusal told", "author", e.Author.ID)
}

// sweepWhispers forgets who was told longer ago than counts.
func (s *Signs) sweepWhispers(ctx context.Context) {
	err := eachValue(ctx, s.values, whisperSpace, func(v state.Value) error {
		var last time.Time
		if json.Unmarshal(v.Data, &last) != nil || s.clock().Sub(last) >= whisperEvery {
			s.forget(ctx, whisperSpace, v.Key)
		}
		return ctx.Err()
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("whispers not swept", "err", err)
	}
}

// verdictOf is that of a channel's error.
func verdictOf(err error) channels.Verdict {
	var se *channels.SendError
	if errors.As(err, &se) {
		return se.Verdict
	}
	return channels.Unknown
}
