package stripe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/chat"
)

// Own begins the idempotency keys of Heddle's own writes: the events that they
// cause are ignored.
const Own = "heddle_"

// self is the account of what happens in the account of the endpoint itself;
// that of a connected account is its id. In test mode both end in ".test".
const (
	self       = "self"
	testSuffix = ".test"
)

// inbound maps a webhook to what it means for us; pure.
func (c *Channel) inbound(o object) (channels.Inbound, error) {
	id, kind := o.text("id"), o.text("object")
	thin := kind == "v2.core.event"
	switch {
	case kind != "event" && !thin:
		return ignored("", "not an event"), nil
	case !isID(id):
		return ignored("", "no event id"), nil
	case o.text("type") == "v2.core.event_destination.ping":
		return ignored(id, "ping"), nil
	case !isType(o.text("type")):
		return ignored(id, "no event type"), nil
	}
	account, reason := c.account(o)
	if reason != "" {
		return ignored(id, reason), nil
	}
	if strings.HasPrefix(o.object("request").text("idempotency_key"), Own) {
		return ignored(id, "own write"), nil
	}
	f, about := facts(o), o.object("data").object("object")
	if thin {
		f, about = thinFacts(o), object{}
	}
	if about == nil {
		return ignored(id, "no object"), nil
	}
	f["account"] = account
	e := chat.Event{
		ID: id, Kind: chat.Notice, Topic: o.text("type"), Ref: id, At: created(o), Facts: f,
		Thread: chat.Thread{Channel: Name, Account: account, Room: c.room(f)},
	}
	delete(f, "home")
	if thin {
		e.Text = thinText(o, f)
	} else {
		e.Same = same(o, e)
		e.Text = text(o, f)
	}
	if err := e.Thread.Validate(); err != nil {
		return channels.Inbound{}, fmt.Errorf("%w: %w", err, channels.ErrMalformed)
	}
	return channels.Inbound{Events: []chat.Event{e}}, nil
}

