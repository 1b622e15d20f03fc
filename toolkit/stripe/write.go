package stripe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/harness"
)

// Write returns the tools that change things. Whoever mounts them has to see to
// it that a person agrees to each call. A call has one effect, also through a
// crash: it is repeated with what it asked first, under the same key, and when
// Stripe has forgotten the key, its effect is looked for before.
func Write(api API) []harness.Tool {
	list := []harness.Tool{
		harness.NewTool("stripe_refund", "Refunds a payment, whole or in part.", func(ctx context.Context, call *harness.Call, in refundArgs) (string, error) {
			form := map[string]string{"metadata[heddle_key]": call.Key()}
			name, of := "payment_intent", in.PaymentIntent
			if of == "" {
				name, of = "charge", in.Charge
			}
			if pathOf(of) == "" || in.PaymentIntent != "" && in.Charge != "" || in.Amount < 0 {
				return "", fmt.Errorf("%w: want a payment intent or a charge, and an amount of 1 or more, or none for all", harness.ErrArgs)
			}
			form[name] = of
			if in.Amount > 0 {
				form["amount"] = strconv.FormatInt(in.Amount, 10)
			}
			return write(ctx, api, call, request{Method: http.MethodPost, Path: "/v1/refunds", Form: form}, func(v map[string]any) bool {
				m, _ := v["metadata"].(map[string]any)
				return m["heddle_key"] == call.Key()
			}, "/v1/refunds", url.Values{name: {of}, "limit": {"100"}})
		}),
		harness.NewTool("stripe_cancel_subscription", "Cancels a subscription, at once or at the end of its period.", func(ctx context.Context, call *harness.Call, in cancelArgs) (string, error) {
			if !strings.HasPrefix(in.Subscription, "sub_") || pathOf(in.Subscription) == "" {
				return "", fmt.Errorf("%w: %q is no id of a subscription", harness.ErrArgs, in.Subscription)
			}
			path := pathOf(in.Subscription)
			r := request{Method: http.MethodDelete, Path: path}
			done := func(v map[string]any) bool { return v["status"] == "canceled" }
			if in.AtPeriodEnd {
				r = request{Method: http.MethodPost, Path: path, Form: map[string]string{"cancel_at_period_end": "true"}}
				done = func(v map[string]any) bool { return v["status"] == "canceled" || v["cancel_at_period_end"] == true }
			}
			return write(ctx, api, call, r, done, path, nil)
		}),
		harness.NewTool("stripe_void_invoice", "Voids an open invoice, so that it need not be paid. This cannot be undone.", func(ctx context.Context, call *harness.Call, in voidArgs) (string, error) {
			path := pathOf(in.Invoice)
			if !strings.HasPrefix(in.Invoice, "in_") || path == "" {
				return "", fmt.Errorf("%w: %q is no id of an invoice", harness.ErrArgs, in.Invoice)
			}
			return write(ctx, api, call, request{Method: http.MethodPost, Path: path + "/void"}, func(v map[string]any) bool { return v["status"] == "void" }, path, nil)
		}),
		harness.NewTool("stripe_note", "Keeps a note at an object of Stripe, for colleagues; it replaces the last one.", func(ctx context.Context, call *harness.Call, in noteArgs) (string, error) {
			path := pathOf(in.ID)
			if path == "" || strings.TrimSpace(in.Text) == "" {
				return "", fmt.Errorf("%w: want the id of an object and a text", harness.ErrArgs)
			}
			form := note(in.Text)
			return write(ctx, api, call, request{Method: http.MethodPost, Path: path, Form: form}, func(v map[string]any) bool {
				m, _ := v["metadata"].(map[string]any)
				return m["heddle_note_1"] == form["metadata[heddle_note_1]"]
			}, path, nil)
		}),
	}
	for i, t := range list {
		list[i] = t.Durable().SerialWith("stripe").Timeout(2 * callTime)
	}
	return list
}

type refundArgs struct {
	PaymentIntent string `json:"payment_intent,omitempty" jsonschema:"id of the payment intent; or give charge"`
	Charge        string `json:"charge,omitempty" jsonschema:"id of the charge"`
	Amount        int64  `json:"amount,omitempty" jsonschema:"in the smallest unit of the currency; all if left out"`
}

type cancelArgs struct {
	Subscription string `json:"subscription" jsonschema:"id of the subscription"`
	AtPeriodEnd  bool   `json:"at_period_end,omitempty" jsonschema:"not at once, but when what is paid for ends"`
}

type voidArgs struct {
	Invoice string `json:"invoice" jsonschema:"id of the invoice"`
}

type noteArgs struct {
	ID   string `json:"id" jsonschema:"of the object"`
	Text string `json:"text" jsonschema:"the note, at most 5000 characters"`
}

// A note takes so many values of metadata, of so many characters. Stripe has
// room for 50 of 500, and others keep theirs there as well.
const (
	noteParts = 10
	noteRunes = 500
)

// note is the metadata that keeps a text. Parts that it does not need are emptied.
func note(text string) map[string]string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	runes := []rune(strings.TrimSpace(text))
	if len(runes) > noteParts*noteRunes {
		runes = append(runes[:noteParts*noteRunes-1], '…')
	}
	form := map[string]string{}
	for i := range noteParts {
		n := min(noteRunes, len(runes))
		form[fmt.Sprintf("metadata[heddle_note_%d]", i+1)] = string(runes[:n])
		runes = runes[n:]
	}
	return form
}

// A request is a write as it was asked for first.
type request struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Form   map[string]string `json:"form,omitempty"`
	At     time.Time         `json:"at"`
}

// kept is how long Stripe surely knows a key.
const kept = 23 * time.Hour

// write carries out a request once: what the first try asked for is what every
// one asks for. When the key may be forgotten, done looks at what is there.
func write(ctx context.Context, api API, call *harness.Call, r request, done func(map[string]any) bool, look string, query url.Values) (string, error) {
	r, err := harness.Step(ctx, call, "request", func(context.Context) (request, error) {
		r.At = time.Now()
		return r, nil
	})
	if err != nil {
		return "", err
	}
	if time.Since(r.At) > kept {
		answer, err := api.Call(ctx, account(call), http.MethodGet, look, query, "")
		if err != nil {
			return "", told(err)
		}
		if there, found := find(answer, done); found {
			return there, nil
		}
	}
	form := url.Values{}
	for k, v := range r.Form {
		form.Set(k, v)
	}
	answer, err := api.Call(ctx, account(call), r.Method, r.Path, form, call.Key())
	if err != nil {
		return "", told(err)
	}
	return show(answer)
}

// find looks for the effect in an object, or in a list of them.
func find(answer []byte, done func(map[string]any) bool) (string, bool) {
	var list struct {
		Object string            `json:"object"`
		Data   []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &list) != nil || list.Object != "list" {
		list.Data = []json.RawMessage{answer}
	}
	for _, one := range list.Data {
		v, _ := decode(one)
		if m, ok := v.(map[string]any); ok && done(m) {
			text, err := show(one)
			return text, err == nil
		}
	}
	return "", false
}
