package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// groupAge is how long the members of a user group are believed: Slack allows
// few of these calls a minute.
const groupAge = time.Minute

type group struct {
	members []string
	at      time.Time
}

// Role decides by what Slack says of the person now. Being an admin or owner of
// the workspace grants nothing by itself. A user group that Slack refuses to show
// (the app lacks usergroups:read, the group is gone) grants nothing; it is an
// error only if nothing else grants a role.
func (c *Channel) Role(ctx context.Context, account string, a chat.Author) (chat.Role, error) {
	if a.ID == "" {
		return chat.Outsider, nil
	}
	w, err := c.at(ctx, account)
	if err != nil {
		return chat.Outsider, fmt.Errorf("role of %s: %w", a.ID, err)
	}
	u, err := w.api.GetUserInfoContext(ctx, a.ID)
	if err != nil {
		return chat.Outsider, fmt.Errorf("role of %s: %w", a.ID, classify(err))
	}
	if u.Deleted || u.ID != a.ID {
		return chat.Outsider, nil
	}
	home := u.TeamID == account && (a.Account == "" || a.Account == account) || slices.Contains(u.Enterprise.Teams, account)
	full := home && !a.Bot && !guest(u)
	pin := a.ID
	if !home {
		pin = a.Account + "/" + a.ID
	}
	var failed error
	for _, r := range []struct {
		role chat.Role
		ids  []string
	}{{chat.Admin, c.access.Admins}, {chat.Maintainer, c.access.Maintainers}, {chat.Member, c.access.Members}} {
		if slices.Contains(r.ids, pin) || full && slices.Contains(r.ids, "all") {
			return r.role, nil
		}
		for _, id := range r.ids {
			if !full || id[0] != 'S' {
				continue
			}
			in, err := c.group(ctx, w, account, id)
			var se *channels.SendError
			switch {
			case errors.As(err, &se) && se.Verdict == channels.Rejected:
				failed = err
			case err != nil:
				return chat.Outsider, err
			}
			if slices.Contains(in, a.ID) {
				return r.role, nil
			}
		}
	}
	return chat.Outsider, failed
}

func guest(u *slack.User) bool {
	return u.IsRestricted || u.IsUltraRestricted || u.IsStranger || u.IsBot || u.ID == "USLACKBOT"
}

// group returns the members of a user group of a workspace.
func (c *Channel) group(ctx context.Context, w *installation, account, id string) ([]string, error) {
	key := account + "/" + id
	c.mu.Lock()
	g, ok := c.groups[key]
	c.mu.Unlock()
	if ok && c.now().Sub(g.at) < groupAge {
		return g.members, nil
	}
	g.at = c.now()
	members, err := w.api.GetUserGroupMembersContext(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("members of user group %s: %w", id, classify(err))
	}
	g.members = members
	c.mu.Lock()
	c.groups[key] = g
	c.mu.Unlock()
	return members, nil
}
