package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// absent tells that the bot may not post where it should: Slack has certainly
// made nothing.
func absent(err error) bool {
	var code slack.SlackErrorResponse
	return errors.As(err, &code) && slices.Contains([]string{"not_in_channel", "channel_not_found"}, code.Err)
}

// A response is a post by a response URL.
type response struct {
	Type string `json:"response_type"` // "in_channel" or "ephemeral"
	Text string `json:"text"`
}

// respond posts by a response URL. Slack shows it, but not where: it cannot be
// looked for, so it is not tried again when its outcome is not known.
func (c *Channel) respond(ctx context.Context, address string, r response) error {
	if !c.hook(address) {
		return &channels.SendError{Verdict: channels.Rejected, Reason: "response url is not slack's"}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return classify(err) // unreachable: they are strings
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return &channels.SendError{Verdict: channels.Rejected, Reason: "response url is none"}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBytes)) // the status says all
		_ = resp.Body.Close()
		err = status(resp)
	}
	if err == nil {
		return nil
	}
	se := classify(err)
	if se.Verdict == channels.Unknown {
		se.Verdict, se.Reason = channels.Rejected, "by a response url, outcome unknown: "+se.Reason
	}
	return se
}

// Whisper tells the author of an event something that the room does not see: by
// the response URL that came with it, or where they are.
func (c *Channel) Whisper(ctx context.Context, e chat.Event, text string) error {
	if e.Handle.Secret != "" && c.now().Before(e.Handle.Until) {
		return c.respond(ctx, e.Handle.Secret, response{Type: "ephemeral", Text: text})
	}
	if e.Author.ID == "" || e.Author.Bot {
		return &channels.SendError{Verdict: channels.Rejected, Reason: "nobody to tell"}
	}
	t, w, err := c.place(ctx, e.Thread)
	if err != nil {
		return err
	}
	opts := []slack.MsgOption{slack.MsgOptionText(text, false)}
	if t.Root != "" {
		opts = append(opts, slack.MsgOptionTS(t.Root))
	}
	if _, err := w.api.PostEphemeralContext(ctx, t.Room, e.Author.ID, opts...); err != nil {
		return classify(err)
	}
	return nil
}
