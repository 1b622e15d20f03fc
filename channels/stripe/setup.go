// Package stripe is the Stripe adapter: it verifies and reads webhooks, those of
// snapshot and of thin events, asks for events that did not arrive, and makes the
// API calls of the tools. It posts nothing: Stripe has no place for words.
package stripe

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/stripe/stripe-go/v79"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// Name is the channel's name in paths, thread keys and settings.
const Name = "stripe"

// Options configure New. Secrets is required.
type Options struct {
	Secrets  []string         // STRIPE_WEBHOOK_SECRET; any of them verifies: one for each endpoint, and while one is rolled
	APIKey   string           // STRIPE_API_KEY, "" for none: nothing can be asked then
	APIURL   string           // STRIPE_API_URL, "" for Stripe's own
	Thread   string           // what a conversation is about, "" for the customer
	Accounts []string         // connected accounts that are listened to, none for all
	Client   *http.Client     // nil for one with timeouts
	Clock    func() time.Time // nil for time.Now
}

// A Channel is Stripe behind one API key, or none. Its methods may be called at once.
type Channel struct {
	secrets  [][]byte
	thread   *template.Template
	accounts []string
	key      string
	mode     string // of the key: "live", "test", "" if not known
	api      stripe.Backend
	now      func() time.Time

	mu     sync.Mutex
	closed map[string]time.Time // connected accounts that the key cannot reach, until when that is believed; guarded by mu
}

var (
	_ channels.Webhook   = (*Channel)(nil)
	_ channels.Historian = (*Channel)(nil)
	_ channels.Socket    = (*Channel)(nil)
	_ channels.Signer    = (*Channel)(nil)
)

// New checks the options and does no I/O. Its error names the setting that is
// wrong and never shows a secret.
func New(o Options) (*Channel, error) {
	if len(o.Secrets) == 0 {
		return nil, fmt.Errorf("STRIPE_WEBHOOK_SECRET is empty: want the signing secret of the endpoint (whsec_…)")
	}
	var secrets [][]byte
	for i, s := range o.Secrets {
		if s != strings.TrimSpace(s) || config.Placeholder(s) {
			return nil, fmt.Errorf("STRIPE_WEBHOOK_SECRET: entry %d is empty or a placeholder: want the signing secret of the endpoint (whsec_…)", i+1)
		}
		secrets = append(secrets, []byte(s)) // as it is, prefix and all
	}
	thread, err := threadOf(o.Thread)
	if err != nil {
		return nil, fmt.Errorf("stripe.thread: %w", err)
	}
	for _, a := range o.Accounts {
		if !strings.HasPrefix(a, "acct_") || !isID(a) {
			return nil, fmt.Errorf("stripe.accounts: %q: want the id of a connected account (acct_…)", a)
		}
	}
	c := &Channel{secrets: secrets, thread: thread, accounts: slices.Clone(o.Accounts), now: o.Clock, closed: map[string]time.Time{}}
	if c.now == nil {
		c.now = time.Now
	}
	if o.APIKey == "" {
		return c, nil
	}
	if config.Placeholder(o.APIKey) {
		return nil, fmt.Errorf("STRIPE_API_KEY is a placeholder: want a restricted key (rk_…)")
	}
	if strings.HasPrefix(o.APIKey, "pk_") {
		return nil, fmt.Errorf("STRIPE_API_KEY is a publishable key, which can read nothing: want a restricted key (rk_…)")
	}
	c.key, c.mode = o.APIKey, modeOf(o.APIKey)
	c.api, err = backend(o.APIURL, o.Client)
	return c, err
}

// Name is "stripe".
func (c *Channel) Name() string { return Name }

// Asks says whether there is a key to ask Stripe with.
func (c *Channel) Asks() bool { return c.api != nil }

// modeOf reads the mode of a key from its prefix.
func modeOf(key string) string {
	for _, mode := range [...]string{"live", "test"} {
		if strings.HasPrefix(key, "sk_"+mode+"_") || strings.HasPrefix(key, "rk_"+mode+"_") {
			return mode
		}
	}
	return ""
}

// isID tells whether a text can be an id of Stripe.
func isID(s string) bool {
	return s != "" && len(s) <= 255 && strings.Trim(s, "_-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}
