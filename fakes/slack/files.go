package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/heddlehq/heddle/chat"
)

// A File is attached to words, or came with a post.
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MimeType string `json:"mimetype"`
	Size     int64  `json:"size"` // that of Data if 0
	Title    string `json:"title,omitempty"`
	Data     []byte `json:"-"`
	Hidden   bool   `json:"-"` // the bot may not see it: a download shows the page to log in at
}

// An upload is a file that was announced; it is in no channel yet.
type upload struct {
	File
	length int64
	whole  bool
}

const loginPage = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in to your workspace</body></html>"

// mostUpload bounds an upload to the fake.
const mostUpload = 16 << 20

// AddFile keeps a file as people attach it, without saying anything, and
// returns it with what was missing filled in.
func (w *Workspace) AddFile(f File) File {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.addFile(f)
}

func (w *Workspace) addFile(f File) File {
	if f.ID == "" {
		w.fileIDs++
		f.ID = fmt.Sprintf("F%08d", w.fileIDs)
	}
	if f.Size == 0 {
		f.Size = int64(len(f.Data))
	}
	w.files[f.ID] = f
	return f
}

// filesInfo tells of a file; its address is at the host that was called.
func (w *Workspace) filesInfo(args map[string]string) answer {
	f, ok := w.files[args["file"]]
	if !ok {
		return fail("file_not_found")
	}
	a := w.wireFile(f)
	a["url_private"] = fmt.Sprintf("%s/files-pri/%s-%s/%s", w.base, w.opt.Team, f.ID, f.Name)
	a["url_private_download"] = fmt.Sprintf("%s/files-pri/%s-%s/download/%s", w.base, w.opt.Team, f.ID, f.Name)
	return answer{"ok": true, "file": a}
}

func (w *Workspace) wireFile(f File) answer {
	return answer{"id": f.ID, "name": f.Name, "title": f.Title, "mimetype": f.MimeType, "size": f.Size, "mode": "hosted", "is_external": false}
}

// download serves "/files-pri/TEAM-FILE/...". Whoever may not see the file gets a page.
func (w *Workspace) download(rw http.ResponseWriter, r *http.Request) {
	_, rest, _ := strings.Cut(r.URL.Path, "/files-pri/")
	name, _, _ := strings.Cut(rest, "/")
	_, id, _ := strings.Cut(name, "-")
	w.mu.Lock()
	f, ok := w.files[id]
	w.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+w.opt.BotToken || f.Hidden:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(rw, loginPage)
	case !ok:
		http.NotFound(rw, r)
	default:
		rw.Header().Set("Content-Type", f.MimeType)
		_, _ = rw.Write(f.Data) // a caller that went away needs no answer
	}
}

// uploadURL announces a file.
func (w *Workspace) uploadURL(args map[string]string) answer {
	length, err := strconv.ParseInt(args["length"], 10, 64)
	if err != nil || length <= 0 || args["filename"] == "" {
		return fail("invalid_arguments")
	}
	w.fileIDs++
	id := fmt.Sprintf("F%08d", w.fileIDs)
	w.uploads[id] = &upload{File: File{ID: id, Name: args["filename"], Size: length}, length: length}
	return answer{"ok": true, "file_id": id, "upload_url": w.base + "/upload/v1/" + id}
}

// receiveUpload takes the bytes of "/upload/v1/FILE", raw or as a form.
func (w *Workspace) receiveUpload(rw http.ResponseWriter, r *http.Request) {
	id := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	body := io.Reader(r.Body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		form, err := r.MultipartReader()
		if err == nil {
			body, err = form.NextPart()
		}
		if err != nil {
			http.Error(rw, "no form", http.StatusBadRequest)
			return
		}
	}
	data, err := io.ReadAll(io.LimitReader(body, mostUpload))
	w.mu.Lock()
	u := w.uploads[id]
	good := err == nil && u != nil && r.Method == http.MethodPost && int64(len(data)) == u.length
	if good {
		u.Data, u.whole, u.MimeType = data, true, http.DetectContentType(data)
	}
	w.mu.Unlock()
	if !good {
		http.Error(rw, "upload refused", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(rw, "OK - %d", len(data))
}

// completeUpload makes uploads known and, with a channel, posts them there.
func (w *Workspace) completeUpload(args map[string]string) answer {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(args["files"]), &list) != nil || len(list) == 0 {
		return fail("invalid_arguments")
	}
	var files []File
	var out []answer
	for _, l := range list {
		u := w.uploads[l.ID]
		if u == nil || !u.whole {
			return fail("file_not_found")
		}
		if u.Title = l.Title; u.Title == "" {
			u.Title = u.Name
		}
		files = append(files, u.File)
		out = append(out, answer{"id": u.ID, "title": u.Title})
	}
	r, ok := w.channels[args["channel_id"]]
	switch {
	case args["channel_id"] == "":
	case !ok:
		return fail("channel_not_found")
	case r.Archived:
		return fail("is_archived")
	case r.Absent:
		return fail("not_in_channel")
	}
	for _, f := range files {
		w.addFile(f)
		delete(w.uploads, f.ID)
	}
	if r != nil {
		w.postFiles(r, args, files)
	}
	return answer{"ok": true, "files": out}
}

// postFiles is the message that files are shown in.
func (w *Workspace) postFiles(r *room, args map[string]string, files []File) {
	m := &Message{TS: w.stamp(), User: w.opt.BotUser, BotID: w.opt.BotID, Text: args["initial_comment"], Files: files}
	if root := args["thread_ts"]; root != "" && r.alive(root) {
		m.ThreadTS = root
	}
	r.add(m)
	root := m.ThreadTS
	if root == "" && r.Kind != "im" {
		root = m.TS
	}
	w.posts = append(w.posts, Post{
		Channel: r.ID, TS: m.TS, Asked: args["thread_ts"], Text: m.Text, Key: files[0].Name, At: w.opt.Clock(), Files: files,
		Thread: chat.Thread{Channel: "slack", Account: w.opt.Team, Room: r.ID, Root: root},
	})
	close(w.changed)
	w.changed = make(chan struct{})
}
