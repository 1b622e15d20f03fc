package github

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"

	"github.com/heddlehq/heddle/channels"
)

// slow is how long GitHub wants one to wait after a secondary limit without a time.
const slow = time.Minute

// classify turns any failure of a call into its verdict.
func classify(err error) *channels.SendError {
	verdict := func(v channels.Verdict, reason string) *channels.SendError {
		return &channels.SendError{Verdict: v, Reason: reason, Err: err}
	}
	var (
		se        *channels.SendError
		primary   *github.RateLimitError
		secondary *github.AbuseRateLimitError
		answer    *github.ErrorResponse
		graph     *graphError
		dial      *net.OpError
		dns       *net.DNSError
		cert      *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &se):
		return se
	case errors.As(err, &primary):
		return limit(err, time.Until(primary.Rate.Reset.Time))
	case errors.As(err, &secondary):
		if secondary.RetryAfter == nil {
			return limit(err, slow)
		}
		return limit(err, *secondary.RetryAfter)
	case errors.As(err, &answer) && answer.Response != nil:
		return refusal(err, answer)
	case errors.As(err, &graph):
		return graph.refusal()
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		return verdict(channels.NotMade, "no connection") // nothing was written
	case errors.As(err, &cert):
		return verdict(channels.NotMade, "certificate not accepted")
	case errors.Is(err, context.Canceled):
		return verdict(channels.Unknown, "cancelled")
	case isTimeout(err):
		return verdict(channels.Unknown, "timeout")
	}
	return verdict(channels.Unknown, "no usable answer")
}

// refusal is the verdict of an answer's status. GitHub says that it limits with
// 429 or with 403 and words.
func refusal(err error, e *github.ErrorResponse) *channels.SendError {
	r := e.Response
	words := strings.ToLower(e.Message + " " + e.DocumentationURL)
	limited := strings.Contains(words, "rate limit") || strings.Contains(words, "rate-limit") || strings.Contains(words, "abuse detection")
	verdict := func(v channels.Verdict, reason string) *channels.SendError {
		return &channels.SendError{Verdict: v, Reason: reason, Err: err}
	}
	switch code := r.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && limited:
		return limit(err, waitOf(r.Header))
	case code >= 500 || code == http.StatusRequestTimeout:
		return verdict(channels.Unknown, "http "+strconv.Itoa(code))
	case code < 400:
		return verdict(channels.NotMade, "redirected")
	case code == http.StatusUnauthorized:
		return verdict(channels.Rejected, "bad credentials")
	case code == http.StatusNotFound:
		return verdict(channels.Rejected, "not found or no access")
	case code == http.StatusForbidden && strings.Contains(words, "locked"):
		return verdict(channels.Rejected, "conversation is locked")
	case code == http.StatusForbidden && strings.Contains(words, "not accessible"):
		return verdict(channels.Rejected, "permission is missing")
	case code == http.StatusUnprocessableEntity && strings.Contains(words, "too long"):
		return verdict(channels.Rejected, "body is too long")
	default:
		return verdict(channels.Rejected, "http "+strconv.Itoa(code))
	}
}

// waitOf reads when a limit ends.
func waitOf(h http.Header) time.Duration {
	if s, err := strconv.Atoi(h.Get("Retry-After")); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil && h.Get("X-RateLimit-Remaining") == "0" {
		return time.Until(time.Unix(at, 0)) + time.Second
	}
	return slow
}

func limit(err error, after time.Duration) *channels.SendError {
	return &channels.SendError{Verdict: channels.Limited, RetryAfter: max(after, time.Second), Reason: "rate limited", Err: err}
}

// before is classify for what comes before the request that matters: that one
// was certainly not made.
func before(err error) *channels.SendError {
	se := *classify(err)
	if se.Verdict == channels.Unknown {
		se.Verdict = channels.NotMade
	}
	return &se
}

// statusOf is the HTTP status of an answer that is an error, 0 for other errors.
func statusOf(err error) int {
	var answer *github.ErrorResponse
	if errors.As(err, &answer) && answer.Response != nil {
		return answer.Response.StatusCode
	}
	return 0
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// A graphError is one that GraphQL reports with status 200.
type graphError struct {
	Kind    string          `json:"type"` // "NOT_FOUND"
	Path    json.RawMessage `json:"path"`
	Message string          `json:"message"`
}

func (e *graphError) Error() string { return "graphql: " + e.kind() }

// kind is GitHub's, if it looks like one.
func (e *graphError) kind() string {
	if e.Kind == "" || len(e.Kind) > 64 || strings.Trim(e.Kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return "unknown error"
	}
	return e.Kind
}

func (e *graphError) refusal() *channels.SendError {
	switch e.kind() {
	case "RATE_LIMITED":
		return limit(e, slow)
	case "NOT_FOUND", "FORBIDDEN", "UNPROCESSABLE", "INSUFFICIENT_SCOPES", "NOT_IMPLEMENTED":
		return &channels.SendError{Verdict: channels.Rejected, Reason: strings.ToLower(e.kind()), Err: e}
	}
	if strings.Contains(strings.ToLower(e.Message), "rate limit") {
		return limit(e, slow)
	}
	return &channels.SendError{Verdict: channels.Unknown, Reason: e.kind(), Err: e}
}