// isType tells whether a text can be the type of an event.
func isType(s string) bool {
	return s != "" && len(s) <= 128 && strings.Trim(s, "._0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

// account is whose event it is, in which mode, or why it is not for us.
func (c *Channel) account(o object) (account, reason string) {
	live, ok := o["livemode"].(bool)
	if !ok {
		return "", "no mode"
	}
	if c.mode != "" && live != (c.mode == "live") {
		return "", "other mode than the key's"
	}
	account = o.text("account")
	if account == "" {
		account = o.text("context") // of a thin event
	}
	switch {
	case account == "":
		account = self
	case !isID(account):
		return "", "unknown account"
	case len(c.accounts) > 0 && !slices.Contains(c.accounts, account):
		return "", "unknown account"
	}
	if !live {
		account += testSuffix
	}
	return account, ""
}

// created is when the event happened: seconds, or a text in a thin event.
func created(o object) time.Time {
	switch v := o["created"].(type) {
	case json.Number:
		if s, ok := channels.Seconds(v.String()); ok {
			return time.Unix(s, 0).UTC()
		}
	case string:
		if t, err := time.Parse(time.RFC3339, v); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// same is the identity of the change itself: Stripe now and then makes two
// events for one. Equal are the type, the second and all that the event says.
func same(o object, e chat.Event) string {
	data, err := json.Marshal(o.object("data")) // with sorted keys
	if err != nil {
		return "" // unreachable: it came from JSON
	}
	sum := sha256.Sum256(data)
	return e.Thread.Account + "/" + e.Topic + "/" + e.Facts["object"] + "/" + strconv.FormatInt(e.At.Unix(), 10) + "/" + hex.EncodeToString(sum[:8])
}

// named are the objects that an event may be about or name.
var named = [...]string{"customer", "subscription", "invoice", "payment_intent", "charge", "dispute"}

// facts are the ids that a snapshot event names: what it is about under
// "object", with its kind and status, and every object of named.
func facts(o object) map[string]string {
	about := o.object("data").object("object")
	kind := about.text("object")
	f := map[string]string{"event": o.text("id"), "kind": kind, "object": about.id("id"), "status": about.text("status")}
	for _, name := range named {
		f[name] = about.id(name)
	}
	if f["subscription"] == "" { // newer forms of the API
		f["subscription"] = about.object("parent").object("subscription_details").id("subscription")
	}
	if f["charge"] == "" {
		f["charge"] = about.id("latest_charge")
	}
	if slices.Contains(named[:], kind) {
		f[kind] = f["object"]
	}
	f["home"] = home(about, f)
	for k, v := range f {
		if v == "" {
			delete(f, k)
		}
	}
	return f
}

// home is what the event belongs to when nothing else is asked for: "" for the
// account as a whole.
func home(about object, f map[string]string) string {
	nearest := func(names ...string) string {
		for _, n := range names {
			if f[n] != "" {
				return f[n]
			}
		}
		return f["object"]
	}
	switch kind := f["kind"]; kind {
	case "payout", "balance", "account", "application", "capability", "person":
		return ""
	case "charge", "refund":
		return nearest("payment_intent", "charge")
	case "setup_intent", "payment_method", "source", "card", "bank_account", "tax_id", "discount":
		return nearest("customer")
	case "invoice":
		if f["object"] == "" { // an upcoming one has no id yet
			n, _ := about["period_end"].(json.Number)
			if end, ok := channels.Seconds(n.String()); ok && f["subscription"] != "" {
				return f["subscription"] + "." + strconv.FormatInt(end, 10)
			}
		}
		return nearest("object", "subscription", "customer")
	}
	return nearest()
}

// thinFacts are the ids that a thin event names: its object and the path that it
// is read at.
func thinFacts(o object) map[string]string {
	about := o.object("related_object")
	id, kind := about.id("id"), about.text("type")
	f := map[string]string{"event": o.text("id")}
	if id == "" || !isType(kind) {
		return f
	}
	f["object"], f["kind"], f["home"] = id, kind, id
	if url := about.text("url"); isPath(url) {
		f["path"] = url
	}
	if short := kind[strings.LastIndexByte(kind, '.')+1:]; slices.Contains(named[:], short) {
		f[short] = id
	}
	return f
}

// isPath tells whether a text is a path of the API and nothing else.
func isPath(s string) bool {
	return (strings.HasPrefix(s, "/v1/") || strings.HasPrefix(s, "/v2/")) && len(s) <= 512 && !strings.Contains(s, "//") &&
		strings.Trim(s, "/_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

// shortcuts are the usual ways to say what a conversation is about.
var shortcuts = map[string]string{
	"":               "{{or .customer .home}}",
	"customer":       "{{or .customer .home}}",
	"subscription":   "{{or .subscription .home}}",
	"invoice":        "{{or .invoice .home}}",
	"payment_intent": "{{or .payment_intent .home}}",
	"dispute":        "{{or .dispute .home}}",
	"object":         "{{.home}}",
}

// threadOf reads a setting that says what a conversation is about.
func threadOf(s string) (*template.Template, error) {
	if short, ok := shortcuts[s]; ok {
		s = short
	} else if !strings.Contains(s, "{{") {
		return nil, fmt.Errorf("%q: want customer, subscription, invoice, payment_intent, dispute, object, or a template such as {{or .invoice .customer .home}}", s)
	}
	t, err := template.New("thread").Option("missingkey=zero").Parse(s)
	if err == nil {
		// Whether it can be carried out at all shows on facts that have everything.
		all := map[string]string{"event": "evt_1", "object": "in_1", "kind": "invoice", "status": "open", "account": self, "home": "in_1"}
		for _, n := range named {
			all[n] = n
		}
		err = t.Execute(&strings.Builder{}, all)
	}
	if err != nil {
		return nil, fmt.Errorf("template: %w", err)
	}
	return t, nil
}

const maxRoomBytes = 255

// room is the part of the thread that says what the conversation is about.
func (c *Channel) room(f map[string]string) string {
	var b strings.Builder
	if c.thread.Execute(&b, f) != nil || b.Len() > maxRoomBytes {
		return f["home"]
	}
	return strings.ToValidUTF8(strings.TrimSpace(b.String()), "")
}
