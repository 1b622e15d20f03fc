package stripe

import "github.com/heddlehq/heddle/config"

// Variables of the channel.
var (
	varSecret = config.Var{Name: "STRIPE_WEBHOOK_SECRET", Doc: "Signing secret of the webhook endpoint; several, separated by commas, for several endpoints and while one is rolled.", Secret: true, Example: "whsec_..."}
	varKey    = config.Var{Name: "STRIPE_API_KEY", Doc: "A restricted key that may read events, customers, subscriptions, invoices, payments and disputes. Without it nothing is read back and missed events are not looked for. Its mode decides which events are taken: live or test.", Secret: true, Example: "rk_live_..."}
	varAPIURL = config.Var{Name: "STRIPE_API_URL", Doc: "Address of the API.", Default: defaultAPIURL}
)

// Vars are the settings of the channel. It is enabled when the secret or the key is set.
var Vars = []config.Var{varSecret, varKey, varAPIURL}

// Topics are what events are about, as routes name them: TYPE stands for every
// type of event.
var Topics = []string{"stripe.TYPE", "stripe.*"}

// Settings are the section stripe.
type Settings struct {
	Thread   string   `yaml:"thread" doc:"What one conversation is about: customer (the default), subscription, invoice, payment_intent, dispute or object, each with what is nearest where an event names none; or a template over the event's facts, such as {{or .invoice .customer .object}}."`
	Accounts []string `yaml:"accounts" doc:"Connected accounts that are listened to; all whose events come if not set."`
}

// Setup makes the channel from the settings, nil if it is not enabled or wrong.
// What is wrong is noted in the settings.
func Setup(s *config.Settings, section Settings) *Channel {
	if !s.Has(varSecret) && !s.Has(varKey) {
		return nil
	}
	before := s.Refused()
	o := Options{Secrets: s.NeedList(varSecret), APIKey: s.Get(varKey), APIURL: s.URL(varAPIURL), Thread: section.Thread, Accounts: section.Accounts}
	if s.Refused() > before {
		return nil
	}
	c, err := New(o)
	switch {
	case err != nil:
		s.Refuse(Name, err.Error(), "")
	case o.APIKey == "":
		s.Warn(varKey.Name, "is not set: nothing is read back from Stripe, and events that did not arrive are not looked for")
	case c.mode == "":
		s.Warn(varKey.Name, "does not say its mode: events of live and test mode are taken")
	}
	return c
}
