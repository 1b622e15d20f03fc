package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v79"
	"github.com/stripe/stripe-go/v79/form"

	"github.com/heddlehq/heddle/channels"
)

const (
	defaultAPIURL = "https://api.stripe.com"
	callTime      = 20 * time.Second // of one try
	tries         = 5                // of one call
	firstWait     = 250 * time.Millisecond
	longestWait   = 30 * time.Second // between two tries
	closedFor     = 10 * time.Minute // how long an account counts as closed
)

// A CallError is why the API did not do what it was asked. Its text holds
// neither secrets nor people's words.
type CallError struct {
	Status  int    // of HTTP, 0 if no answer came
	Code    string // Stripe's, or a constant: "resource_missing"
	unknown bool
	words   string
	after   time.Duration
}

func (e *CallError) Error() string {
	if e.Status == 0 {
		return "stripe was not asked or gave no answer: " + e.Code
	}
	return fmt.Sprintf("stripe answered %d (%s)", e.Status, e.Code)
}

// Unknown says that the call may have been carried out.
func (e *CallError) Unknown() bool { return e.unknown }

// Told is the error with Stripe's own words, for who made the call.
func (e *CallError) Told() string {
	if e.words == "" {
		return e.Error()
	}
	return e.Error() + ": " + e.words
}

var (
	errNoKey  = &CallError{Code: "STRIPE_API_KEY is not set"}
	errMode   = &CallError{Code: "the account is of another mode than the API key"}
	errClosed = &CallError{Status: http.StatusForbidden, Code: "account_invalid"}
	errPath   = &CallError{Code: "no path of the API"}
)

// backend is the library's client without its own retries, which do not heed a context.
func backend(apiURL string, client *http.Client) (stripe.Backend, error) {
	if apiURL == "" {
		apiURL = defaultAPIURL
	}
	u, err := url.Parse(apiURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("STRIPE_API_URL: want an http or https address such as %s", defaultAPIURL)
	}
	if client == nil {
		client = &http.Client{
			Timeout:       callTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: stripe.String(strings.TrimSuffix(apiURL, "/")), HTTPClient: client, MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry: stripe.Bool(false), LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	}), nil
}

// raw is an answer whose fields nobody reads but from its bytes: the library's
// types lose those that are newer than they are.
type raw struct{ stripe.APIResource }

// Call makes one API call in an account, named as in a thread ("" for the key's
// own), and returns the answer's JSON. One that may succeed later is made again
// within ctx, a few times, with the same key. A write needs a key of at most 240
// bytes. Every failure is a *CallError.
func (c *Channel) Call(ctx context.Context, account, method, path string, values url.Values, key string) (json.RawMessage, error) {
	acct, err := c.reach(account)
	if err != nil {
		return nil, err
	}
	if !isPath(path) {
		return nil, errPath
	}
	p := &stripe.Params{Context: ctx}
	if acct != "" {
		p.StripeAccount = stripe.String(acct)
	}
	if method != http.MethodGet {
		if key == "" || len(key) > 240 {
			return nil, &CallError{Code: "no idempotency key that can be used"}
		}
		p.IdempotencyKey = stripe.String(Own + key)
	}
	body := &form.Values{}
	for k, vs := range values {
		for _, v := range vs {
			body.Add(k, v)
		}
	}
	for n := 1; ; n++ {
		var r raw
		e := explain(c.api.CallRaw(method, path, c.key, body, p, &r))
		if e == nil {
			return r.LastResponse.RawJSON, nil
		}
		if e.Code == "account_invalid" && acct != "" {
			c.close(acct)
		}
		if !e.again() || n == tries || !wait(ctx, max(e.after, firstWait<<(n-1))) {
			return nil, e
		}
	}
}

// Identify asks Stripe whether it takes the key, for a list of events. Its error
// is a *channels.SendError; Rejected means that the key (or the API URL) is no
// good, anything else is trouble on the way. Without a key there is nothing to ask.
func (c *Channel) Identify(ctx context.Context) error {
	if c.api == nil {
		return nil
	}
	_, err := c.Call(ctx, "", http.MethodGet, "/v1/events", url.Values{"limit": {"1"}}, "")
	var e *CallError
	switch {
	case !errors.As(err, &e):
		return nil
	case e.Status == http.StatusUnauthorized:
		return &channels.SendError{Verdict: channels.Rejected, Reason: e.Code}
	case e.Status == http.StatusForbidden:
		return &channels.SendError{Reason: "the key may not read events, so missed ones are not found"}
	}
	return &channels.SendError{Reason: e.Code}
}

// reach says in whose name a call in an account is made, "" for the key's own.
func (c *Channel) reach(account string) (string, error) {
	if c.api == nil {
		return "", errNoKey
	}
	if account == "" {
		return "", nil
	}
	acct, test := strings.CutSuffix(account, testSuffix)
	if c.mode != "" && test != (c.mode == "test") {
		return "", errMode
	}
	if acct == self {
		return "", nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.closed[acct]) {
		return "", errClosed
	}
	delete(c.closed, acct)
	return acct, nil
}

// close notes that a connected account does not let us in any more.
func (c *Channel) close(acct string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed[acct] = c.now().Add(closedFor)
}

// explain turns the library's error into ours, nil if there is none.
func explain(err error) *CallError {
	if err == nil {
		return nil
	}
	var se *stripe.Error
	if !errors.As(err, &se) {
		e := &CallError{Code: "no answer that can be read", unknown: true}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			e.Code = "timeout"
		case errors.Is(err, context.Canceled):
			e.Code = "canceled"
		}
		return e
	}
	e := &CallError{Status: se.HTTPStatusCode, Code: string(se.Code), unknown: se.HTTPStatusCode >= 500}
	if !isType(e.Code) {
		if e.Code = string(se.Type); !isType(e.Code) {
			e.Code = "error"
		}
	}
	if se.Type == stripe.ErrorTypeInvalidRequest || se.Type == stripe.ErrorTypeCard {
		e.words = oneLine(se.Msg)
	}
	if se.LastResponse != nil {
		if s, err := strconv.Atoi(se.LastResponse.Header.Get("Retry-After")); err == nil && s > 0 {
			e.after = min(time.Duration(s)*time.Second, longestWait)
		}
	}
	return e
}

// again says whether the same call with the same key may succeed later: nobody
// knows what became of it, the first one still runs, or there were too many.
func (e *CallError) again() bool {
	return e.unknown && e.Code != "canceled" || e.Status == http.StatusConflict || e.Status == http.StatusTooManyRequests
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
