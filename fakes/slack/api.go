package slack

import (
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heddlehq/heddle/chat"
)

const (
	maxText     = 40000 // characters; a longer post is truncated
	maxEdit     = 4000  // characters; a longer edit is refused
	maxMetadata = 8000  // bytes
	defaultPage = 100
	maxPage     = 999
)

type answer map[string]any

func fail(code string) answer { return answer{"ok": false, "error": code} }

// methods are the API calls that are understood; each runs under the lock.
var methods = map[string]func(*Workspace, map[string]string) answer{
	"auth.test":                   (*Workspace).authTest,
	"users.info":                  (*Workspace).usersInfo,
	"usergroups.users.list":       (*Workspace).groupUsers,
	"users.conversations":         (*Workspace).usersConversations,
	"conversations.info":          (*Workspace).conversationsInfo,
	"conversations.history":       (*Workspace).history,
	"conversations.replies":       (*Workspace).replies,
	"chat.postMessage":            (*Workspace).postMessage,
	"chat.postEphemeral":          (*Workspace).postEphemeral,
	"reactions.add":               (*Workspace).addReaction,
	"reactions.remove":            (*Workspace).removeReaction,
	"assistant.threads.setTitle":  (*Workspace).setTitle,
	"assistant.threads.setStatus": (*Workspace).setStatus,
	"conversations.open":          (*Workspace).openDirect,
	"chat.update":                 (*Workspace).update,
	"files.info":                  (*Workspace).filesInfo,

	"files.getUploadURLExternal":   (*Workspace).uploadURL,
	"files.completeUploadExternal": (*Workspace).completeUpload,
}

// arguments reads a call's arguments from its form, JSON or query, and the token
// from there or from the header.
func arguments(r *http.Request) (args map[string]string, token string, err error) {
	args = map[string]string{}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return args, "", err
	}
	put := func(v url.Values) {
		for k := range v {
			args[k] = v.Get(k)
		}
	}
	put(r.URL.Query())
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/json" && len(body) > 0 {
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil {
			return args, "", err
		}
		for k, v := range m {
			if s, ok := v.(string); ok {
				args[k] = s
			} else if b, err := json.Marshal(v); err == nil {
				args[k] = string(b)
			}
		}
	} else {
		v, err := url.ParseQuery(string(body))
		if err != nil {
			return args, "", err
		}
		put(v)
	}
	token = args["token"]
	delete(args, "token")
	if b, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = b
	}
	return args, token, nil
}

func (w *Workspace) authTest(map[string]string) answer {
	return answer{
		"ok": true, "url": "https://fake.slack.com/", "team": "Fake", "team_id": w.opt.Team,
		"user": w.users[w.opt.BotUser].Name, "user_id": w.opt.BotUser, "bot_id": w.opt.BotID, "is_enterprise_install": false,
	}
}

func (w *Workspace) usersInfo(args map[string]string) answer {
	u, ok := w.users[args["user"]]
	if !ok {
		return fail("user_not_found")
	}
	return answer{"ok": true, "user": answer{
		"id": u.ID, "team_id": u.Team, "name": u.Name, "real_name": u.Name, "deleted": u.Deleted,
		"is_admin": u.Admin, "is_owner": false, "is_restricted": u.Restricted, "is_ultra_restricted": u.UltraRestricted,
		"is_bot": u.Bot, "is_stranger": u.Stranger, "is_app_user": false,
		"profile": answer{"display_name": u.Name, "real_name": u.Name, "team": u.Team},
	}}
}

func (w *Workspace) groupUsers(args map[string]string) answer {
	users, ok := w.opt.Groups[args["usergroup"]]
	if !ok {
		return fail("no_such_subteam")
	}
	return answer{"ok": true, "users": users}
}

func (w *Workspace) conversationsInfo(args map[string]string) answer {
	r, ok := w.channels[args["channel"]]
	if !ok {
		return fail("channel_not_found")
	}
	return answer{"ok": true, "channel": answer{
		"id": r.ID, "name": strings.ToLower(r.ID), "is_channel": r.Kind == "channel", "is_group": r.Kind == "group",
		"is_im": r.Kind == "im", "is_mpim": r.Kind == "mpim", "is_private": r.Kind != "channel", "is_archived": r.Archived, "is_member": !r.Absent,
	}}
}

