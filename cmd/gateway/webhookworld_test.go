package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// sourceKey signs what webhook sends; the settings write it as whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnktMDAwMQ==.
const sourceKey = "canary-canary-canary-0001"

// webhook STATUS NAME ID FILE [wrong|stale]: a request of Standard Webhooks to
// the source NAME; the gateway must answer STATUS.
func cmdWebhook(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, neg, args, 4, "webhook STATUS NAME ID FILE [wrong|stale]")
	w, _ := in(ts)
	body, at, how := ts.ReadFile(args[3]), time.Now(), strings.Join(args[4:], "")
	if how == "stale" {
		at = at.Add(-6 * time.Minute)
	}
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, []byte(sourceKey+strings.TrimPrefix(how, "stale")))
	mac.Write([]byte(args[2] + "." + stamp + "." + body))
	req, err := http.NewRequest(http.MethodPost, w.front+"/webhook/"+args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("webhook-id", args[2])
	req.Header.Set("webhook-timestamp", stamp)
	req.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	status, text := answer(ts, req)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s: %s", status, args[0], w.log)
	}
	if status != http.StatusOK && text != http.StatusText(status) {
		ts.Fatalf("the answer says more than its status: %q", text)
	}
}
