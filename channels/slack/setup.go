// Package slack is the Slack adapter: it takes events over HTTP and in Socket
// Mode, posts and finds messages by the Web API, and tells what people are in the
// workspace.
package slack

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/heddlehq/heddle/channels"
	"github.com/heddlehq/heddle/config"
)

// Name is the channel's name in paths, thread keys and settings.
const Name = "slack"

const (
	defaultAPIURL = "https://slack.com/api/"
	appPrefix     = "xapp-" // of app tokens
)

// Options configure New. BotToken or ClientID is required, and SigningSecrets,
// AppToken or both.
type Options struct {
	SigningSecrets []string         // SLACK_SIGNING_SECRET; any of them verifies, so that it can be rotated
	AppToken       string           // SLACK_APP_TOKEN: events come in Socket Mode
	BotToken       string           // SLACK_BOT_TOKEN: of one workspace
	ClientID       string           // SLACK_CLIENT_ID: other workspaces may install the app
	ClientSecret   string           // SLACK_CLIENT_SECRET
	APIURL         string           // SLACK_API_URL, "" for Slack's own
	Access         Access           // who holds which role
	Client         *http.Client     // nil for one with timeouts; one without a timeout may hang as long as the context allows
	Clock          func() time.Time // nil for time.Now
}

// Access says who holds which role. An entry is a user id ("U…", "W…"), a person
// of another workspace ("T…/U…") or a user group ("S…"); Members may hold "all",
// every full member of the workspace. A person named by id holds the role even
// as a guest, foreigner or bot; anyone else must be a full member.
type Access struct {
	Members, Maintainers, Admins []string
}

// A Channel is Slack behind one bot token, and those of the workspaces that have
// installed the app. Its methods may be called at once.
type Channel struct {
	signing  [][]byte      // secrets
	home     *installation // of the bot token; nil without one
	appToken string
	apiURL   string // ends with a slash
	http     *http.Client
	app      *slack.Client // with the app token
	access   Access
	now      func() time.Time
	pulse    pulse
	hooks    []string        // hosts of response URLs
	values   channels.Memory // nil until Remember
	secrets  channels.Memory // nil without a key

	clientID, clientSecret string
	authorize              string        // address where people agree to an installation
	installing             chan struct{} // holds one while installations change

	moves  moves
	marks  marks
	titles titles
	posted posted

	mu       sync.Mutex
	groups   map[string]group         // by workspace and user group; guarded by mu
	rooms    map[string]room          // by workspace and id; guarded by mu
	direct   map[string]string        // direct messages by workspace and person; guarded by mu
	installs map[string]*installation // by workspace or organisation; guarded by mu
	orgs     map[string]string        // organisations by workspace; guarded by mu
	states   map[string]time.Time     // of installations, that were used; guarded by mu
}

var (
	_ channels.Webhook    = (*Channel)(nil)
	_ channels.Socket     = (*Channel)(nil)
	_ channels.Sender     = (*Channel)(nil)
	_ channels.Finder     = (*Channel)(nil)
	_ channels.Roster     = (*Channel)(nil)
	_ channels.Opener     = (*Channel)(nil)
	_ channels.Historian  = (*Channel)(nil)
	_ channels.Marker     = (*Channel)(nil)
	_ channels.Whisperer  = (*Channel)(nil)
	_ channels.Rememberer = (*Channel)(nil)
	_ channels.Pages      = (*Channel)(nil)
	_ channels.Signer     = (*Channel)(nil)
	_ channels.Fetcher    = (*Channel)(nil)
)

