package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/harness/turn"
	"github.com/heddlehq/heddle/state"
)

const (
	fetchTries = 3
	fetchWait  = 15 * time.Second // the longest before a file is asked for again
)

var (
	errNoFiles  = errors.New("files of this channel cannot be fetched")
	errFileGone = errors.New("the gateway does not have it any more")
)

// Fetch returns what gets the files of events: from their channel, again where
// that may help, or, of messages that came over the API, from the store.
func Fetch(cs []channels.Channel, values state.Values) func(context.Context, turn.Wanted) (chat.Attachment, error) {
	fetchers := map[string]channels.Fetcher{}
	for _, c := range cs {
		if f, ok := c.(channels.Fetcher); ok {
			fetchers[c.Name()] = f
		}
	}
	return func(ctx context.Context, w turn.Wanted) (chat.Attachment, error) {
		if w.Author.Account == chat.APIAccount {
			data, err := values.Value(ctx, state.FileSpace(w.Thread), w.File.ID)
			if err == nil && data == nil {
				err = errFileGone
			}
			return chat.Attachment{Name: w.File.Name, MediaType: w.File.MediaType, Data: data}, err
		}
		f := fetchers[w.Thread.Channel]
		if f == nil {
			return chat.Attachment{}, errNoFiles
		}
		return fetch(ctx, f, w)
	}
}

func fetch(ctx context.Context, f channels.Fetcher, w turn.Wanted) (chat.Attachment, error) {
	for try := 1; ; try++ {
		got, err := f.Fetch(ctx, w.Thread.Account, w.File, w.Most)
		var se *channels.SendError
		if err == nil || try == fetchTries || !errors.As(err, &se) || se.Verdict == channels.Rejected {
			return got, err
		}
		wait := max(se.RetryAfter, backoff(0)<<try)
		if wait > fetchWait || !sleep(ctx, wait) {
			return got, err
		}
	}
}
