package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/heddlehq/heddle/model"
)

// DefaultTimeout bounds a tool that names no time.
const DefaultTimeout = 5 * time.Minute

// A Tool is something the model may invoke.
type Tool struct {
	Name          string
	Doc           string
	Schema        json.RawMessage // of the arguments
	run           func(context.Context, *Call, json.RawMessage) (string, error)
	timeout       time.Duration
	group         string // calls of one group run one after the other; "" for none
	retries       int
	quiet         bool
	durable       bool
	asks          bool
	interruptible bool // calls end when a message steers
	deferred      bool
	probe         Probe // nil if nobody can look what became of a call
	err           error
}

// ErrArgs is wrapped by what Run fails with for arguments that do not fit the schema.
var ErrArgs = errors.New("the arguments do not fit")

// NewTool makes a tool from a function. In is a struct; the schema of the
// arguments comes from its json and jsonschema tags (the latter is the
// description), fields without omitempty are required. Out is a string or has
// a JSON form. An error is told to the model as it is, so it must not hold secrets.
func NewTool[In, Out any](name, doc string, run func(context.Context, *Call, In) (Out, error)) Tool {
	t := Tool{Name: name, Doc: doc, timeout: DefaultTimeout}
	if of := reflect.TypeFor[In](); of.Kind() != reflect.Struct {
		t.err = fmt.Errorf("the arguments are a %s; want a struct", of)
		return t
	}
	s, err := schemaOf(reflect.TypeFor[In]())
	if err != nil {
		t.err = fmt.Errorf("arguments %w", err)
		return t
	}
	t.Schema = s.text
	if run == nil {
		return t // UseTool says so
	}
	t.run = func(ctx context.Context, call *Call, raw json.RawMessage) (string, error) {
		var in In
		if err := s.decode(raw, &in); err != nil {
			return "", err
		}
		out, err := run(ctx, call, in)
		if err != nil {
			return "", err
		}
		if text, ok := any(out).(string); ok {
			return text, nil
		}
		b, err := json.Marshal(out)
		if err != nil {
			return "", fmt.Errorf("the result of %s has no JSON form: %w", name, err)
		}
		return string(b), nil
	}
	return t
}

// Timeout bounds each call. The default is DefaultTimeout.
func (t Tool) Timeout(d time.Duration) Tool { t.timeout = d; return t }

// Serial makes calls of this tool in one step run one after the other, in the order of the calls.
func (t Tool) Serial() Tool { return t.SerialWith(t.Name) }

// SerialWith is Serial for the calls of all tools of a group.
func (t Tool) SerialWith(group string) Tool { t.group = group; return t }

// Retry makes a call that failed be made again, up to so many times and within
// its time, after a tenth of a second, then twice as long each time. It is for
// what does no harm when it happens twice.
func (t Tool) Retry(times int) Tool { t.retries = times; return t }

// Quiet says that the tool changes nothing outside, so that files need not be saved after it.
func (t Tool) Quiet() Tool { t.quiet = true; return t }

// Deferred says that the tool need not be defined in every request: where the
// definitions of a step are large, the model finds it with search_tools.
func (t Tool) Deferred() Tool { t.deferred = true; return t }

func (t Tool) definition() model.Tool {
	return model.Tool{Name: t.Name, Doc: t.Doc, Schema: t.Schema}
}

// Interruptible says that a call may be stopped in the middle without harm, such
// as a search or a wait: a message that steers does so.
func (t Tool) Interruptible() Tool { t.interruptible = true; return t }

// IsInterruptible says whether a call may be stopped in the middle without harm.
func (t Tool) IsInterruptible() bool { return t.interruptible }

// Group names the tools whose calls run one after the other with those of this
// one, "" for none.
func (t Tool) Group() string { return t.group }

// IsQuiet says whether the tool changes nothing outside.
func (t Tool) IsQuiet() bool { return t.quiet }

// A PanicError is what Run fails with when the tool panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return "the tool panicked" }

// grace is how long a tool may take to notice that its context has ended.
const grace = time.Second

// Within runs what an author wrote. A panic comes back as a *PanicError. What
// does not heed its context is left behind a moment after the context has ended.
func Within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: errors.New("it ended without a result")}
		defer func() {
			if p := recover(); p != nil {
				r.err = &PanicError{Value: p, Stack: debug.Stack()}
			}
			done <- r
		}()
		r.v, r.err = f()
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case r := <-done:
		return r.v, r.err
	case <-late.C:
		var none T
		return none, ctx.Err()
	}
}

// Run validates the arguments and runs the tool [Within] its timeout.
func (t Tool) Run(ctx context.Context, call *Call, args json.RawMessage) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	text, err := Within(ctx, func() (string, error) { return t.tries(ctx, call, args) })
	if err == nil {
		err = call.Err()
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s did not finish within %v; %w", t.Name, t.timeout, ErrUnknown)
	}
	return text, err
}

// A Try is one of a call, or of what it does outside, that failed and was made again.
type Try struct{ Took, Wait time.Duration }

// Tries are those that failed and were made again, in order.
func (c *Call) Tries() []Try {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.tries)
}

// Tried notes a try that the tool itself makes again: it is listed among the
// retries of the conversation.
func (c *Call) Tried(t Try) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries = append(c.tries, t)
}

// hide forgets what the try that failed has shown.
func (c *Call) hide() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images = nil
}

// firstWait is how long a tool waits before it is tried again for the first time.
const firstWait = 100 * time.Millisecond

// tries runs the tool until it succeeds, as often as it may.
func (t Tool) tries(ctx context.Context, call *Call, args json.RawMessage) (string, error) {
	for n := 0; ; n++ {
		began := time.Now()
		text, err := t.run(ctx, call, args)
		took := time.Since(began)
		var w *Wait
		if err == nil || n >= t.retries || t.probe != nil && errors.Is(err, ErrUnknown) || errors.Is(err, ErrArgs) || errors.Is(err, errNothingRun) || errors.As(err, &w) {
			return text, err
		}
		wait := firstWait << min(n, 10)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return text, err
		}
		call.Tried(Try{Took: took, Wait: wait})
		call.again()
		call.hide()
	}
}

// schema is what JSON of one type looks like.
type schema struct {
	text     json.RawMessage
	resolved *jsonschema.Resolved
}

// schemas caches by type: tools are made anew in every render.
var schemas sync.Map // reflect.Type -> *schema, resultKey -> *result

func schemaOf(t reflect.Type) (*schema, error) {
	if s, ok := schemas.Load(t); ok {
		return s.(*schema), nil
	}
	js, err := jsonschema.ForType(t, &jsonschema.ForOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	resolved, err := js.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	text, err := json.Marshal(js)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	s, _ := schemas.LoadOrStore(t, &schema{text: text, resolved: resolved})
	return s.(*schema), nil
}

// decode reads arguments; none are an empty object.
func (s *schema) decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := s.fit(raw, into); err != nil {
		return fmt.Errorf("%w: %w", ErrArgs, err)
	}
	return nil
}

// fit reads JSON that has to look like the schema.
func (s *schema) fit(raw json.RawMessage, into any) error {
	var doc any
	if json.Unmarshal(raw, &doc) != nil {
		return errors.New("not JSON")
	}
	if err := s.resolved.Validate(doc); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
