package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/heddlehq/heddle/harness/record"
)

// A Code says what is wrong with a request. Programs compare it; docs/api.md
// lists all.
type Code string

// The codes.
const (
	badRequest           Code = "bad_request"
	unauthorized         Code = "unauthorized"
	noSuchPath           Code = "no_such_path"
	noSuchAgent          Code = "no_such_agent"
	noSuchConversation   Code = "no_such_conversation"
	noSuchEvent          Code = "no_such_event"
	noSuchTurn           Code = "no_such_turn"
	noSuchFile           Code = "no_such_file"
	noSuchPost           Code = "no_such_post"
	methodNotAllowed     Code = "method_not_allowed"
	keyUsed              Code = "key_used"
	conversationExists   Code = "conversation_exists"
	turnOpen             Code = "turn_open"
	tooLarge             Code = "too_large"
	unsupportedMediaType Code = "unsupported_media_type"
	tooManyWaits         Code = "too_many_waits"
	failed               Code = "failed"
	storeFailed          Code = "store_failed"
	stopping             Code = "stopping"
)

// codes say for each code its status and what to do.
var codes = map[Code]struct {
	status int
	hint   string
}{
	badRequest:           {http.StatusBadRequest, "Correct the request; sending it again changes nothing."},
	unauthorized:         {http.StatusUnauthorized, "Send `Authorization: Bearer TOKEN` with a token of HEDDLE_ADMIN_TOKEN."},
	noSuchPath:           {http.StatusNotFound, "See docs/api.md for the paths."},
	noSuchAgent:          {http.StatusNotFound, "Name an agent of the settings file; without the section agents there is `assistant`."},
	noSuchConversation:   {http.StatusNotFound, "`GET /api/v1/conversations` lists them."},
	noSuchEvent:          {http.StatusNotFound, "Events are remembered for 31 days."},
	noSuchTurn:           {http.StatusNotFound, "The records of the conversation name its turns."},
	noSuchFile:           {http.StatusNotFound, "The path `files` of the conversation lists them."},
	noSuchPost:           {http.StatusNotFound, "`GET /api/v1/outbox` lists them: a dead one can be tried again, one that is pending or unknown dropped."},
	methodNotAllowed:     {http.StatusMethodNotAllowed, "The header Allow says what the path takes."},
	keyUsed:              {http.StatusConflict, "Use a key for one message only."},
	conversationExists:   {http.StatusConflict, "Choose another id for the fork."},
	turnOpen:             {http.StatusConflict, "Wait until the turn is settled, or name an earlier one."},
	tooLarge:             {http.StatusRequestEntityTooLarge, "A body has at most 1 MiB, with files 16 MiB."},
	unsupportedMediaType: {http.StatusUnsupportedMediaType, "Send `Content-Type: application/json`, not compressed."},
	tooManyWaits:         {http.StatusTooManyRequests, "Close streams that are not needed, or try again later."},
	failed:               {http.StatusInternalServerError, "The log of the gateway says why."},
	storeFailed:          {http.StatusServiceUnavailable, "Try again with the same key; nothing is done twice."},
	stopping:             {http.StatusServiceUnavailable, "Try again in a moment, with the same key."},
}

// A Problem is the answer to a request that cannot be done.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // never what the request said
	Hint    string `json:"hint"`
}

func (p *Problem) Error() string { return string(p.Code) + ": " + p.Message }

func fail(c Code, message string) error {
	return &Problem{Code: c, Message: message, Hint: codes[c].hint}
}

// refuse answers an error.
func (a *API) refuse(w *answer, err error) {
	var p *Problem
	if !errors.As(err, &p) {
		a.Logger.Error("request failed", "err", err)
		p = &Problem{Code: failed, Message: "the request could not be answered", Hint: codes[failed].hint}
	}
	if w.status != 0 {
		return // it had begun: the end of the connection says the rest
	}
	status := codes[p.Code].status
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	_ = reply(w, status, map[string]*Problem{"error": p})
}

// reply answers with JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // who has gone needs no answer
	return nil
}

// maxBody bounds the body of a request.
const maxBody = 1 << 20

// read decodes the body into v. No body is an empty object.
func read(w http.ResponseWriter, r *http.Request, v any) error { return readUpTo(w, r, maxBody, v) }

func readUpTo(w http.ResponseWriter, r *http.Request, most int64, v any) error {
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return fail(unsupportedMediaType, "the body is compressed")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return fail(tooLarge, "the body is too large")
	case err != nil:
		return fail(badRequest, "the body did not come whole")
	case len(body) == 0:
		return nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return fail(unsupportedMediaType, "the body is not declared as JSON")
	}
	if record.TooDeep(body) {
		return fail(badRequest, "the body is nested too deep")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err = d.Decode(v)
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typed) && typed.Field != "":
		return fail(badRequest, "the field "+typed.Field+" wants "+typed.Type.String())
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field"):
		return fail(badRequest, "the body has a field that is not known here")
	case err != nil:
		return fail(badRequest, "the body is no JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fail(badRequest, "the body goes on after its JSON object")
	}
	return nil
}