// usersConversations lists the channels of the wanted kinds that the bot is in.
func (w *Workspace) usersConversations(args map[string]string) answer {
	kinds := map[string]string{"channel": "public_channel", "group": "private_channel", "im": "im", "mpim": "mpim"}
	out := []answer{}
	for _, id := range slices.Sorted(maps.Keys(w.channels)) {
		r := w.channels[id]
		if !r.Absent && slices.Contains(strings.Split(args["types"], ","), kinds[r.Kind]) {
			out = append(out, answer{"id": r.ID, "is_im": r.Kind == "im", "is_mpim": r.Kind == "mpim"})
		}
	}
	return answer{"ok": true, "channels": out, "response_metadata": answer{"next_cursor": ""}}
}

func (w *Workspace) postMessage(args map[string]string) answer {
	r, ok := w.channels[args["channel"]]
	text := args["text"]
	meta, code := metadata(args)
	switch {
	case !ok:
		return fail("channel_not_found")
	case r.Archived:
		return fail("is_archived")
	case r.Absent:
		return fail("not_in_channel")
	case strings.TrimSpace(text) == "":
		return fail("no_text")
	case code != "":
		return fail(code)
	}
	if utf8.RuneCountInString(text) > maxText {
		text = string([]rune(text)[:maxText])
	}
	m := &Message{TS: w.stamp(), User: w.opt.BotUser, BotID: w.opt.BotID, Text: text, Metadata: meta}
	if root := args["thread_ts"]; root != "" && r.alive(root) { // otherwise Slack posts outside the thread
		m.ThreadTS = root
	}
	r.add(m)
	root := m.ThreadTS
	if root == "" && r.Kind != "im" {
		root = m.TS
	}
	p := Post{
		Channel: r.ID, TS: m.TS, Asked: args["thread_ts"], Text: text, At: w.opt.Clock(),
		Thread: chat.Thread{Channel: "slack", Account: w.opt.Team, Room: r.ID, Root: root},
	}
	var keyed struct {
		Payload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	}
	if json.Unmarshal(meta, &keyed) == nil {
		p.Key = keyed.Payload.Key
	}
	w.posts = append(w.posts, p)
	delete(w.statuses, r.ID+"/"+m.ThreadTS)
	w.note()
	return answer{"ok": true, "channel": r.ID, "ts": m.TS, "message": w.wire(m, false)}
}

// metadata checks the argument as Slack does: an event type and an object.
func metadata(args map[string]string) (json.RawMessage, string) {
	s := args["metadata"]
	if s == "" {
		return nil, ""
	}
	var m struct {
		EventType    string         `json:"event_type"`
		EventPayload map[string]any `json:"event_payload"`
	}
	switch {
	case len(s) > maxMetadata:
		return nil, "metadata_too_large"
	case json.Unmarshal([]byte(s), &m) != nil:
		return nil, "invalid_metadata_format"
	case m.EventType == "" || m.EventPayload == nil:
		return nil, "invalid_metadata_schema"
	}
	return json.RawMessage(s), ""
}

func (w *Workspace) update(args map[string]string) answer {
	m := w.find(args["channel"], args["ts"])
	switch {
	case w.channels[args["channel"]] == nil:
		return fail("channel_not_found")
	case m == nil || m.Deleted:
		return fail("message_not_found")
	case m.User != w.opt.BotUser:
		return fail("cant_update_message")
	case utf8.RuneCountInString(args["text"]) > maxEdit:
		return fail("msg_too_long")
	case strings.TrimSpace(args["text"]) == "":
		return fail("no_text")
	}
	meta, code := metadata(args)
	if code != "" {
		return fail(code)
	}
	if meta != nil {
		m.Metadata = meta
	}
	m.Text, m.EditedTS = args["text"], w.stamp()
	return answer{"ok": true, "channel": args["channel"], "ts": m.TS, "text": m.Text, "message": w.wire(m, false)}
}

