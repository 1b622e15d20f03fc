package github

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// client calls a hub.
type client struct {
	t    *testing.T
	hub  *Hub
	base string
}

func serve(t *testing.T, o Options) client {
	t.Helper()
	h := New(o)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return client{t, h, srv.URL}
}

func (c client) call(method, path, token string, body any) (int, map[string]any) {
	c.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequest(method, c.base+path, bytes.NewReader(b))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	noFollow := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := noFollow.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out any
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		c.t.Fatal(err)
	}
	m, _ := out.(map[string]any)
	return resp.StatusCode, m
}

// jwt signs as the App would.
func (c client) jwt(alg string, iss any, iat, exp time.Duration) string {
	block, _ := pem.Decode([]byte(c.hub.PrivateKey()))
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		c.t.Fatal(err)
	}
	now := c.hub.opt.Clock()
	claims, _ := json.Marshal(map[string]any{"iss": iss, "iat": now.Add(iat).Unix(), "exp": now.Add(exp).Unix()})
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"`+alg+`"}`)) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		c.t.Fatal(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func (c client) token() string {
	_, out := c.call("POST", "/app/installations/9/access_tokens", c.jwt("RS256", "7", -time.Minute, 9*time.Minute), nil)
	token, _ := out["token"].(string)
	return token
}

// The App shows itself as GitHub wants it, or not at all.
func TestJWT(t *testing.T) {
	t.Parallel()
	c := serve(t, Options{})
	good := c.jwt("RS256", "7", -time.Minute, 9*time.Minute)
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"good":          {good, 200},
		"number":        {c.jwt("RS256", 7, -time.Minute, 9*time.Minute), 200},
		"other app":     {c.jwt("RS256", "8", -time.Minute, 9*time.Minute), 401},
		"other method":  {c.jwt("none", "7", -time.Minute, 9*time.Minute), 401},
		"too long":      {c.jwt("RS256", "7", -time.Minute, 11*time.Minute), 401},
		"over":          {c.jwt("RS256", "7", -10*time.Minute, -time.Second), 401},
		"not yet":       {c.jwt("RS256", "7", time.Minute, 9*time.Minute), 401},
		"tampered with": {good[:len(good)-4] + "AAAA", 401},
		"nothing":       {"", 401},
		"a token":       {c.token(), 401},
	} {
		if got, out := c.call("GET", "/app", tc.token, nil); got != tc.want {
			t.Errorf("%s: %d %v, want %d", name, got, out, tc.want)
		}
	}
}

// What GitHub refuses is refused, and is not in the ledger.
func TestRefusals(t *testing.T) {
	t.Parallel()
	c := serve(t, Options{Repos: []Repo{{ID: 5, FullName: "fake/repo", Installation: 9}, {ID: 6, FullName: "other/repo", Installation: 10}}})
	token := c.token()
	c.hub.Say(Words{Text: "x"})
	c.hub.Say(Words{Number: 2, Text: "x"})
	c.hub.Lock(5, "issue", 2)
	c.hub.Say(Words{Repo: 6, Text: "x"})
	root := c.hub.Say(Words{Kind: "pr", Number: 8, Review: true, Text: "x"})
	reply := c.hub.Say(Words{Kind: "pr", Number: 8, Review: true, Root: root.ID, Text: "x"})
	const comments = "/repos/fake/repo/issues/1/comments"
	for name, tc := range map[string]struct {
		path, token string
		body        map[string]any
		want        int
	}{
		"no token":           {comments, "", map[string]any{"body": "x"}, 401},
		"JWT for a token":    {comments, c.jwt("RS256", "7", -time.Minute, 9*time.Minute), map[string]any{"body": "x"}, 401},
		"blank":              {comments, token, map[string]any{"body": " "}, 422},
		"too long":           {comments, token, map[string]any{"body": strings.Repeat("x", 65537)}, 422},
		"locked":             {"/repos/fake/repo/issues/2/comments", token, map[string]any{"body": "x"}, 403},
		"no such issue":      {"/repos/fake/repo/issues/9/comments", token, map[string]any{"body": "x"}, 404},
		"not installed":      {"/repos/other/repo/issues/1/comments", token, map[string]any{"body": "x"}, 404},
		"reply to a reply":   {"/repos/fake/repo/pulls/8/comments", token, map[string]any{"body": "x", "in_reply_to": reply.ID}, 422},
		"no such call":       {"/repos/fake/repo/wiki", token, map[string]any{"body": "x"}, 404},
		"review of an issue": {"/repos/fake/repo/pulls/1/comments", token, map[string]any{"body": "x", "in_reply_to": 1}, 404},
	} {
		if got, out := c.call("POST", tc.path, tc.token, tc.body); got != tc.want {
			t.Errorf("%s: %d %v, want %d", name, got, out, tc.want)
		}
	}
	if n := len(c.hub.Posts()); n != 0 {
		t.Errorf("%d posts", n)
	}
	if got, _ := c.call("POST", comments, token, map[string]any{"body": "x"}); got != 201 || len(c.hub.Posts()) != 1 {
		t.Errorf("status %d, posts %v", got, c.hub.Posts())
	}
	c.hub.Rename(5, "fake/new")
	if got, _ := c.call("POST", comments, token, map[string]any{"body": "x"}); got != 307 {
		t.Errorf("the old name: %d", got)
	}
	c.hub.Suspend(9, true)
	if got, _ := c.call("GET", "/repositories/5", token, nil); got != 401 {
		t.Errorf("suspended: %d", got)
	}
}

// Writes that come too soon are refused, for one installation.
func TestGap(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := serve(t, Options{Gap: time.Second, Clock: func() time.Time { return now }})
	token := c.token()
	c.hub.Say(Words{Text: "x"})
	for i, want := range []int{201, 403, 201} {
		if i == 2 {
			now = now.Add(time.Second)
		}
		if got, out := c.call("POST", "/repos/fake/repo/issues/1/comments", token, map[string]any{"body": "x"}); got != want {
			t.Errorf("write %d: %d %v, want %d", i, got, out, want)
		}
	}
}

// A reaction stands once, and only what stands can be taken back.
func TestReactions(t *testing.T) {
	t.Parallel()
	c := serve(t, Options{})
	token, d := c.token(), c.hub.Say(Words{Text: "x"})
	for _, tc := range []struct {
		verb   string
		failed bool
		want   string
	}{{"add", false, "[EYES]"}, {"add", false, "[EYES]"}, {"remove", false, "[]"}, {"remove", true, "[]"}} {
		_, out := c.call("POST", "/graphql", token, map[string]any{
			"query":     "mutation($id:ID!){a:" + tc.verb + "Reaction(input:{subjectId:$id,content:EYES}){clientMutationId}}",
			"variables": map[string]any{"id": d.NodeID},
		})
		if got := fmt.Sprint(c.hub.Reactions(d.NodeID)); got != tc.want || (out["errors"] != nil) != tc.failed {
			t.Errorf("%s: %s, %v", tc.verb, got, out)
		}
	}
}
