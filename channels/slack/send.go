package slack

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	postType          = "heddle_post" // event type of the metadata that carries a post's key
	defaultRetryAfter = 10 * time.Second
	pageLength        = 200
	maxPages          = 50
	maxAnswerBytes    = 16 << 20
)

// Limits are Slack's: about one message a second in a channel. It lets short
// bursts through and answers 429 with a time beyond them, so a burst costs a
// wait at worst, while a pace without burst would delay every busy channel. A
// workspace as a whole takes some hundred a minute.
func (c *Channel) Limits() channels.Limits {
	return channels.Limits{Files: true, Handles: true, RoomEvery: time.Second, AccountEvery: 300 * time.Millisecond, SettleAfter: 5 * time.Second}
}

// Send posts one message. A post to a thread whose first message is gone is made
// by Slack all the same, outside the thread: that is Rejected, together with the
// ref of the stray message. Where the bot may not post, a handle is used.
func (c *Channel) Send(ctx context.Context, p chat.Post) (ref string, err error) {
	var w *installation
	if p.Thread, w, err = c.place(ctx, p.Thread); err != nil {
		return "", err
	}
	if len(p.Files) > 0 {
		return c.sendFiles(ctx, w, p)
	}
	opts := []slack.MsgOption{
		slack.MsgOptionText(p.Text, false),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl(),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: postType, EventPayload: map[string]any{"key": p.Key}}),
	}
	if p.Thread.Root != "" {
		opts = append(opts, slack.MsgOptionTS(p.Thread.Root))
	}
	_, ref, m, err := w.api.PostMessageWithResponseContext(ctx, p.Thread.Room, opts...)
	switch {
	case err != nil && p.Handle.Secret != "" && absent(err):
		return "", c.respond(ctx, p.Handle.Secret, response{Type: "in_channel", Text: p.Text})
	case err != nil:
		return "", classify(err)
	case ref == "":
		return "", &channels.SendError{Verdict: channels.Unknown, Reason: "answer without message id"}
	case m.ThreadTimestamp != p.Thread.Root && p.Thread.Root != "":
		return ref, &channels.SendError{Verdict: channels.Rejected, Reason: "posted outside its thread"}
	}
	c.posted.note(p.Thread.Room, ref, p.Thread.Root)
	return ref, nil
}

// Find looks for the message that carries the post's key, from well before
// since: our clock and Slack's may differ by as much as a delivery's may. It
// parses answers itself: one message of another app with a block that slack-go
// does not know would hide all others.
func (c *Channel) Find(ctx context.Context, p chat.Post, since time.Time) (ref string, err error) {
	var w *installation
	if p.Thread, w, err = c.place(ctx, p.Thread); err != nil {
		return "", err
	}
	if p.Thread.Root == "" {
		return c.find(ctx, w, "conversations.history", p, since)
	}
	ref, err = c.find(ctx, w, "conversations.replies", p, since)
	var se *channels.SendError
	if errors.As(err, &se) && se.Reason == "thread_not_found" { // then it would stand outside
		return c.find(ctx, w, "conversations.history", p, since)
	}
	return ref, err
}

