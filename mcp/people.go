package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heddlehq/heddle/harness"
)

// Bounds on what a call may ask people.
const (
	maxRounds = 5 // of questions of one call
	maxTries  = 3 // of one value
)

// A pending call is one that the server goes on with when it knows more. It is
// recorded, so that the call goes on after a restart.
type pending struct {
	Keys      []string   `json:"keys,omitempty"` // of the questions; none: they came as an error, and the call is made anew
	Questions []Question `json:"questions"`
	State     string     `json:"state,omitempty"`
}

// reply is what the server is told.
type reply struct {
	responses sdk.InputResponseMap
	state     string
}

// errEnd is why a round records nothing: the call has its result.
var errEnd = errors.New("the call is over")

// talk makes a call and puts what the server asks to the people in the thread.
// While they have not answered it fails with a *harness.Wait. A round after the
// first is not made again when a crash cut it off.
func (s *Server) talk(ctx context.Context, call *harness.Call, t *tool, args json.RawMessage) (r Result, err error) {
	var told *reply
	for round := range maxRounds {
		p, stepErr := harness.Step(ctx, call, fmt.Sprintf("round %d", round), func(ctx context.Context) (pending, error) {
			if told != nil {
				fresh := false
				if _, err = harness.Step(ctx, call, fmt.Sprintf("sent %d", round), func(context.Context) (bool, error) { fresh = true; return true, nil }); err != nil {
					return pending{}, err
				}
				if !fresh {
					err = fmt.Errorf("interrupted: it is not known whether mcp server %q went on with the call", s.name)
					return pending{}, errEnd
				}
			}
			r, err = s.call(ctx, t, args, told, call.Tried)
			var q *QuestionError
			if !errors.As(err, &q) || !q.answerable() {
				return pending{}, errEnd
			}
			return pending{q.Keys, q.Questions, q.State}, nil
		})
		switch {
		case errors.Is(stepErr, errEnd):
			return r, err
		case stepErr != nil:
			return Result{}, stepErr
		}
		if told, err = s.put(ctx, call, round, p); err != nil {
			return Result{}, err
		}
	}
	return Result{}, fmt.Errorf("mcp server %q asked more than %d times; the call was given up", s.name, maxRounds)
}

// answerable says whether the questions can be put to people, and the call then
// go on: not those that the server was refused already, in the middle of it.
func (e *QuestionError) answerable() bool { return len(e.Questions) > 0 && !e.over }

// put asks the questions of a round, up to the first that people refuse: the
// others count as refused, so that nobody has to say no to all of them.
func (s *Server) put(ctx context.Context, call *harness.Call, round int, p pending) (*reply, error) {
	out := &reply{responses: sdk.InputResponseMap{}, state: p.State}
	refused := false
	for i, q := range p.Questions {
		var a Answer
		var err error
		if form, ok := s.askable(q); ok && !refused {
			a, err = s.askOne(ctx, call, fmt.Sprintf("question %d.%d", round, i), form)
			refused = !a.Accept
		}
		switch {
		case err != nil:
			return nil, err
		case p.Keys == nil && !a.Accept:
			return nil, fmt.Errorf("mcp server %q wanted somebody to open a page first; the people in the thread declined", s.name)
		case p.Keys == nil:
		case a.Accept:
			out.responses[p.Keys[i]] = &sdk.ElicitResult{Action: "accept", Content: a.Values}
		default:
			out.responses[p.Keys[i]] = &sdk.ElicitResult{Action: "decline"}
		}
	}
	return out, nil
}

// A form is a question that can be put to people: a page to open, or fields.
type form struct {
	message string
	page    *url.URL
	fields  []field
}

// askable makes the form of a question, if people can be asked it.
func (s *Server) askable(q Question) (f form, ok bool) {
	f.message = q.Message
	if q.URL != "" {
		f.page, ok = pageOf(q.URL)
		return f, ok
	}
	if refersTo(q.Schema) {
		return f, false
	}
	var err error
	if f.fields, err = readForm(q.Schema); err != nil {
		s.log.Warn("mcp question declined", "err", err)
	}
	return f, err == nil
}

// askOne asks one question: a page to open, or a form, value by value.
func (s *Server) askOne(ctx context.Context, call *harness.Call, name string, q form) (Answer, error) {
	ask := func(name, text string) (string, error) {
		r, err := harness.Ask(ctx, call, name, fmt.Sprintf("The MCP server **%s** asks:\n\n%s\n\n%s", s.name, quotation(q.message), text), harness.AnsweredBy(s.settings.Who))
		return strings.TrimSpace(r.Text), err
	}
	const cancel = "say **cancel** to refuse"
	if q.page != nil {
		said, err := ask(name, fmt.Sprintf("It wants somebody to open this page of %s:\n%s\n\nSay **done** when you have, or %s.", q.page.Host, q.page, cancel))
		return Answer{Accept: strings.EqualFold(said, "done")}, err
	}
	if len(q.fields) == 0 {
		said, err := ask(name, "Say **yes**, or "+cancel+".")
		return Answer{Accept: strings.EqualFold(said, "yes"), Values: map[string]any{}}, err
	}
	a := Answer{Accept: true, Values: map[string]any{}}
	for i, f := range q.fields {
		how := "Answer here, without anything secret, or " + cancel + "."
		if !f.required {
			how = "Answer here, without anything secret, or say **skip**, or " + cancel + "."
		}
		why := ""
		for try := range maxTries {
			said, err := ask(fmt.Sprintf("%s.%d.%d", name, i, try), why+f.prompt()+"\n\n"+how)
			if err != nil || strings.EqualFold(said, "cancel") {
				return Answer{}, err
			}
			if !f.required && strings.EqualFold(said, "skip") {
				break
			}
			if v, err := f.parse(said); err == nil {
				a.Values[f.name] = v
				break
			} else if try == maxTries-1 {
				return Answer{}, nil
			} else {
				why = "That did not fit: " + err.Error() + ".\n"
			}
		}
	}
	return a, nil
}

// quotation marks the lines of a server's text as a quotation.
func quotation(text string) string {
	if text == "" {
		text = "(nothing)"
	}
	return "> " + strings.ReplaceAll(oneEnd.Replace(text), "\n", "\n> ")
}

// oneEnd makes all ends of lines the same: Markdown knows three.
var oneEnd = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// maxPage bounds the address of a page, in bytes.
const maxPage = 2 << 10

// pageOf is the page that a question names, if somebody may be sent there.
func pageOf(raw string) (*url.URL, bool) {
	u, err := url.Parse(raw)
	ok := err == nil && len(raw) <= maxPage && u.Scheme == "https" && u.Host != "" && u.User == nil &&
		!slices.ContainsFunc([]rune(raw), func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>|`\"", r) })
	return u, ok
}

// refersTo says whether a form refers to anything, see refers.
func refersTo(text json.RawMessage) bool {
	var v any
	return json.Unmarshal(text, &v) != nil || refers(v)
}
