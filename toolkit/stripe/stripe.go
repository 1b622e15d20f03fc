// Package stripe is tools for Stripe: those that read, the newest state of what
// an event is about, and those that write, each of which has its effect once.
package stripe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/harness"
)

// An API makes one call of Stripe's API in an account, named as threads of the
// channel stripe name it, "" for the key's own, and returns the answer's JSON. A
// call that may succeed later is made again within ctx, with the same key, which
// makes it one effect. An error may have a method Unknown, which says that the
// call may have been carried out, and a method Told, its text for a model.
type API interface {
	Call(ctx context.Context, account, method, path string, form url.Values, key string) (json.RawMessage, error)
}

// channel is where the conversations of Stripe are.
const channel = "stripe"

// callTime bounds a tool.
const callTime = time.Minute

// UseRead mounts the tools that read, and shows the model the newest state of
// what an event of Stripe is about before it answers.
func UseRead(c *harness.Context, api API) {
	for _, t := range read(api) {
		harness.UseTool(c, t)
	}
	useNewest(c, api)
}

func read(api API) []harness.Tool {
	list := []harness.Tool{
		harness.NewTool("stripe_get", "Reads one object of Stripe as it is now, by its id: a customer, subscription, invoice, payment intent, charge, refund, dispute, payout, checkout session and so on. Amounts are in the smallest unit of their currency.",
			func(ctx context.Context, call *harness.Call, in getArgs) (string, error) {
				path := pathOf(in.ID)
				if path == "" {
					return "", fmt.Errorf("%w: %q is no id of an object that can be read", harness.ErrArgs, in.ID)
				}
				return get(ctx, api, call, path, nil)
			}),
		harness.NewTool("stripe_list", "Lists objects of Stripe, the newest first: "+strings.Join(slices.Sorted(maps.Keys(filters)), ", ")+". The filters are ids or states; each kind has its own.",
			func(ctx context.Context, call *harness.Call, in listArgs) (string, error) {
				query, err := in.query()
				if err != nil {
					return "", err
				}
				return get(ctx, api, call, "/v1/"+in.Kind, query)
			}),
		harness.NewTool("stripe_search", "Searches "+strings.Join(searchable, ", ")+" of Stripe by a query of its search language, such as email:'anna@example.com' or status:'active' AND metadata['order']:'77'. What changed a minute ago may not be found yet.",
			func(ctx context.Context, call *harness.Call, in searchArgs) (string, error) {
				if !slices.Contains(searchable, in.Kind) {
					return "", fmt.Errorf("%w: kind %q: want one of %s", harness.ErrArgs, in.Kind, strings.Join(searchable, ", "))
				}
				return get(ctx, api, call, "/v1/"+in.Kind+"/search", url.Values{"query": {in.Query}, "limit": {limit(in.Limit)}})
			}),
	}
	for i, t := range list {
		list[i] = t.Quiet().Interruptible().Timeout(callTime)
	}
	return list
}

type getArgs struct {
	ID string `json:"id" jsonschema:"of the object: cus_…, sub_…, in_…, pi_…, ch_…, re_…, dp_…"`
}

type listArgs struct {
	Kind          string `json:"kind" jsonschema:"customers, subscriptions, invoices, payment_intents, charges, refunds, disputes, payouts"`
	Customer      string `json:"customer,omitempty" jsonschema:"id of a customer"`
	Subscription  string `json:"subscription,omitempty" jsonschema:"id of a subscription"`
	PaymentIntent string `json:"payment_intent,omitempty" jsonschema:"id of a payment intent"`
	Charge        string `json:"charge,omitempty" jsonschema:"id of a charge"`
	Status        string `json:"status,omitempty" jsonschema:"state, such as open"`
	Email         string `json:"email,omitempty" jsonschema:"of a customer, exactly"`
	Limit         int    `json:"limit,omitempty" jsonschema:"how many, 1 to 20, usually 10"`
}

type searchArgs struct {
	Kind  string `json:"kind" jsonschema:"what to search"`
	Query string `json:"query" jsonschema:"in Stripe's search language"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many, 1 to 20, usually 10"`
}

// filters are what lists of a kind can be narrowed by.
var filters = map[string][]string{
	"customers": {"email"}, "subscriptions": {"customer", "status"}, "invoices": {"customer", "subscription", "status"},
	"payment_intents": {"customer"}, "charges": {"customer", "payment_intent"}, "refunds": {"charge", "payment_intent"},
	"disputes": {"charge", "payment_intent"}, "payouts": {"status"},
}

