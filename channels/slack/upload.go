package slack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// sendFiles posts files, with the text above them, as one message: Slack takes
// each file at an address of its own, and shows nothing before all are named in
// the last request. So only that can have an unknown outcome. Slack makes the
// message a moment later and does not say its id; the ref is the first file's.
//
// Such a message carries no metadata, so the names of its files carry the key.
func (c *Channel) sendFiles(ctx context.Context, w *installation, p chat.Post) (ref string, err error) {
	type named struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	var list []named
	size := 0
	for _, f := range p.Files {
		if size += len(f.Data); len(f.Data) == 0 || size > chat.MaxAttached {
			return "", &channels.SendError{Verdict: channels.Rejected, Reason: "files are empty or too large"}
		}
	}
	for _, f := range p.Files {
		id, err := c.upload(ctx, w, marked(f.Name, p.Key), f.Data)
		var se *channels.SendError
		if errors.As(err, &se) && se.Verdict == channels.Unknown {
			err = &channels.SendError{Verdict: channels.NotMade, Reason: se.Reason, Err: se} // nobody sees it
		}
		if err != nil {
			return "", err
		}
		list = append(list, named{id, f.Name})
	}
	files, err := json.Marshal(list)
	if err != nil {
		return "", &channels.SendError{Verdict: channels.Rejected, Reason: "file names", Err: err} // unreachable: they are strings
	}
	args := url.Values{"files": {string(files)}, "channel_id": {p.Thread.Room}}
	if p.Text != "" {
		args.Set("initial_comment", p.Text)
	}
	if p.Thread.Root != "" {
		args.Set("thread_ts", p.Thread.Root)
	}
	if err := c.call(ctx, w, "files.completeUploadExternal", args, &struct{}{}); err != nil {
		return "", classify(err)
	}
	return list[0].ID, nil
}

// upload brings the bytes of one file to Slack, where they are in no channel yet.
func (c *Channel) upload(ctx context.Context, w *installation, name string, data []byte) (id string, err error) {
	var at struct {
		URL string `json:"upload_url"`
		ID  string `json:"file_id"`
	}
	args := url.Values{"filename": {name}, "length": {strconv.Itoa(len(data))}}
	if err := c.call(ctx, w, "files.getUploadURLExternal", args, &at); err != nil {
		return "", classify(err)
	}
	u, err := c.pinned(at.URL)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(data))
	if err != nil {
		return "", classify(err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := c.http.Do(req)
	if err != nil {
		return "", classify(err)
	}
	defer func() { _ = resp.Body.Close() }() // the status says all
	if err := status(resp); err != nil {
		return "", classify(err)
	}
	return at.ID, nil
}

// marked puts what a post is known by into the name of its file, which people see
// when they save it: "answer-0123456789ab.md".
func marked(name, key string) string {
	end := path.Ext(name)
	return strings.TrimSuffix(name, end) + "-" + mark(key) + end
}

func mark(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}
