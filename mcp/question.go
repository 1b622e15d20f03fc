package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Question is what a server asks people in the middle of a call. All of it is
// the server's.
type Question struct {
	Server  string
	Message string
	Schema  json.RawMessage // of the answer, a flat object; nil where URL is set
	URL     string          // a page for somebody to open
}

// An Answer is what people said. Accept with Values, or neither: a refusal.
type Answer struct {
	Accept bool
	Values map[string]any
}

// A Progress is how far a call has come. Text is the server's.
type Progress struct {
	Server, Tool string
	Done, Total  float64 // Total is 0 if unknown
	Text         string
}

// maxAsked is how many unanswered questions a session remembers.
const maxAsked = 16

// elicit answers a question of the server.
func (s *Server) elicit(ctx context.Context, sess *session, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	q := s.question(r.Params)
	if s.o.Answer == nil {
		sess.ask(q)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	if refers(r.Params.RequestedSchema) {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.settings.timeout())
	defer cancel()
	defer context.AfterFunc(sess.over, cancel)()
	a, err := s.o.Answer(ctx, q)
	switch {
	case err != nil:
		return nil, errors.New("nobody answered")
	case !a.Accept:
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	return &sdk.ElicitResult{Action: "accept", Content: a.Values}, nil
}

// refers says whether a schema refers to anything. One of a question must be
// flat; the SDK checks answers by it, and would follow a loop without end.
func refers(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if strings.EqualFold(k, "$ref") || strings.EqualFold(k, "$dynamicRef") || refers(x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

func (s *Server) question(p *sdk.ElicitParams) Question {
	q := Question{Server: s.name, Message: describe(p.Message, maxDoc), URL: p.URL}
	if p.URL == "" && p.RequestedSchema != nil {
		if b, err := json.Marshal(p.RequestedSchema); err == nil && len(b) <= maxSchema {
			q.Schema = b
		}
	}
	return q
}

// asking makes the error of a call that ended with questions, nil if it did not.
func (s *Server) asking(needs bool, in sdk.InputRequestMap, state string) error {
	if !needs {
		return nil
	}
	q := &QuestionError{Server: s.name, State: state}
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if p, ok := in[key].(*sdk.ElicitParams); ok && len(q.Questions) < maxAsked {
			q.Questions, q.Keys = append(q.Questions, s.question(p)), append(q.Keys, key)
		} else {
			q.over = true
		}
	}
	return q
}

// askedByError finds the questions in an error that asks for pages to be opened.
func (s *Server) askedByError(err error) error {
	rpc := rpcError(err)
	if rpc == nil || rpc.Code != sdk.CodeURLElicitationRequired {
		return nil
	}
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	_ = json.Unmarshal(rpc.Data, &data) // without them it still is a question
	q := &QuestionError{Server: s.name}
	for _, p := range data.Elicitations {
		if p != nil && len(q.Questions) < maxAsked {
			q.Questions = append(q.Questions, s.question(p))
		}
	}
	return q
}

// ask notes a question that was declined.
func (s *session) ask(q Question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	s.asked = append(s.asked, q)
	s.asked = s.asked[max(0, len(s.asked)-maxAsked):]
}

// askedSince returns what was declined since there were n questions. Where
// calls run side by side it cannot be known which of them asked.
func (s *session) askedSince(n int) []Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked[max(0, len(s.asked)-(s.count-n)):])
}

func (s *session) askedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}
