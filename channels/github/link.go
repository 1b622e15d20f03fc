package github

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/go-github/v62/github"
)

var (
	linkPath  = regexp.MustCompile(`^/([\w.-]+)/([\w.-]+)/(issues|pull)/(\d+)(/files)?$`)
	linkPlace = regexp.MustCompile(`^(issuecomment-|discussion_r|r)(\d+)$`)
)

// Linked asks GitHub what a link to an issue, a pull request or a comment in one
// leads to.
func (c *Channel) Linked(ctx context.Context, link *url.URL) (string, error) {
	m := linkPath.FindStringSubmatch(strings.TrimSuffix(link.Path, "/"))
	host := strings.TrimPrefix(c.api.Host, "api.")
	if m == nil || link.Host != host || link.Scheme != c.api.Scheme {
		return "", nil
	}
	cl, err := c.named(ctx, m[1], m[2])
	if err != nil {
		return "", err
	}
	path := "repos/" + m[1] + "/" + m[2] + "/issues/" + m[4]
	if link.Fragment != "" {
		p := linkPlace.FindStringSubmatch(link.Fragment)
		switch {
		case p == nil:
			return "", nil
		case p[1] == "issuecomment-":
			path = "repos/" + m[1] + "/" + m[2] + "/issues/comments/" + p[2]
		default:
			path = "repos/" + m[1] + "/" + m[2] + "/pulls/comments/" + p[2]
		}
	}
	var t thing
	if err := get(ctx, cl, path, &t); err != nil {
		if statusOf(err) == http.StatusNotFound {
			return "", nil
		}
		return "", err
	}
	return t.NodeID + "/created", nil
}

// named returns a client that may act in the repository of a name.
func (c *Channel) named(ctx context.Context, owner, name string) (*github.Client, error) {
	if c.appID == 0 {
		return c.client(ctx, 0)
	}
	app, err := c.appClient()
	if err != nil {
		return nil, err
	}
	in, _, err := app.Apps.FindRepositoryInstallation(ctx, owner, name)
	if err != nil {
		return nil, classify(err)
	}
	return c.client(ctx, in.GetID())
}
