package slack

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
)

// wanted are the scopes that an installation asks for; channels/slack/manifest.yaml
// says what for.
var wanted = []string{
	"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read", "files:write", "groups:history",
	"groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read", "reactions:read", "reactions:write", "usergroups:read", "users:read",
}

const (
	stateCookie  = "heddle_slack_state"
	stateLife    = 10 * time.Minute // of an installation that was begun
	mostStates   = 1000             // that were used and could be again
	exchangeTime = 15 * time.Second
)

// Pages are those of an installation by people: "install" sends them to Slack,
// which sends them back to "oauth".
func (c *Channel) Pages() map[string]http.HandlerFunc {
	if c.clientID == "" {
		return nil
	}
	return map[string]http.HandlerFunc{"install": c.install, "oauth": c.finish}
}

// install begins: what comes back must bring what the browser is given now.
func (c *Channel) install(w http.ResponseWriter, _ *http.Request) {
	state := c.newState()
	http.SetCookie(w, &http.Cookie{
		Name: stateCookie, Value: state, Path: "/" + Name + "/oauth", MaxAge: int(stateLife / time.Second), HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode,
	})
	w.Header().Set("Cache-Control", "no-store")
	to := c.authorize + "?" + url.Values{"client_id": {c.clientID}, "scope": {strings.Join(wanted, ",")}, "state": {state}}.Encode()
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusFound)
}

// finish ends it.
func (c *Channel) finish(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: stateCookie, Path: "/" + Name + "/oauth", MaxAge: -1, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode})
	q := r.URL.Query()
	cookie, err := r.Cookie(stateCookie)
	code := q.Get("code")
	switch {
	case err != nil || !hmac.Equal([]byte(cookie.Value), []byte(q.Get("state"))) || !c.useState(cookie.Value):
		tell(w, http.StatusBadRequest, "This installation was not begun in this browser, or has ended. Begin again at /slack/install.")
		return
	case code == "":
		tell(w, http.StatusOK, "The app was not installed.")
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), exchangeTime) // the code is good for one use
	defer cancel()
	if err := c.exchange(ctx, code); err != nil {
		tell(w, http.StatusBadGateway, "The app was not installed: "+reasonOf(err)+".")
		return
	}
	tell(w, http.StatusOK, "The app is installed. Invite it to a channel and mention it; this window can be closed.")
}

// reasonOf is what may be shown of a failure.
func reasonOf(err error) string {
	if errors.Is(err, errNotKept) {
		return errNotKept.Error()
	}
	return classify(err).Reason
}

var errNotKept = errors.New("the installation could not be kept")

// exchange makes an installation of a code.
func (c *Channel) exchange(ctx context.Context, code string) error {
	r, err := slack.GetOAuthV2ResponseContext(ctx, c.http, c.clientID, c.clientSecret, code, "", slack.OAuthOptionAPIURL(c.apiURL))
	if err != nil {
		return err
	}
	k := keptInstallation{
		Account: r.Team.ID, App: r.AppID, User: r.BotUserID, Token: r.AccessToken, Refresh: r.RefreshToken,
		Life: time.Duration(r.ExpiresIn) * time.Second, At: c.now(),
	}
	if r.IsEnterpriseInstall {
		k.Account, k.Org = r.Enterprise.ID, true
	}
	if k.Account == "" || k.Token == "" {
		return errors.New("answer without workspace or token")
	}
	if k.Refresh != "" {
		k.Until = c.now().Add(k.Life)
	}
	i := c.open(k.Token)
	if err := i.identify(ctx); err != nil {
		return err
	}
	k.User, k.Bot = i.self().user, i.self().bot
	select {
	case c.installing <- struct{}{}:
		defer func() { <-c.installing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := c.keep(ctx, k); err != nil {
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	return nil
}

// newState is what an installation is known by: random, with its time, signed.
func (c *Channel) newState() string {
	text := rand.Text() + "." + strconv.FormatInt(c.now().Unix(), 10)
	return text + "." + c.signState(text)
}

func (c *Channel) signState(text string) string {
	mac := hmac.New(sha256.New, []byte(c.clientSecret))
	mac.Write([]byte("state " + text))
	return hex.EncodeToString(mac.Sum(nil))
}

// useState says whether a state is ours, still good, and used for the first time.
func (c *Channel) useState(state string) bool {
	i := strings.LastIndexByte(state, '.')
	if i < 0 || !hmac.Equal([]byte(state[i+1:]), []byte(c.signState(state[:i]))) {
		return false
	}
	_, stamp, _ := strings.Cut(state[:i], ".")
	at, ok := channels.Seconds(stamp)
	age := c.now().Sub(time.Unix(at, 0))
	if !ok || age > stateLife || age < -time.Minute {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for s, used := range c.states {
		if c.now().Sub(used) > stateLife {
			delete(c.states, s)
		}
	}
	if _, used := c.states[state]; used || len(c.states) >= mostStates {
		return false
	}
	c.states[state] = c.now()
	return true
}

// tell shows a page with one sentence.
func tell(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address holds the code
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<!doctype html>\n<title>Heddle</title>\n<p>%s</p>\n", html.EscapeString(text)) // who went away needs no page
}