// history lists what stands in the channel itself, newest first.
func (w *Workspace) history(args map[string]string) answer {
	r, ok := w.channels[args["channel"]]
	if !ok || r.Absent {
		return fail("channel_not_found")
	}
	var list []*Message
	for i := len(r.messages) - 1; i >= 0; i-- {
		m := r.messages[i]
		if !m.Deleted && (m.ThreadTS == "" || m.ThreadTS == m.TS) && inRange(m.TS, args) {
			list = append(list, m)
		}
	}
	return w.page(list, args)
}

// replies lists a thread, its root always first, then oldest first.
func (w *Workspace) replies(args map[string]string) answer {
	r, ok := w.channels[args["channel"]]
	root := w.find(args["channel"], args["ts"])
	switch {
	case !ok || r.Absent:
		return fail("channel_not_found")
	case !r.alive(args["ts"]):
		return fail("thread_not_found")
	}
	var list []*Message
	if root != nil {
		list = append(list, root)
	}
	for _, m := range r.messages {
		if m != root && !m.Deleted && m.ThreadTS == args["ts"] && inRange(m.TS, args) {
			list = append(list, m)
		}
	}
	return w.page(list, args)
}

func inRange(ts string, args map[string]string) bool {
	after, before := strings.Compare(ts, args["oldest"]), -1
	if args["latest"] != "" {
		before = strings.Compare(ts, args["latest"])
	}
	if args["inclusive"] == "1" || args["inclusive"] == "true" {
		return after >= 0 && before <= 0
	}
	return after > 0 && before < 0
}

func (w *Workspace) page(list []*Message, args map[string]string) answer {
	limit, _ := strconv.Atoi(args["limit"])
	if limit <= 0 {
		limit = defaultPage
	}
	limit = min(limit, maxPage)
	from := 0
	if c := args["cursor"]; c != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(c, "next:"))
		if err != nil || n < 0 || n > len(list) {
			return fail("invalid_cursor")
		}
		from = n
	}
	to := min(from+limit, len(list))
	out := []answer{}
	for _, m := range list[from:to] {
		out = append(out, w.wire(m, args["include_all_metadata"] == "1" || args["include_all_metadata"] == "true"))
	}
	next := ""
	if to < len(list) {
		next = "next:" + strconv.Itoa(to)
	}
	return answer{"ok": true, "messages": out, "has_more": next != "", "response_metadata": answer{"next_cursor": next}}
}

// replyCount is how many messages hang on one.
func (w *Workspace) replyCount(m *Message) (n int) {
	for _, r := range w.channels {
		for _, o := range r.messages {
			if o != m && !o.Deleted && o.ThreadTS == m.TS {
				n++
			}
		}
	}
	return n
}

// wire is a message as Slack sends it.
func (w *Workspace) wire(m *Message, meta bool) answer {
	a := answer{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": w.opt.Team}
	if m.ThreadTS != "" {
		a["thread_ts"] = m.ThreadTS
	}
	if n := w.replyCount(m); n > 0 {
		a["thread_ts"], a["reply_count"] = m.TS, n
	}
	if m.Deleted {
		a["subtype"], a["user"], a["text"], a["hidden"] = "tombstone", "USLACKBOT", "This message was deleted.", true
	}
	if m.EditedTS != "" {
		a["edited"] = answer{"user": m.User, "ts": m.EditedTS}
	}
	if m.BotID != "" {
		a["bot_id"], a["app_id"] = m.BotID, w.opt.AppID
		a["bot_profile"] = answer{"id": m.BotID, "app_id": w.opt.AppID, "name": "heddle", "deleted": false}
	}
	if m.Files != nil {
		files := []answer{}
		for _, f := range m.Files {
			files = append(files, w.wireFile(f))
		}
		a["files"] = files
	}
	if meta && m.Metadata != nil {
		a["metadata"] = m.Metadata
	}
	return a
}
