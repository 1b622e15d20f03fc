package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/heddlehq/heddle/harness"
)

// ErrLogin is wrapped by errors of a server that wants somebody to log in.
var ErrLogin = errors.New("the server wants a log-in")

// A ToolError is what a tool answers that failed. Text is the server's.
type ToolError struct{ Text string }

func (e *ToolError) Error() string { return e.Text }

// A ConnError is a call that the server did not answer.
type ConnError struct {
	Server string
	Reason string // without secrets
	Sent   bool   // the server may have done what was asked
	Err    error
}

func (e *ConnError) Error() string {
	if e.Sent {
		return fmt.Sprintf("mcp server %q did not answer: %s; the outcome is unknown", e.Server, e.Reason)
	}
	return fmt.Sprintf("mcp server %q cannot be reached: %s; nothing was run", e.Server, e.Reason)
}

// Is says that the outcome of what was sent is unknown.
func (e *ConnError) Is(target error) bool { return e.Sent && target == harness.ErrUnknown }

// Unwrap returns the cause.
func (e *ConnError) Unwrap() error { return e.Err }

// An openError is why a server could not be opened, told without secrets.
type openError struct {
	server string
	err    error
}

func (e *openError) Error() string { return fmt.Sprintf("mcp server %q: %s", e.server, reason(e.err)) }

// Unwrap returns the cause.
func (e *openError) Unwrap() error { return e.err }

// A QuestionError is a call whose server asked something that nobody answered.
// Nothing is sent for a server that waits (State is what to repeat the call
// with); one that asks in the middle of a call was declined.
type QuestionError struct {
	Server    string
	Questions []Question
	Keys      []string // by which the server knows the questions, nil where they came as an error
	State     string   // opaque, to be sent back unchanged with the answers; "" if the call is over
	Text      string   // what the tool said after it was declined; the server's
	over      bool     // the call is over, or wants more than answers of people
}

func (e *QuestionError) Error() string {
	return fmt.Sprintf("mcp server %q asked a question, which this gateway does not put to people; it was not answered", e.Server)
}

// A faultError is an answer that came and is not used.
type faultError struct{ text string }

func (e *faultError) Error() string { return e.text }

func fault(format string, args ...any) error { return &faultError{fmt.Sprintf(format, args...)} }

// tell is the error for the model: with the server's own words.
func tell(err error) error {
	var q *QuestionError
	if !errors.As(err, &q) {
		return err
	}
	var b strings.Builder
	b.WriteString(q.Error() + ".")
	for _, one := range q.Questions {
		b.WriteString("\nIt asked: " + describe(one.Message, maxDoc))
		if one.URL != "" {
			b.WriteString("\nIt wanted somebody to open a page of " + host(one.URL) + ".")
		}
	}
	if q.Text != "" {
		b.WriteString("\nIt said after that: " + q.Text)
	}
	return errors.New(clip(b.String(), maxResult))
}

func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "an unknown host"
	}
	return describe(u.Host, maxReason)
}

// answered says whether an error came of an answer, so that the connection is whole.
func answered(err error) bool {
	var (
		t *ToolError
		q *QuestionError
		f *faultError
	)
	return rpcError(err) != nil || errors.As(err, &t) || errors.As(err, &q) || errors.As(err, &f)
}

// rejected is the code by which the SDK marks errors of the way to the server.
const rejected = -32005

// rpcError is the error that the server answered with, nil if it did not.
func rpcError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) && e.Code != rejected {
		return e
	}
	return nil
}

// unsent says whether an error came before a byte of the call went out, or with
// the word of the server that it knows no such session.
func unsent(err error) bool {
	var op *net.OpError
	return errors.Is(err, sdk.ErrSessionMissing) || errors.As(err, &op) && op.Op == "dial"
}

// reason is an error in a few words that hold no secret: URLs and the bodies of
// token endpoints may.
func reason(err error) string {
	var (
		grant *oauth2.RetrieveError
		u     *url.Error
		text  string
	)
	switch {
	case errors.Is(err, ErrLogin):
		text = ErrLogin.Error()
	case errors.As(err, &grant):
		text = "the authorization server refused: " + grant.ErrorCode
	case rpcError(err) != nil:
		e := rpcError(err)
		text = fmt.Sprintf("it answered with error %d: %s", e.Code, e.Message)
	case errors.Is(err, context.DeadlineExceeded):
		text = "it took too long"
	case errors.Is(err, sdk.ErrSessionMissing):
		text = sdk.ErrSessionMissing.Error()
	case errors.As(err, &u):
		text = u.Err.Error()
	default:
		text = strings.ReplaceAll(err.Error(), "rejected by transport: ", "")
	}
	text = urls.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
	return describe(text, maxReason)
}

// urls matches what follows the host of a URL.
var urls = regexp.MustCompile(`(https?://[^\s/?#"'@]*)[^\s"']*`)