// New checks the options and does no I/O. Its error names the setting that is
// wrong and never shows a secret.
func New(o Options) (*Channel, error) {
	if len(o.SigningSecrets) == 0 && o.AppToken == "" {
		return nil, fmt.Errorf("SLACK_SIGNING_SECRET is empty: want the app's signing secret, or SLACK_APP_TOKEN for Socket Mode")
	}
	secrets := make([][]byte, 0, len(o.SigningSecrets))
	for i, s := range o.SigningSecrets {
		if s != strings.TrimSpace(s) || config.Placeholder(s) {
			return nil, fmt.Errorf("SLACK_SIGNING_SECRET: entry %d is empty or a placeholder: want the app's signing secret", i+1)
		}
		secrets = append(secrets, []byte(s))
	}
	if o.ClientID != "" && config.Placeholder(o.ClientSecret) {
		return nil, fmt.Errorf("SLACK_CLIENT_SECRET is empty or a placeholder: want the app's client secret")
	}
	if (o.ClientID == "" || o.BotToken != "") && config.Placeholder(o.BotToken) || strings.HasPrefix(o.BotToken, appPrefix) {
		return nil, fmt.Errorf("SLACK_BOT_TOKEN is empty, a placeholder or an app token: want a bot token (xoxb-…)")
	}
	if o.AppToken != "" && (config.Placeholder(o.AppToken) || !strings.HasPrefix(o.AppToken, appPrefix)) {
		return nil, fmt.Errorf("SLACK_APP_TOKEN is a placeholder or no app token: want one (xapp-…) with the scope connections:write")
	}
	apiURL, err := endpoint(o.APIURL)
	if err != nil {
		return nil, err
	}
	if err := o.Access.validate(); err != nil {
		return nil, err
	}
	client, now := o.Client, o.Clock
	if client == nil {
		client = channels.NewClient()
	}
	if now == nil {
		now = time.Now
	}
	c := &Channel{
		signing: secrets, appToken: o.AppToken, apiURL: apiURL, http: client, now: now, access: o.Access,
		groups: map[string]group{}, rooms: map[string]room{}, direct: map[string]string{}, marks: marks{shown: map[string]shown{}}, titles: titles{text: map[string]string{}}, posted: posted{roots: map[string]string{}}, pulse: usualPulse,
		hooks: []string{"hooks.slack.com", "hooks.slack-gov.com", hostOf(apiURL)},
		app:   slack.New("", slack.OptionAppLevelToken(o.AppToken), slack.OptionHTTPClient(client), slack.OptionAPIURL(apiURL)),
	}
	c.clientID, c.clientSecret, c.installing = o.ClientID, o.ClientSecret, make(chan struct{}, 1)
	c.installs, c.orgs, c.states = map[string]*installation{}, map[string]string{}, map[string]time.Time{}
	c.authorize = "https://slack.com/oauth/v2/authorize"
	if apiURL != defaultAPIURL {
		u, err := url.Parse(apiURL)
		if err != nil {
			return nil, err // unreachable: endpoint has read it
		}
		c.authorize = u.Scheme + "://" + u.Host + "/oauth/v2/authorize"
	}
	if o.BotToken != "" {
		c.home = c.open(o.BotToken)
	}
	return c, nil
}

// Name is "slack".
func (c *Channel) Name() string { return Name }

func endpoint(s string) (string, error) {
	if s == "" {
		return defaultAPIURL, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.User != nil {
		return "", fmt.Errorf("SLACK_API_URL: want an http or https address such as %s", defaultAPIURL)
	}
	return strings.TrimSuffix(s, "/") + "/", nil
}

// hostOf is the host of an address that endpoint has accepted.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

func (a Access) validate() error {
	for _, f := range []struct {
		name string
		ids  []string
	}{{"members", a.Members}, {"maintainers", a.Maintainers}, {"admins", a.Admins}} {
		for _, id := range f.ids {
			switch {
			case id == "all" && f.name == "members":
			case id == "all":
				return fmt.Errorf("access.slack.%s: %q is allowed for members only", f.name, id)
			case !isID(id):
				return fmt.Errorf("access.slack.%s: %q: want all, a user id (U…), a person of another workspace (T…/U…) or a user group (S…)", f.name, id)
			}
		}
	}
	return nil
}

func isID(s string) bool {
	team, user, foreign := strings.Cut(s, "/")
	if !foreign {
		return token(s, "UWS")
	}
	return token(team, "TE") && token(user, "UW")
}

// token tells an id of Slack: a letter out of kinds, then digits and upper case letters.
func token(s, kinds string) bool {
	return len(s) > 1 && strings.Contains(kinds, s[:1]) &&
		strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
