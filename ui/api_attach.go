package ui

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/heddlehq/heddle/chat"
	"github.com/heddlehq/heddle/state"
)

// maxMessage bounds the body of a message, which may bring files.
const maxMessage = 16 << 20

// An attached is a file of a message.
type attached struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// attach keeps the files of a message to a thread until its turn takes them, and
// declares them. The same files again change nothing.
func (a *API) attach(ctx context.Context, t chat.Thread, files []attached) ([]chat.File, error) {
	if len(files) > chat.MaxFiles {
		return nil, fail(badRequest, fmt.Sprintf("a message has at most %d files", chat.MaxFiles))
	}
	var out []chat.File
	var keep []state.Value
	for _, f := range files {
		switch {
		case !plain(f.Name) || len(f.Name) > 255 || f.MediaType != "" && !plain(f.MediaType) || len(f.MediaType) > 255:
			return nil, fail(badRequest, "a file has a name, and that and its media_type at most 255 bytes and no control characters")
		case len(f.Data) == 0 || len(f.Data) > chat.MaxFileBytes:
			return nil, fail(badRequest, fmt.Sprintf("the data of a file are 1 to %d bytes, in base64", chat.MaxFileBytes))
		}
		sum := sha256.Sum256(f.Data)
		id := hex.EncodeToString(sum[:])
		out = append(out, chat.File{ID: id, Name: f.Name, MediaType: f.MediaType, Bytes: int64(len(f.Data))})
		keep = append(keep, state.Value{Key: id, Data: f.Data})
	}
	if len(keep) == 0 {
		return nil, nil
	}
	// As with the event: who hangs up does not undo it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), admitTime)
	defer cancel()
	if err := a.Store.PutValues(ctx, state.FileSpace(t), keep...); err != nil {
		a.Logger.Error("files not stored", "channel", t.Channel, "err", err)
		return nil, fail(storeFailed, "the files are not stored")
	}
	return out, nil
}
