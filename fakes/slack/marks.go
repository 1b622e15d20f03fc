package slack

import (
	"maps"
	"slices"
)

// Reactions are the bot's at a message, in order of their names.
func (w *Workspace) Reactions(channel, ts string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.find(channel, ts)
	if m == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(m.reactions))
}

// Status is the status of an assistant thread, "" if none is shown.
func (w *Workspace) Status(channel, thread string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.statuses[channel+"/"+thread]
}

func (w *Workspace) addReaction(args map[string]string) answer {
	m := w.find(args["channel"], args["timestamp"])
	switch {
	case w.channels[args["channel"]] == nil:
		return fail("channel_not_found")
	case m == nil || m.Deleted:
		return fail("message_not_found")
	case args["name"] == "" || args["name"][0] == ':':
		return fail("invalid_name")
	case m.reactions[args["name"]]:
		return fail("already_reacted")
	}
	if m.reactions == nil {
		m.reactions = map[string]bool{}
	}
	m.reactions[args["name"]] = true
	w.note()
	return answer{"ok": true}
}

func (w *Workspace) removeReaction(args map[string]string) answer {
	m := w.find(args["channel"], args["timestamp"])
	switch {
	case m == nil || m.Deleted:
		return fail("message_not_found")
	case !m.reactions[args["name"]]:
		return fail("no_reaction")
	}
	delete(m.reactions, args["name"])
	w.note()
	return answer{"ok": true}
}

// Titles are those of assistant threads, by channel and thread_ts: "D0PERSON/1.1".
func (w *Workspace) Titles() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.titles)
}

func (w *Workspace) setTitle(args map[string]string) answer {
	r := w.channels[args["channel_id"]]
	if r == nil || !r.alive(args["thread_ts"]) || args["title"] == "" {
		return fail("invalid_arguments")
	}
	w.titles[r.ID+"/"+args["thread_ts"]] = args["title"]
	return answer{"ok": true}
}

// setStatus shows what the bot does in an assistant thread; a post there ends it.
func (w *Workspace) setStatus(args map[string]string) answer {
	r := w.channels[args["channel_id"]]
	switch {
	case r == nil:
		return fail("channel_not_found")
	case args["thread_ts"] == "" || !r.alive(args["thread_ts"]):
		return fail("thread_not_found")
	}
	w.statuses[r.ID+"/"+args["thread_ts"]] = args["status"]
	w.note()
	return answer{"ok": true}
}
