package discord

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// fileTime bounds a download.
const fileTime = time.Minute

// Fetch downloads an attachment. Its address lasts for a day only, so Discord is
// asked for the message first. The token goes to no host of files.
func (c *Channel) Fetch(ctx context.Context, _ string, f chat.File, most int64) (chat.Attachment, error) {
	at := strings.Split(f.ID, "/")
	if len(at) != 3 || !snowflake(at[0]) || !snowflake(at[1]) {
		return chat.Attachment{}, unfetched("it is no attachment")
	}
	var m struct {
		Attachments []struct {
			attachment
			URL string `json:"url"`
		} `json:"attachments"`
	}
	if err := c.call(ctx, http.MethodGet, "/channels/"+at[0]+"/messages/"+at[1], nil, &m); err != nil {
		return chat.Attachment{}, classify(err)
	}
	for _, a := range m.Attachments {
		if a.ID != at[2] {
			continue
		}
		out := chat.Attachment{Name: a.Name, MediaType: a.MediaType}
		if a.Bytes > most {
			return out, unfetched("too large")
		}
		var err error
		out.Data, err = c.download(ctx, a.URL, most)
		return out, err
	}
	return chat.Attachment{}, unfetched("discord does not have it any more")
}

func unfetched(reason string) *channels.SendError {
	return &channels.SendError{Verdict: channels.Rejected, Reason: reason}
}

// download reads a file from the hosts that Discord keeps them on.
func (c *Channel) download(ctx context.Context, address string, most int64) ([]byte, error) {
	if !c.pinned(address) {
		return nil, unfetched("the address is not one of discord")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, unfetched("no usable address")
	}
	client := *c.rest.Client // redirects are not followed
	client.Timeout = fileTime
	resp, err := client.Do(req)
	if err != nil {
		return nil, classify(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is not wanted
	switch {
	case resp.StatusCode >= 500:
		return nil, &channels.SendError{Verdict: channels.Unknown, Reason: "http error of the host of files"}
	case resp.StatusCode != http.StatusOK:
		return nil, unfetched("the host of files refuses it")
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		return nil, classify(errors.New("cut off"))
	case int64(len(data)) > most:
		return nil, unfetched("too large")
	case len(data) == 0:
		return nil, unfetched("it is empty")
	}
	return data, nil
}

// pinned tells an address of Discord's, or of the host that the API is at.
func (c *Channel) pinned(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if u.Scheme == "https" && u.Port() == "" && (host == "cdn.discordapp.com" || host == "media.discordapp.net") {
		return true
	}
	api, err := url.Parse(c.apiURL)
	return err == nil && u.Host == api.Host && u.Scheme == api.Scheme
}