type page struct {
	Messages []struct {
		TS       string `json:"ts"`
		User     string `json:"user"`
		BotID    string `json:"bot_id"`
		Metadata struct {
			EventType    string          `json:"event_type"`
			EventPayload json.RawMessage `json:"event_payload"`
		} `json:"metadata"`
		Files []file `json:"files"`
	} `json:"messages"`
	Next struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

func (c *Channel) find(ctx context.Context, w *installation, method string, p chat.Post, since time.Time) (string, error) {
	args := url.Values{
		"channel": {p.Thread.Room}, "include_all_metadata": {"1"}, "limit": {strconv.Itoa(pageLength)},
		"oldest": {fmt.Sprintf("%d.000000", max(0, since.Add(-channels.Window-time.Minute).Unix()))},
	}
	if method == "conversations.replies" {
		args.Set("ts", p.Thread.Root)
	}
	self := w.self()
	for range maxPages {
		var pg page
		if err := c.call(ctx, w, method, args, &pg); err != nil {
			return "", classify(err)
		}
		for _, m := range pg.Messages {
			own := self.user == "" || m.User == self.user || m.BotID != "" && m.BotID == self.bot
			if own && len(p.Files) > 0 && slices.ContainsFunc(m.Files, func(f file) bool { return strings.Contains(f.Name, mark(p.Key)) }) {
				return m.TS, nil
			}
			if !own || m.Metadata.EventType != postType {
				continue
			}
			var payload struct {
				Key string `json:"key"`
			}
			if json.Unmarshal(m.Metadata.EventPayload, &payload) == nil && payload.Key == p.Key && p.Key != "" {
				return m.TS, nil
			}
		}
		if pg.Next.Cursor == "" {
			return "", nil
		}
		args.Set("cursor", pg.Next.Cursor)
	}
	return "", &channels.SendError{Verdict: channels.Unknown, Reason: "too many messages to look through"}
}

// call makes one request and reads the answer into out. It fails like slack-go does.
func (c *Channel) call(ctx context.Context, w *installation, method string, args url.Values, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.apiURL+method, strings.NewReader(args.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+w.token)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is not wanted
	if err := status(resp); err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return err
	}
	var head struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		return err
	}
	if !head.OK {
		return slack.SlackErrorResponse{Err: head.Error}
	}
	return json.Unmarshal(body, out)
}

// status is what the status of an answer says, nil for 200.
func status(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests:
		s, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil {
			return err
		}
		return &slack.RateLimitedError{RetryAfter: time.Duration(s) * time.Second}
	}
	return slack.StatusCodeError{Code: resp.StatusCode}
}

// classify turns any failure of a call into its verdict.
func classify(err error) *channels.SendError {
	verdict := func(v channels.Verdict, reason string) *channels.SendError {
		return &channels.SendError{Verdict: v, Reason: reason, Err: err}
	}
	var (
		limited *slack.RateLimitedError
		number  *strconv.NumError // slack-go's for a Retry-After that is no number
		status  slack.StatusCodeError
		code    slack.SlackErrorResponse
		dial    *net.OpError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &limited):
		return limit(err, limited.RetryAfter)
	case errors.As(err, &number):
		return limit(err, 0)
	case errors.As(err, &status):
		switch {
		case status.Code == http.StatusTooManyRequests:
			return limit(err, 0)
		case status.Code >= 500 || status.Code == http.StatusRequestTimeout:
			return verdict(channels.Unknown, "http "+strconv.Itoa(status.Code))
		}
		return verdict(channels.Rejected, "http "+strconv.Itoa(status.Code))
	case errors.As(err, &code):
		switch code.Err {
		case "ratelimited", "rate_limited", "message_limit_exceeded":
			return limit(err, 0)
		case "", "internal_error", "fatal_error", "service_unavailable", "request_timeout":
			return verdict(channels.Unknown, reason(code.Err))
		case "team_added_to_org": // for the time of the move
			return verdict(channels.NotMade, code.Err)
		}
		return verdict(channels.Rejected, reason(code.Err))
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return verdict(channels.NotMade, "no connection") // nothing was written
	case errors.As(err, &cert):
		return verdict(channels.NotMade, "certificate not accepted")
	case errors.Is(err, context.Canceled):
		return verdict(channels.Unknown, "cancelled")
	case isTimeout(err):
		return verdict(channels.Unknown, "timeout")
	}
	return verdict(channels.Unknown, "no usable answer")
}

func limit(err error, after time.Duration) *channels.SendError {
	if after <= 0 {
		after = defaultRetryAfter
	}
	return &channels.SendError{Verdict: channels.Limited, RetryAfter: after, Reason: "rate limited", Err: err}
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// reason is Slack's error code, if it looks like one.
func reason(code string) string {
	if code == "" || len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "unknown error"
	}
	return code
}
