package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/chat"
)

// Role decides by the permission that GitHub says the person has on the
// repository now. It is asked by login, which people may change and give to
// others, so the answer must be about the author's id.
func (c *Channel) Role(ctx context.Context, account string, a chat.Author) (chat.Role, error) {
	id, err := strconv.ParseInt(a.ID, 10, 64)
	if err != nil || id <= 0 || a.Bot {
		return chat.Outsider, nil
	}
	if slices.Contains(c.access.Admins, a.ID) {
		return chat.Admin, nil
	}
	r, cl, _, err := c.place(ctx, account)
	if err != nil {
		return chat.Outsider, fmt.Errorf("role of %d: %w", id, classify(err))
	}
	has, err := c.permission(ctx, cl, r, a.Name, id)
	if err != nil {
		return chat.Outsider, fmt.Errorf("role of %d: %w", id, classify(err))
	}
	rank := slices.Index(permissions, has)
	for _, w := range [...]struct {
		role chat.Role
		from string
	}{{chat.Maintainer, c.access.Maintainers}, {chat.Member, c.access.Members}} {
		if least := slices.Index(permissions, w.from); least >= 0 && rank >= least {
			return w.role, nil
		}
	}
	return chat.Outsider, nil
}

// permission returns one of permissions, "" for none. login is a guess.
func (c *Channel) permission(ctx context.Context, cl *github.Client, r repo, login string, id int64) (string, error) {
	for _, guess := range []bool{true, false} {
		var level struct {
			Permission string `json:"permission"`
			RoleName   string `json:"role_name"`
			User       struct {
				ID int64 `json:"id"`
			} `json:"user"`
		}
		if !guess {
			var who struct {
				Login string `json:"login"`
			}
			if err := get(ctx, cl, "user/"+strconv.FormatInt(id, 10), &who); err != nil {
				if statusOf(err) == http.StatusNotFound {
					return "", nil // gone
				}
				return "", err
			}
			login = who.Login
		}
		if login == "" {
			continue
		}
		err := get(ctx, cl, "repos/"+r.owner+"/"+r.name+"/collaborators/"+url.PathEscape(login)+"/permission", &level)
		switch {
		case statusOf(err) == http.StatusNotFound && guess:
			continue // nobody has that login any more
		case statusOf(err) == http.StatusNotFound:
			return "", nil
		case err != nil:
			return "", err
		case level.User.ID != id:
			continue
		case slices.Contains(permissions, level.RoleName):
			return level.RoleName, nil
		}
		return level.Permission, nil // of a role of the organisation's own, what it is based on
	}
	return "", nil
}

// Open says that whoever may read the repository may read every thread in it.
func (c *Channel) Open(context.Context, chat.Thread) (bool, error) { return true, nil }
