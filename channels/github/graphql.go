package github

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
)

// Discussions and reactions are GraphQL's: REST has no discussions, and takes
// back a reaction only by an id that it told when the reaction was put.

// query asks GraphQL. Errors are those of the client, or a *graphError, the
// first that is not about a field that may fail.
func (c *Channel) query(ctx context.Context, cl *github.Client, text string, args map[string]any, out any, mayFail ...string) error {
	req, err := cl.NewRequest(http.MethodPost, c.graph, map[string]any{"query": text, "variables": args})
	if err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage `json:"data"`
		Errors []*graphError   `json:"errors"`
	}
	if _, err := cl.Do(ctx, req, &answer); err != nil {
		return err
	}
	for _, e := range answer.Errors {
		if e != nil && !e.about(mayFail) {
			return e
		}
	}
	if out == nil || answer.Data == nil {
		return nil
	}
	return json.Unmarshal(answer.Data, out)
}

func (e *graphError) about(fields []string) bool {
	var path []any
	if json.Unmarshal(e.Path, &path) != nil || len(path) == 0 {
		return false
	}
	for _, f := range fields {
		if path[0] == f {
			return true
		}
	}
	return false
}

const discussionQuery = `query($owner:String!,$name:String!,$number:Int!,$after:String,$bodies:Boolean!){repository(owner:$owner,name:$name){discussion(number:$number){
id comments(first:100,after:$after){pageInfo{hasNextPage endCursor} nodes{id databaseId body @include(if:$bodies) viewerDidAuthor
replies(last:100) @include(if:$bodies){nodes{id body viewerDidAuthor}}}}}}}`

type discussion struct {
	ID       string `json:"id"`
	Comments struct {
		PageInfo struct {
			HasNextPage bool   `json:"hasNextPage"`
			EndCursor   string `json:"endCursor"`
		} `json:"pageInfo"`
		Nodes []struct {
			discussed
			DatabaseID int64 `json:"databaseId"`
			Replies    struct {
				Nodes []discussed `json:"nodes"`
			} `json:"replies"`
		} `json:"nodes"`
	} `json:"comments"`
}

type discussed struct {
	ID   string `json:"id"`
	Body string `json:"body"`
	Own  bool   `json:"viewerDidAuthor"`
}

// discussions turns the pages of a discussion's comments until seen says so.
func (c *Channel) discussions(ctx context.Context, cl *github.Client, r repo, number int, bodies bool, seen func(discussion) bool) error {
	args := map[string]any{"owner": r.owner, "name": r.name, "number": number, "after": nil, "bodies": bodies}
	for range maxPages {
		var out struct {
			Repository struct {
				Discussion *discussion `json:"discussion"`
			} `json:"repository"`
		}
		if err := c.query(ctx, cl, discussionQuery, args, &out); err != nil {
			return err
		}
		d := out.Repository.Discussion
		if d == nil || d.ID == "" {
			return &channels.SendError{Verdict: channels.Unknown, Reason: "answer without discussion"}
		}
		if seen(*d) || !d.Comments.PageInfo.HasNextPage {
			return nil
		}
		args["after"] = d.Comments.PageInfo.EndCursor
	}
	return &channels.SendError{Verdict: channels.Unknown, Reason: "too many comments to look through"}
}

// discuss comments on a discussion, or replies to the comment that is the root.
func (c *Channel) discuss(ctx context.Context, cl *github.Client, r repo, at spot, body string) (string, error) {
	input := map[string]any{"body": body}
	err := c.discussions(ctx, cl, r, at.number, false, func(d discussion) bool {
		input["discussionId"] = d.ID
		for _, n := range d.Comments.Nodes {
			if n.DatabaseID == at.root {
				input["replyToId"] = n.ID
			}
		}
		return at.root == 0 || input["replyToId"] != nil
	})
	if err != nil {
		return "", before(err)
	}
	if at.root != 0 && input["replyToId"] == nil {
		return "", &channels.SendError{Verdict: channels.Rejected, Reason: "comment is gone"}
	}
	var out struct {
		Add struct {
			Comment struct {
				ID string `json:"id"`
			} `json:"comment"`
		} `json:"addDiscussionComment"`
	}
	err = c.query(ctx, cl, `mutation($input:AddDiscussionCommentInput!){addDiscussionComment(input:$input){comment{id}}}`, map[string]any{"input": input}, &out)
	return out.Add.Comment.ID, err
}

// findDiscussed looks for a comment of ours among all of the discussion: what
// stood below a comment that is gone may stand elsewhere.
func (c *Channel) findDiscussed(ctx context.Context, cl *github.Client, r repo, at spot, is func(body string) bool) (ref string, err error) {
	err = c.discussions(ctx, cl, r, at.number, true, func(d discussion) bool {
		for _, n := range d.Comments.Nodes {
			for _, m := range append(n.Replies.Nodes, n.discussed) {
				if m.Own && is(m.Body) {
					ref = m.ID
				}
			}
		}
		return ref != ""
	})
	return ref, err
}

// reactions are how an answer's progress is shown.
var reactions = map[channels.Progress]string{channels.Working: "EYES", channels.Answered: "ROCKET", channels.Failed: "CONFUSED"}

// reactionMutation puts one reaction and takes back the others, in one request.
func reactionMutation(p channels.Progress) string {
	var b strings.Builder
	b.WriteString("mutation($id:ID!){")
	for _, q := range []channels.Progress{channels.Working, channels.Answered, channels.Failed} {
		verb, name := "removeReaction", "less"+reactions[q]
		if q == p {
			verb, name = "addReaction", "more"
		}
		b.WriteString(name + ":" + verb + "(input:{subjectId:$id,content:" + reactions[q] + "}){clientMutationId}")
	}
	b.WriteString("}")
	return b.String()
}
