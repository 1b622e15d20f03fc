package github

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// stateFor is how long GitHub keeps the code of an App that was just made.
const stateFor = time.Hour

// An Installer lets an operator make the GitHub App by a browser, while none is
// set. It shows the App's secrets once, to whoever has its token, and keeps
// nothing.
type Installer struct {
	token string
	api   *url.URL
	web   string // address of GitHub for browsers
	http  *http.Client
	now   func() time.Time
}

// NewInstaller checks the token and the address of the API and does no I/O.
func NewInstaller(token, apiURL string) (*Installer, error) {
	if len(token) < 16 || config.Placeholder(token) {
		return nil, fmt.Errorf("GITHUB_SETUP_TOKEN: want 16 bytes and more, such as what openssl rand -hex 32 prints")
	}
	api, _, err := endpoint(apiURL)
	if err != nil {
		return nil, err
	}
	web := api.Scheme + "://" + strings.TrimPrefix(api.Host, "api.")
	return &Installer{token: token, api: api, web: web, http: channels.NewClient(), now: time.Now}, nil
}

var _ channels.Pages = (*Installer)(nil)

// Name is "github".
func (i *Installer) Name() string { return Name }

// Pages are the first step, which sends the browser to GitHub, and the last, to
// which GitHub sends it back.
func (i *Installer) Pages() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"setup": i.begin, "setup/done": i.done}
}

// state is what GitHub must bring back: a time, and what only we can write.
func (i *Installer) state(at int64) string {
	mac := hmac.New(sha256.New, []byte(i.token))
	fmt.Fprintf(mac, "heddle setup %d", at)
	return strconv.FormatInt(at, 10) + "." + hex.EncodeToString(mac.Sum(nil))
}

func (i *Installer) fresh(state string) bool {
	text, _, _ := strings.Cut(state, ".")
	at, err := strconv.ParseInt(text, 10, 64)
	age := i.now().Sub(time.Unix(at, 0))
	return err == nil && age >= 0 && age < stateFor && hmac.Equal([]byte(state), []byte(i.state(at)))
}

var beginPage = template.Must(template.New("").Parse(`<!doctype html><title>Heddle on GitHub</title>
<h1>A GitHub App for Heddle</h1><p>GitHub will ask for its name. Its webhook will be {{.Hook}}.</p>
<form method="post" action="{{.Action}}"><input type="hidden" name="manifest" value="{{.Manifest}}"><button>Go to GitHub</button></form>
`))

var orgName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)

// begin sends a manifest of the App to GitHub, for the organisation in org or
// the browser's user.
func (i *Installer) begin(w http.ResponseWriter, r *http.Request) {
	org := r.URL.Query().Get("org")
	if subtle.ConstantTimeCompare([]byte(r.URL.Query().Get("token")), []byte(i.token)) != 1 || org != "" && !orgName.MatchString(org) {
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	base := "https://" + r.Host + "/github/"
	manifest, err := json.Marshal(map[string]any{
		"name": "Heddle", "url": "https://" + r.Host, "public": false, "redirect_url": base + "setup/done",
		"hook_attributes":     map[string]any{"url": base + routeWebhook, "active": true},
		"default_permissions": map[string]string{"metadata": "read", "contents": "read", "checks": "read", "issues": "write", "pull_requests": "write", "discussions": "write"},
		"default_events":      []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "discussion", "discussion_comment", "check_run"},
	})
	if err != nil {
		http.Error(w, "Internal Server Error", http.StatusInternalServerError) // unreachable: it holds texts only
		return
	}
	action := i.web + "/settings/apps/new?state=" + i.state(i.now().Unix())
	if org != "" {
		action = i.web + "/organizations/" + org + "/settings/apps/new?state=" + i.state(i.now().Unix())
	}
	private(w, "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action "+i.web)
	_ = beginPage.Execute(w, map[string]string{"Action": action, "Manifest": string(manifest), "Hook": base + routeWebhook}) // a browser that went away needs no page
}

// done trades the code for the App's secrets and shows them, once: GitHub takes
// a code once, and for an hour.
func (i *Installer) done(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !i.fresh(q.Get("state")) || q.Get("code") == "" || len(q.Get("code")) > 256 {
		http.Error(w, "This page was not asked for, or too long ago: begin again at /github/setup.", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 15*time.Second)
	defer cancel()
	cl := github.NewClient(&http.Client{Transport: edge{next: i.http.Transport}, CheckRedirect: i.http.CheckRedirect})
	cl.BaseURL = i.api
	app, _, err := cl.Apps.CompleteAppManifest(ctx, url.PathEscape(q.Get("code")))
	if err != nil {
		text := "GitHub did not answer as it should. Try to load this page again."
		var se *channels.SendError
		if errors.As(classify(err), &se) && se.Verdict == channels.Rejected {
			text = "GitHub does not know this code: it was used already, or is older than an hour. Begin again at /github/setup."
		}
		http.Error(w, text, http.StatusBadGateway)
		return
	}
	if _, err := parseKey(app.GetPEM()); err != nil || app.GetID() == 0 || app.GetWebhookSecret() == "" {
		http.Error(w, "GitHub's answer lacks something. Delete the App there and begin again at /github/setup.", http.StatusBadGateway)
		return
	}
	private(w, "text/plain; charset=utf-8")
	fmt.Fprintf(w, "GITHUB_APP_ID=%d\nGITHUB_WEBHOOK_SECRET=%s\nGITHUB_APP_PRIVATE_KEY_FILE=app.pem\n\n%s\n", app.GetID(), app.GetWebhookSecret(), app.GetPEM())
	fmt.Fprintf(w, "Put the key into app.pem and set these where the gateway runs; GitHub shows them only once. Unset GITHUB_SETUP_TOKEN.\n"+
		"Then install the App: %s/apps/%s/installations/new\n", i.web, app.GetSlug())
}

// private keeps a page out of caches, frames and the addresses that links tell.
func private(w http.ResponseWriter, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}