var searchable = []string{"charges", "customers", "invoices", "payment_intents", "subscriptions"}

func (in listArgs) query() (url.Values, error) {
	allowed, ok := filters[in.Kind]
	if !ok {
		return nil, fmt.Errorf("%w: kind %q: want one of %s", harness.ErrArgs, in.Kind, strings.Join(slices.Sorted(maps.Keys(filters)), ", "))
	}
	q := url.Values{"limit": {limit(in.Limit)}}
	for _, f := range [...][2]string{
		{"customer", in.Customer},
		{"subscription", in.Subscription},
		{"payment_intent", in.PaymentIntent},
		{"charge", in.Charge},
		{"status", in.Status},
		{"email", in.Email},
	} {
		switch {
		case f[1] == "":
		case !slices.Contains(allowed, f[0]):
			return nil, fmt.Errorf("%w: %s cannot be narrowed by %s, only by %s", harness.ErrArgs, in.Kind, f[0], strings.Join(allowed, " and "))
		default:
			q.Set(f[0], f[1])
		}
	}
	return q, nil
}

func limit(n int) string {
	if n < 1 || n > 20 {
		n = 10
	}
	return strconv.Itoa(n)
}

// resources are the paths of objects by how their ids begin.
var resources = map[string]string{
	"cus": "customers", "sub": "subscriptions", "in": "invoices", "pi": "payment_intents", "ch": "charges", "py": "charges", "re": "refunds", "pyr": "refunds",
	"dp": "disputes", "du": "disputes", "po": "payouts", "cs": "checkout/sessions", "seti": "setup_intents", "pm": "payment_methods", "price": "prices",
	"prod": "products", "cn": "credit_notes", "txn": "balance_transactions", "ii": "invoiceitems", "plink": "payment_links", "qt": "quotes", "evt": "events", "acct": "accounts",
}

// pathOf is where an object is read, "" if that is not known.
func pathOf(id string) string {
	kind, rest, _ := strings.Cut(id, "_")
	r := resources[kind]
	if r == "" || rest == "" || len(id) > 255 || strings.Trim(rest, "_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return ""
	}
	return "/v1/" + r + "/" + id
}

// account is that of the conversation, the key's own outside Stripe.
func account(call *harness.Call) string {
	if t := call.Thread(); t.Channel == channel {
		return t.Account
	}
	return ""
}

func get(ctx context.Context, api API, call *harness.Call, path string, query url.Values) (string, error) {
	answer, err := api.Call(ctx, account(call), http.MethodGet, path, query, "")
	if err != nil {
		return "", told(err)
	}
	return show(answer)
}

// told is an error for a model.
func told(err error) error {
	text := err.Error()
	if t := (interface{ Told() string })(nil); errors.As(err, &t) {
		text = t.Told()
	}
	if u := (interface{ Unknown() bool })(nil); errors.As(err, &u) && u.Unknown() {
		return fmt.Errorf("%s; %w", text, harness.ErrUnknown)
	}
	return errors.New(text)
}

// most bounds what a model is shown of one answer.
const most = 24 << 10

// show is an answer without what is empty or secret, in a size that a model can
// read: of a list as much as fits.
func show(answer []byte) (string, error) {
	v, err := decode(answer)
	if err != nil {
		return "", err
	}
	v = slim(v)
	for {
		text, err := encode(v)
		if err != nil || len(text) <= most {
			return text, err
		}
		m, _ := v.(map[string]any)
		list, _ := m["data"].([]any)
		if len(list) < 2 {
			return strings.ToValidUTF8(text[:most], "") + "… (the rest is left out)", nil
		}
		m["data"], m["has_more"] = list[:len(list)/2], true
	}
}

func decode(answer []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(answer))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, errors.New("the answer of stripe is no JSON")
	}
	return v, nil
}

func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// secret are fields that let whoever has them act.
var secret = []string{"client_secret", "secret", "url", "hosted_invoice_url", "invoice_pdf", "hosted_verification_url", "receipt_url"}

// slim leaves out what is empty and what is secret.
func slim(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, one := range v {
			if v[k] = slim(one); v[k] == nil || slices.Contains(secret, k) {
				delete(v, k)
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = slim(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	}
	return v
}
