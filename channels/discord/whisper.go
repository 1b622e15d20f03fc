package discord

import (
	"context"
	"net/http"

	"github.com/bwmarrin/discordgo"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// Whisper answers a command so that only its author sees it, in place of the
// answer that Discord shows as coming; to all else it writes a direct message.
func (c *Channel) Whisper(ctx context.Context, e chat.Event, text string) error {
	m := outgoing{Content: text, Flags: discordgo.MessageFlagsSuppressEmbeds, Mentions: allowed{Parse: []string{}}}
	if e.Handle.Secret != "" && c.now().Before(e.Handle.Until) {
		hook := "/webhooks/" + escaped(e.Handle.Secret)
		// While the answer is coming the next message would become it, for all to see.
		if err := c.call(ctx, http.MethodDelete, hook+"/messages/@original", nil, nil); err != nil && status(err) != http.StatusNotFound {
			return classify(err)
		}
		m.Flags |= discordgo.MessageFlagsEphemeral
		if err := c.call(ctx, http.MethodPost, hook, m, nil); err != nil {
			return classify(err)
		}
		return nil
	}
	if !snowflake(e.Author.ID) {
		return &channels.SendError{Verdict: channels.Rejected, Reason: "no author"}
	}
	var dm struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, http.MethodPost, "/users/@me/channels", map[string]string{"recipient_id": e.Author.ID}, &dm); err != nil {
		return before(err)
	}
	if !snowflake(dm.ID) {
		return &channels.SendError{Verdict: channels.Unknown, Reason: "answer without channel"}
	}
	if err := c.call(ctx, http.MethodPost, "/channels/"+dm.ID+"/messages", m, nil); err != nil {
		return classify(err)
	}
	return nil
}
