package github

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What GraphQL is asked here: a discussion with its comments, a comment on one,
// and reactions. Anything else is refused.

type graphArgs struct {
	Query     string `json:"query"`
	Variables struct {
		Owner, Name string
		Number      int
		After       *string
		Bodies      bool
		ID          string
		Input       struct {
			DiscussionID, Body, ReplyToID string
		}
	} `json:"variables"`
}

func graphFail(kind, message string, path ...string) object {
	return object{"type": kind, "message": message, "path": path}
}

func (h *Hub) graphql(a asked) reply {
	var in graphArgs
	if json.Unmarshal(a.body, &in) != nil || in.Query == "" {
		return fail(http.StatusBadRequest, "Problems parsing JSON")
	}
	var data any
	var errs []object
	switch {
	case strings.Contains(in.Query, "addDiscussionComment("):
		data, errs = h.addDiscussed(a, in)
	case strings.Contains(in.Query, "Reaction("):
		data, errs = h.react(in)
	case strings.Contains(in.Query, "discussion(number:"):
		data, errs = h.discussion(a, in)
	default:
		errs = []object{graphFail("UNDEFINED_FIELD", "not understood")}
	}
	out := object{"data": data}
	if errs != nil {
		out["errors"] = errs
	}
	return reply{status: http.StatusOK, body: out}
}

const graphPage = 100

func (h *Hub) discussion(a asked, in graphArgs) (any, []object) {
	v := in.Variables
	r, _ := h.named(v.Owner + "/" + v.Name)
	var t *Thing
	if r != nil && a.may(r) {
		t = r.numbered(strconv.Itoa(v.Number), "discussion")
	}
	if t == nil {
		return object{"repository": nil}, []object{graphFail("NOT_FOUND", "Could not resolve to a Discussion", "repository", "discussion")}
	}
	var top []*Comment
	for _, c := range t.Comments {
		if c.Root == 0 && !c.Deleted {
			top = append(top, c)
		}
	}
	from := 0
	if v.After != nil {
		from, _ = strconv.Atoi(*v.After)
	}
	to := min(from+graphPage, len(top))
	nodes := []object{}
	for _, c := range top[from:to] {
		o := h.shown(c, v.Bodies)
		o["databaseId"] = c.ID
		if v.Bodies {
			replies := []object{}
			for _, m := range t.Comments {
				if m.Root == c.ID && !m.Deleted {
					replies = append(replies, h.shown(m, true))
				}
			}
			o["replies"] = object{"nodes": replies[max(0, len(replies)-graphPage):]}
		}
		nodes = append(nodes, o)
	}
	return object{"repository": object{"discussion": object{
		"id":       t.NodeID,
		"comments": object{"pageInfo": object{"hasNextPage": to < len(top), "endCursor": strconv.Itoa(to)}, "nodes": nodes},
	}}}, nil
}

// shown is a comment as GraphQL shows it.
func (h *Hub) shown(c *Comment, body bool) object {
	o := object{"id": c.NodeID, "viewerDidAuthor": c.User.ID == h.opt.BotUser}
	if body {
		o["body"] = c.Body
	}
	return o
}

func (h *Hub) addDiscussed(a asked, in graphArgs) (any, []object) {
	const field = "addDiscussionComment"
	p := in.Variables.Input
	for _, r := range h.repos {
		for _, t := range r.things {
			if t.Kind != "discussion" || t.NodeID != p.DiscussionID || t.Deleted || !a.may(r) {
				continue
			}
			switch {
			case t.Locked:
				return nil, []object{graphFail("FORBIDDEN", "discussion is locked", field)}
			case strings.TrimSpace(p.Body) == "", utf8.RuneCountInString(p.Body) > maxBody:
				return nil, []object{graphFail("UNPROCESSABLE", "Body is too long or blank", field)}
			}
			c := h.bot("DC", p.Body, a)
			var root *Comment
			if p.ReplyToID != "" {
				i := slices.IndexFunc(t.Comments, func(c *Comment) bool { return c.NodeID == p.ReplyToID && !c.Deleted })
				if i < 0 || t.Comments[i].Root != 0 {
					return nil, []object{graphFail("UNPROCESSABLE", "Parent comment is already in a thread, cannot reply to it", field)}
				}
				root = t.Comments[i]
				c.Root = root.ID
			}
			t.Comments = append(t.Comments, c)
			h.made(r, t, root, c)
			return object{field: object{"comment": object{"id": c.NodeID}}}, nil
		}
	}
	return nil, []object{graphFail("NOT_FOUND", "Could not resolve to a node", field)}
}

var reactionCall = regexp.MustCompile(`(\w+):(addReaction|removeReaction)\(input:\{subjectId:\$id,content:(\w+)\}\)`)

var reactionNames = []string{"THUMBS_UP", "THUMBS_DOWN", "LAUGH", "HOORAY", "CONFUSED", "HEART", "ROCKET", "EYES"}

func (h *Hub) react(in graphArgs) (any, []object) {
	data := object{}
	var errs []object
	for _, m := range reactionCall.FindAllStringSubmatch(in.Query, -1) {
		alias, verb, content := m[1], m[2], m[3]
		c := h.node(in.Variables.ID)
		data[alias] = nil
		switch {
		case c == nil || c.Deleted:
			errs = append(errs, graphFail("NOT_FOUND", "Could not resolve to a node", alias))
			continue
		case !slices.Contains(reactionNames, content):
			errs = append(errs, graphFail("UNPROCESSABLE", "no such reaction", alias))
			continue
		case verb == "addReaction" && !slices.Contains(c.Reactions, content):
			c.Reactions = append(c.Reactions, content)
		case verb == "removeReaction" && !slices.Contains(c.Reactions, content):
			errs = append(errs, graphFail("NOT_FOUND", "the viewer has not reacted so", alias))
			continue
		case verb == "removeReaction":
			c.Reactions = slices.DeleteFunc(c.Reactions, func(s string) bool { return s == content })
		}
		data[alias] = object{"clientMutationId": nil}
	}
	return data, errs
}
