package github

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// object is what is sent.
type object map[string]any

// A reply is an answer: a status and what is sent.
type reply struct {
	status int
	body   any
	header http.Header
}

func fail(status int, message string) reply {
	return reply{status: status, body: object{"message": message, "documentation_url": "https://docs.github.com/rest"}}
}

var (
	notFound = fail(http.StatusNotFound, "Not Found")
	badToken = fail(http.StatusUnauthorized, "Bad credentials")
	tooSoon  = reply{status: http.StatusForbidden, body: object{
		"message":           "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
		"documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
	}}
)

// A route is one kind of call. Its handler runs under the lock.
type route struct {
	name    string
	pattern string // method and path; {} stands for one part, {repo} for owner and name
	who     string // "app", "token" or "" for anybody
	handle  func(*Hub, asked) reply
}

var routes = []route{
	{"app", "GET /app", "app", (*Hub).getApp},
	{"convert", "POST /app-manifests/{}/conversions", "", (*Hub).convert},
	{"token", "POST /app/installations/{}/access_tokens", "app", (*Hub).newToken},
	{"list deliveries", "GET /app/hook/deliveries", "app", (*Hub).listDeliveries},
	{"redeliver", "POST /app/hook/deliveries/{}/attempts", "app", (*Hub).redeliver},
	{"installation", "GET /repositories/{}/installation", "app", (*Hub).installation},
	{"named installation", "GET /repos/{repo}/installation", "app", (*Hub).namedInstallation},
	{"login", "GET /users/{}", "", (*Hub).userByLogin},
	{"me", "GET /user", "token", (*Hub).me},
	{"user", "GET /user/{}", "token", (*Hub).userByID},
	{"repository", "GET /repositories/{}", "token", (*Hub).repository},
	{"permission", "GET /repos/{repo}/collaborators/{}/permission", "token", (*Hub).permission},
	{"comment", "POST /repos/{repo}/issues/{}/comments", "token", (*Hub).addComment},
	{"list comments", "GET /repos/{repo}/issues/{}/comments", "token", (*Hub).listComments},
	{"all comments", "GET /repos/{repo}/issues/comments", "token", (*Hub).allComments},
	{"all issues", "GET /repos/{repo}/issues", "token", (*Hub).allIssues},
	{"issue", "GET /repos/{repo}/issues/{}", "token", (*Hub).getThing},
	{"a comment", "GET /repos/{repo}/issues/comments/{}", "token", (*Hub).getComment},
	{"a review comment", "GET /repos/{repo}/pulls/comments/{}", "token", (*Hub).getComment},
	{"review comment", "POST /repos/{repo}/pulls/{}/comments", "token", (*Hub).addReview},
	{"list review comments", "GET /repos/{repo}/pulls/{}/comments", "token", (*Hub).listReview},
	{"all review comments", "GET /repos/{repo}/pulls/comments", "token", (*Hub).allReview},
	{"pull request", "GET /repos/{repo}/pulls/{}", "token", (*Hub).getThing},
	{"commit comment", "POST /repos/{repo}/commits/{}/comments", "token", (*Hub).addCommit},
	{"list commit comments", "GET /repos/{repo}/commits/{}/comments", "token", (*Hub).listCommit},
	{"graphql", "POST /graphql", "token", (*Hub).graphql},
}

// match returns the parts of a path that a pattern leaves open. "comments" is no number.
func (rt route) match(method, path string) (args []string, ok bool) {
	want := strings.Split(strings.ReplaceAll(rt.pattern, "{repo}", "{}/{}"), "/")
	got := strings.Split(method+" "+path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	for i, w := range want {
		switch {
		case w == "{}" && got[i] != "" && got[i] != "comments" && got[i] != "installation":
			args = append(args, got[i])
		case w != got[i]:
			return nil, false
		}
	}
	return args, true
}

// asked is a call with what its handler needs.
type asked struct {
	*http.Request
	route
	args  []string
	body  []byte
	grant grant // of the token
	repo  *repo // of /repos/{repo}/...
}

// ServeHTTP answers one API call.
func (h *Hub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return // the caller went away
	}
	path := r.URL.Path
	if rest, ok := strings.CutPrefix(path, "/api/v3/"); ok {
		path = "/" + rest
	} else if path == "/api/graphql" {
		path = "/graphql"
	}
	a := asked{Request: r, body: body}
	for _, rt := range routes {
		if args, ok := rt.match(r.Method, path); ok {
			a.route, a.args = rt, args
			break
		}
	}
	h.mu.Lock()
	h.calls[a.name]++
	call := Call{Method: r.Method, Path: path, Name: a.name, Body: body, N: h.calls[a.name]}
	h.mu.Unlock()
	var f Fault
	if h.opt.Hook != nil {
		f = h.opt.Hook(call)
	}
	switch {
	case f.Hang:
		<-r.Context().Done()
		return
	case f.Lose:
		panic(http.ErrAbortHandler) // how net/http cuts a connection
	case f.Status != 0:
		send(rw, reply{f.Status, object{"message": f.Message}, f.Header})
		return
	}
	out := h.answer(a, path)
	if f.Stall {
		<-r.Context().Done()
		return
	}
	if f.Cut {
		panic(http.ErrAbortHandler)
	}
	send(rw, out)
}

