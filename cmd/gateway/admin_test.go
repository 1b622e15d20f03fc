package main

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// api STATUS METHOD PATH [BODY [PATTERN ...]]: a request to the API below
// /api/v1; the answer must have the status and match. $API_TOKEN is sent
// instead of the token if it is set; $MATCH becomes what the last pattern with a
// group has found there.
func cmdAPI(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 3, "api STATUS METHOD PATH [BODY [PATTERN ...]]")
	w, ctx := in(ts)
	body := ""
	if len(args) > 3 {
		body = args[3]
	}
	req, err := http.NewRequestWithContext(ctx, args[1], w.admin+"/api/v1"+args[2], strings.NewReader(body))
	ts.Check(err)
	token := adminToken
	if t := ts.Getenv("API_TOKEN"); t != "" {
		token = t
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	ts.Check(err)
	if strconv.Itoa(res.StatusCode) != args[0] {
		ts.Fatalf("status %d, want %s: %s %s", res.StatusCode, args[0], text, w.log)
	}
	for _, pattern := range args[min(len(args), 4):] {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			ts.Fatalf("the answer does not match %q: %s", pattern, text)
		}
		if len(found) > 1 {
			ts.Setenv("MATCH", string(found[1]))
		}
	}
}
