package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

const (
	sweepEvery = 10 * time.Minute
	overlap    = 5 * time.Minute // how much earlier a sweep looks
	pageSize   = 100
	mostPages  = 20 // of an account
	takeSize   = 50 // events admitted at once
)

// Listen holds no connection: it asks every few minutes for the events that
// did not arrive meanwhile, because Stripe switches an endpoint off that fails for
// long. Without a key it asks for nothing.
func (c *Channel) Listen(ctx context.Context, take channels.Take) error {
	if c.api == nil {
		return nil
	}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	since := c.now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		began := c.now()
		err := c.Missed(ctx, since.Add(-overlap), nil, take)
		var e *CallError
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			since = began
		case errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && len(c.accounts) == 0):
			return fmt.Errorf("%w: %w", channels.ErrFatal, err)
		} // else once more from the same time
	}
}

// Missed hands on the events since then that did not arrive everywhere, in the
// own account and in the connected ones that the settings name. Followed threads
// need nothing more: nobody speaks there. Thin events cannot be asked for, and
// without a key nothing can, of which Setup warns.
func (c *Channel) Missed(ctx context.Context, since time.Time, _ []chat.Thread, take channels.Take) error {
	if c.api == nil {
		return nil
	}
	suffix := ""
	if c.mode == "test" {
		suffix = testSuffix
	}
	var errs []error
	for _, account := range append([]string{""}, c.accounts...) {
		if account != "" {
			account += suffix
		}
		errs = append(errs, c.missed(ctx, account, since, take))
	}
	return errors.Join(errs...)
}

// missed is Missed for one account. Stripe lists the newest first.
func (c *Channel) missed(ctx context.Context, account string, since time.Time, take channels.Take) error {
	var all []object
	more := true
	query := url.Values{
		"created[gte]": {strconv.FormatInt(since.Unix(), 10)}, "delivery_success": {"false"}, "limit": {strconv.Itoa(pageSize)},
	}
	for page := 0; more && page < mostPages; page++ {
		data, err := c.Call(ctx, account, http.MethodGet, "/v1/events", query, "")
		if err != nil {
			return fmt.Errorf("events of %q: %w", account, err)
		}
		var list struct {
			Data []json.RawMessage `json:"data"`
			More bool              `json:"has_more"`
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("events of %q: the answer is no list", account)
		}
		for _, one := range list.Data {
			o, err := parse(one)
			if err != nil {
				return fmt.Errorf("events of %q: %w", account, err)
			}
			if acct := strings.TrimSuffix(account, testSuffix); acct != "" && o.text("account") == "" {
				o["account"] = acct // asked for in its name, the event does not say so
			}
			all = append(all, o)
		}
		more = list.More && len(list.Data) > 0
		if more {
			query.Set("starting_after", all[len(all)-1].text("id"))
		}
	}
	slices.Reverse(all)
	for chunk := range slices.Chunk(all, takeSize) {
		var in channels.Inbound
		for _, o := range chunk {
			one, err := c.inbound(o)
			if err != nil {
				one = ignored(o.text("id"), "malformed")
			}
			in.Events = append(in.Events, one.Events...)
			in.Ignored = append(in.Ignored, one.Ignored...)
		}
		if err := take(ctx, in); err != nil {
			return err
		}
	}
	if more {
		return fmt.Errorf("events of %q: there are more than %d; the oldest were not looked at", account, mostPages*pageSize)
	}
	return nil
}
