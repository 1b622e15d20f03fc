package slack

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// tokenLife is how long a token lasts where they are rotated.
const tokenLife = 12 * time.Hour

// grants are what people have agreed to; guarded by the workspace's lock.
type grants struct {
	codes   map[string]bool      // good for one use
	tokens  map[string]time.Time // of bots, until when; zero for good
	refresh map[string]bool      // good for one use
}

// Agree lets a person of the workspace agree to an installation of the app, and
// returns the code that their browser brings.
func (w *Workspace) Agree() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	code := w.mint("code")
	w.grants.codes[code] = true
	return code
}

// mint makes a text that names the workspace, see Several.
func (w *Workspace) mint(kind string) string {
	w.stamps++
	return kind + "-" + w.opt.Team + "-" + strconv.Itoa(w.stamps)
}

// Uninstall removes the app: no token of it is good any more. It delivers
// app_uninstalled and tokens_revoked, which come in any order.
func (w *Workspace) Uninstall() (uninstalled, revoked Delivery) {
	w.mu.Lock()
	clear(w.grants.tokens)
	clear(w.grants.refresh)
	w.mu.Unlock()
	return w.Event(map[string]any{"type": "app_uninstalled"}), w.Event(map[string]any{"type": "tokens_revoked", "tokens": map[string]any{"bot": []string{w.opt.BotUser}}})
}

// good says what is wrong with a bot token, "" if it is good.
func (w *Workspace) good(token string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, minted := w.grants.tokens[token]
	switch {
	case token == w.opt.BotToken || minted && until.IsZero():
		return ""
	case !minted:
		return "invalid_auth"
	case w.opt.Clock().After(until):
		return "token_expired"
	}
	return ""
}

// access turns a code, or a refresh token, into a token.
func (w *Workspace) access(args map[string]string) answer {
	switch {
	case args["client_id"] != w.opt.ClientID || w.opt.ClientID == "":
		return fail("invalid_client_id")
	case args["client_secret"] != w.opt.ClientSecret:
		return fail("bad_client_secret")
	case args["grant_type"] == "refresh_token" && !w.grants.refresh[args["refresh_token"]]:
		return fail("invalid_refresh_token")
	case args["grant_type"] != "refresh_token" && !w.grants.codes[args["code"]]:
		return fail("invalid_code")
	}
	delete(w.grants.refresh, args["refresh_token"])
	delete(w.grants.codes, args["code"])
	token := w.mint("xoxb")
	a := answer{
		"ok": true, "access_token": token, "token_type": "bot", "scope": "chat:write", "bot_user_id": w.opt.BotUser, "app_id": w.opt.AppID,
		"team": answer{"id": w.opt.Team, "name": "Fake"}, "enterprise": nil, "is_enterprise_install": false, "authed_user": answer{"id": "U0PERSON"},
	}
	if w.opt.Enterprise != "" {
		a["team"], a["enterprise"], a["is_enterprise_install"] = nil, answer{"id": w.opt.Enterprise, "name": "Org"}, true
	}
	w.grants.tokens[token] = time.Time{}
	if w.opt.Rotate {
		w.grants.tokens[token] = w.opt.Clock().Add(tokenLife)
		refresh := w.mint("xoxe")
		w.grants.refresh[refresh] = true
		a["refresh_token"], a["expires_in"] = refresh, int(tokenLife/time.Second)
	}
	return a
}

// Several workspaces behind one address, as behind Slack's: a call goes to the one
// that its token or code is of.
func Several(ws ...*Workspace) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body)) // what is no form has its token in the header
		said := r.Header.Get("Authorization") + " " + form.Get("token") + " " + form.Get("code") + " " + form.Get("refresh_token")
		for _, w := range ws {
			if strings.Contains(said, "-"+w.opt.Team+"-") || strings.HasSuffix(strings.TrimSpace(said), w.opt.BotToken) {
				w.ServeHTTP(rw, r)
				return
			}
		}
		ws[0].ServeHTTP(rw, r)
	})
}
