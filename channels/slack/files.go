package slack

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// Bounds of a download.
const (
	fileTime      = time.Minute
	mostRedirects = 3
)

// fileInfo is what Slack says of a file.
type fileInfo struct {
	file
	URL      string `json:"url_private_download"`
	View     string `json:"url_private"` // all that some kinds have
	External bool   `json:"is_external"` // kept by somebody else
	Mode     string `json:"mode"`        // "tombstone": deleted; "hidden_by_limit": of an old free workspace
}

// Fetch downloads a file. What the event said of it may be incomplete, so Slack
// is asked first; that also finds files of shared channels.
func (c *Channel) Fetch(ctx context.Context, account string, f chat.File, most int64) (chat.Attachment, error) {
	var answer struct {
		File fileInfo `json:"file"`
	}
	w, err := c.at(ctx, account)
	if err != nil {
		return chat.Attachment{}, err
	}
	if err := c.call(ctx, w, "files.info", url.Values{"file": {f.ID}}, &answer); err != nil {
		return chat.Attachment{}, classify(err)
	}
	i := answer.File
	if i.URL == "" {
		i.URL = i.View
	}
	out := chat.Attachment{Name: i.Name, MediaType: i.MimeType}
	switch {
	case i.External:
		return out, unfetched("it is not kept by slack")
	case i.Mode == "tombstone" || i.Mode == "hidden_by_limit" || i.URL == "":
		return out, unfetched("slack does not have it any more")
	case i.Size > most:
		return out, unfetched("too large")
	}
	out.Data, err = c.download(ctx, w, i, most)
	return out, err
}

func unfetched(reason string) *channels.SendError {
	return &channels.SendError{Verdict: channels.Rejected, Reason: reason}
}

// download reads a file from Slack's hosts. The token goes to no other, also
// not where a redirect leads.
func (c *Channel) download(ctx context.Context, w *installation, i fileInfo, most int64) ([]byte, error) {
	client := *c.http
	client.Timeout = fileTime
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	at := i.URL
	for range mostRedirects + 1 {
		u, err := c.pinned(at)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err != nil {
			return nil, unfetched("no usable address")
		}
		req.Header.Set("Authorization", "Bearer "+w.token)
		resp, err := client.Do(req)
		if err != nil {
			return nil, classify(err)
		}
		if resp.StatusCode/100 != 3 {
			return content(resp, i, most)
		}
		_ = resp.Body.Close() // where it leads is in the header
		next, err := u.Parse(resp.Header.Get("Location"))
		if err != nil {
			return nil, unfetched("no usable address")
		}
		at = next.String()
	}
	return nil, unfetched("too many redirects")
}

// pinned reads an address that the token may be sent to: one of Slack, or of
// the host that the API is at.
func (c *Channel) pinned(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, unfetched("no usable address")
	}
	api, err := url.Parse(c.apiURL)
	if err != nil {
		return nil, unfetched("no usable address") // unreachable: New has parsed it
	}
	host := strings.ToLower(u.Hostname())
	switch {
	case u.User != nil:
	case u.Host == api.Host && u.Scheme == api.Scheme:
		return u, nil
	case u.Scheme == "https" && u.Port() == "" && (host == "slack.com" || strings.HasSuffix(host, ".slack.com") || strings.HasSuffix(host, "."+api.Hostname())):
		return u, nil
	}
	return nil, unfetched("the address is not one of slack")
}

// content reads the body of a download. To whom Slack does not show a file it
// shows a page to log in at, with status 200.
func content(resp *http.Response, i fileInfo, most int64) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }() // it was read, or is not wanted
	if err := status(resp); err != nil {
		return nil, classify(err)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	page := kind == "text/html" || strings.HasPrefix(http.DetectContentType(data), "text/html")
	switch {
	case err != nil:
		return nil, classify(err)
	case int64(len(data)) > most:
		return nil, unfetched("too large")
	case len(bytes.TrimSpace(data)) == 0:
		return nil, unfetched("it is empty")
	case page && (kind == "text/html" && i.MimeType != "text/html" || int64(len(data)) != i.Size):
		return nil, unfetched("slack shows a page to log in at: the app lacks files:read, or may not see the file")
	}
	return data, nil
}