func send(rw http.ResponseWriter, out reply) {
	for k, v := range out.header {
		rw.Header()[k] = v
	}
	rw.Header().Set("Content-Type", "application/json; charset=utf-8")
	rw.WriteHeader(out.status)
	_ = json.NewEncoder(rw).Encode(out.body) // a caller that went away needs no answer
}

// answer checks who asks and hands the call on.
func (h *Hub) answer(a asked, path string) reply {
	token, _ := strings.CutPrefix(a.Header.Get("Authorization"), "Bearer ")
	h.mu.Lock()
	defer h.mu.Unlock()
	switch a.who {
	case "app":
		if err := h.checkJWT(token); err != nil {
			return fail(http.StatusUnauthorized, err.Error())
		}
	case "token":
		var ok bool
		if a.grant, ok = h.tokens[token]; h.opt.Token != "" && token == h.opt.Token {
			a.grant, ok = grant{}, true
		} else if ok && (h.suspended[a.grant.installation] || !h.opt.Clock().Before(a.grant.until)) {
			ok = false
		}
		if !ok {
			return badToken
		}
	}
	switch {
	case a.handle == nil:
		return notFound
	case strings.Contains(a.pattern, "{repo}"):
		var moved bool
		if a.repo, moved = h.named(a.args[0] + "/" + a.args[1]); a.repo == nil || !a.may(a.repo) {
			return notFound
		}
		if moved {
			return redirect(a, path)
		}
		a.args = a.args[2:]
	}
	if a.Method == http.MethodPost && a.who == "token" && !h.enter(a.grant.installation) {
		return tooSoon
	}
	return a.handle(h, a)
}

// may tells whether the token is good for the repository.
func (a asked) may(r *repo) bool {
	return a.grant.installation == 0 || a.grant.installation == r.Installation
}

// redirect is what the old name of a repository leads to.
func redirect(a asked, path string) reply {
	rest := strings.SplitN(path, "/", 5)[4]
	to := fmt.Sprintf("http://%s/repositories/%d/%s", a.Host, a.repo.ID, rest)
	status := http.StatusMovedPermanently
	if a.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	return reply{status, object{"message": "Moved Permanently", "url": to}, http.Header{"Location": {to}}}
}

// named finds a repository by a name that it has or had.
func (h *Hub) named(name string) (r *repo, moved bool) {
	for _, r := range h.repos {
		if strings.EqualFold(r.FullName, name) {
			return r, false
		}
	}
	for _, r := range h.repos {
		for _, old := range r.old {
			if strings.EqualFold(old, name) {
				return r, true
			}
		}
	}
	return nil, false
}

// enter notes a write and tells whether GitHub would take it so soon.
func (h *Hub) enter(installation int64) bool {
	now := h.opt.Clock()
	if h.opt.Gap > 0 && now.Sub(h.wrote[installation]) < h.opt.Gap {
		return false
	}
	h.wrote[installation] = now
	return true
}

var errJWT = errors.New("a JSON web token could not be decoded")

// checkJWT accepts what the App's key has signed for now.
func (h *Hub) checkJWT(token string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return errJWT
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(&h.key().PublicKey, crypto.SHA256, sum[:], sig) != nil {
		return errJWT
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Iat, Exp int64
		Iss      any
	}
	for i, v := range []any{&head, &claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(b, v) != nil {
			return errJWT
		}
	}
	now := h.opt.Clock().Unix()
	switch {
	case head.Alg != "RS256":
		return errors.New("not signed by RS256")
	case fmt.Sprint(claims.Iss) != strconv.FormatInt(h.opt.AppID, 10):
		return errors.New("claim iss is not the app")
	case claims.Iat > now:
		return errors.New("claim iat is in the future")
	case claims.Exp <= now || claims.Exp > now+int64((10*time.Minute).Seconds()):
		return errors.New("claim exp is past or too far in the future")
	}
	return nil
}
