// Package client speaks the HTTP API of a Heddle gateway, see docs/api.md. It
// needs nothing but the standard library.
package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Client speaks to one gateway. It may be used by many at once and is not to
// be changed then. Requests that may succeed later, because the gateway is
// restarting or busy, are made again a few times: none of them is done twice.
type Client struct {
	URL   string       // of the admin listener: "http://127.0.0.1:8081"
	Token string       // one of HEDDLE_ADMIN_TOKEN
	HTTP  *http.Client // nil for http.DefaultClient; a Timeout would cut off streams and waits
}

// A Ref names a conversation: by its agent and the id it was started under, or,
// without Agent, by its own id.
type Ref struct{ Agent, ID string }

func (r Ref) path() string {
	if r.Agent == "" {
		return "/conversations/" + segment(r.ID)
	}
	return "/agents/" + segment(r.Agent) + "/conversations/" + segment(r.ID)
}

// segment writes a name as one segment of a path. Dots that stand alone would
// be taken for steps between folders, and the path for another.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// An Error is what the gateway answers to a request that cannot be done.
type Error struct {
	Status  int    `json:"-"`    // of HTTP
	Code    string `json:"code"` // see docs/api.md
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (e *Error) Error() string { return fmt.Sprintf("heddle: %s (%d %s)", e.Message, e.Status, e.Code) }

// later says whether the same request may succeed later.
func (e *Error) later() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusBadGateway
}

// A Message starts or continues a conversation. It has Text, Data or Files.
type Message struct {
	Text   string       `json:"text,omitempty"`
	Files  []Attachment `json:"files,omitempty"`  // at most 10, each of at most 10 MiB
	Data   any          `json:"data,omitempty"`   // for the agent
	Result any          `json:"result,omitempty"` // JSON Schema that the answer must fit
	Key    string       `json:"key,omitempty"`    // a message with a key is taken once, however often it is sent; made up if empty
}

// An Attachment is a file that goes with a message. A model sees images and the beginning of texts;
// the agent's sandbox has all of it.
type Attachment struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data"`
}

// An Admission says that an event is on disk.
type Admission struct {
	Conversation string `json:"conversation"` // its own id
	Channel      string `json:"channel"`
	Event        string `json:"event"`
	Status       string `json:"status"` // "admitted", or "duplicate" of one with the same key
}

// Send starts or continues a conversation.
func (c *Client) Send(ctx context.Context, r Ref, m Message) (Admission, error) {
	if m.Key == "" {
		m.Key = rand.Text()
	}
	var a Admission
	return a, c.do(ctx, "POST", r.path()+"/messages", nil, m, &a)
}

// An Event says what became of one.
type Event struct {
	Status       string          `json:"status"` // "ignored", "waiting", "running" or "settled"
	Conversation string          `json:"conversation"`
	Turn         string          `json:"turn"`
	Outcome      string          `json:"outcome"`
	Reason       string          `json:"reason"`
	Answer       string          `json:"answer"`
	Value        json.RawMessage `json:"value"`   // the answer in the form that was wanted
	GaveUp       string          `json:"gave_up"` // why there is none
	Cost         float64         `json:"cost"`    // US dollars
	Usage        json.RawMessage `json:"usage"`
}

// Event tells what has become of an event so far.
func (c *Client) Event(ctx context.Context, channel, id string) (e Event, err error) {
	return e, c.do(ctx, "GET", "/events/"+segment(channel)+"/"+segment(id), nil, nil, &e)
}

// Wait waits until an event is settled or ignored, however long that takes.
func (c *Client) Wait(ctx context.Context, channel, id string) (e Event, err error) {
	for e.Status != "settled" && e.Status != "ignored" {
		e = Event{}
		err := c.do(ctx, "GET", "/events/"+segment(channel)+"/"+segment(id), url.Values{"wait": {"50s"}}, nil, &e)
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

// Abort ends the open turn and passes over what waits, or ends only the turn
// with an id.
func (c *Client) Abort(ctx context.Context, r Ref, turn string) (Admission, error) {
	return c.control(ctx, r, "abort", map[string]string{"turn": turn})
}

// Pause stops before the next step.
func (c *Client) Pause(ctx context.Context, r Ref) (Admission, error) {
	return c.control(ctx, r, "pause", map[string]string{})
}

// Resume ends a pause.
func (c *Client) Resume(ctx context.Context, r Ref) (Admission, error) {
	return c.control(ctx, r, "resume", map[string]string{})
}

// Step does one step of a paused conversation.
func (c *Client) Step(ctx context.Context, r Ref) (Admission, error) {
	return c.control(ctx, r, "step", map[string]string{})
}

// Policy says what becomes of messages that come while a turn runs: "join",
// "queue", "steer", "replace" or "drop"; "" for what its route says.
func (c *Client) Policy(ctx context.Context, r Ref, policy string) (Admission, error) {
	return c.control(ctx, r, "policy", map[string]string{"policy": policy})
}

func (c *Client) control(ctx context.Context, r Ref, topic string, body map[string]string) (a Admission, err error) {
	body["key"] = rand.Text()
	return a, c.do(ctx, "POST", r.path()+"/"+topic, nil, body, &a)
}

// Fork makes a conversation that begins as this one did up to the end of a turn,
// the last one if turn is empty. Its id is made up if empty.
func (c *Client) Fork(ctx context.Context, r Ref, turn, id string) (f Conversation, err error) {
	if id == "" {
		id = rand.Text()
	}
	body := map[string]string{"id": id, "turn": turn}
	return f, c.do(ctx, "POST", r.path()+"/fork", nil, body, &f)
}

// tries bounds how often a request is made.
const tries = 4

// do makes a request, again if that may help, and decodes the answer into out.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, in, out any) error {
	return c.again(ctx, func() error {
		res, err := c.request(ctx, method, path, query, in, nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if data, ok := out.(*[]byte); ok {
			*data, err = io.ReadAll(res.Body)
		} else {
			err = json.NewDecoder(res.Body).Decode(out)
		}
		if err != nil {
			return fmt.Errorf("heddle: %s %s: %w", method, path, err)
		}
		return nil
	})
}

func (c *Client) again(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		var e *Error
		if err == nil || ctx.Err() != nil || try == tries || errors.As(err, &e) && !e.later() {
			return err
		}
		if !pause(ctx, backoff(try)) {
			return context.Cause(ctx)
		}
	}
}

// request makes one request; an answer that is no success is an *Error.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, in any, header http.Header) (*http.Response, error) {
	address := c.URL + "/api/v1" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("heddle: %s %s: %w", method, path, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil || res.StatusCode/100 == 2 {
		return res, err
	}
	defer res.Body.Close()
	var answer struct {
		Error *Error `json:"error"`
	}
	data, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // what is missing shows in the decoding
	if json.Unmarshal(data, &answer) != nil || answer.Error == nil {
		answer.Error = &Error{Code: "unknown", Message: "answered with " + strconv.Itoa(res.StatusCode)}
	}
	answer.Error.Status = res.StatusCode
	return nil, answer.Error
}

// backoff grows from a tenth of a second to five seconds.
func backoff(try int) time.Duration { return min(100*time.Millisecond<<min(try-1, 10), 5*time.Second) }

// pause waits, or returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
