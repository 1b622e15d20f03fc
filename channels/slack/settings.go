package slack

import "github.com/heddlehq/heddle/config"

// Variables of the channel.
var (
	varSecret       = config.Var{Name: "SLACK_SIGNING_SECRET", Doc: "Signing secret of the app (Basic Information), for events over HTTP; several, separated by commas, while rotating. Not needed in Socket Mode.", Secret: true}
	varToken        = config.Var{Name: "SLACK_BOT_TOKEN", Doc: "Bot token of the app (OAuth & Permissions).", Secret: true, Example: "xoxb-..."}
	varAPIURL       = config.Var{Name: "SLACK_API_URL", Doc: "Address of the Web API.", Default: defaultAPIURL}
	varClient       = config.Var{Name: "SLACK_CLIENT_ID", Doc: "Client ID of the app (Basic Information): other workspaces install it at `/slack/install`. Needs `HEDDLE_SECRET_KEY`, which encrypts their tokens. SLACK_BOT_TOKEN is not needed then."}
	varClientSecret = config.Var{Name: "SLACK_CLIENT_SECRET", Doc: "Client secret of the app (Basic Information).", Secret: true}
	varApp          = config.Var{Name: "SLACK_APP_TOKEN", Doc: "App token with the scope connections:write: events come in Socket Mode, without a public address. With SLACK_SIGNING_SECRET as well they come both ways.", Secret: true, Example: "xapp-..."}
)

// secretKey is the gateway's own; without it there is no place for tokens.
var secretKey = config.Var{Name: "HEDDLE_SECRET_KEY", Secret: true}

// Vars are the settings of the channel. It is enabled when a secret or token is set.
var Vars = []config.Var{varSecret, varToken, varAPIURL, varApp, varClient, varClientSecret}

// Setup makes the channel from the settings, nil if it is not enabled or wrong.
// What is wrong is noted in the settings.
func Setup(s *config.Settings, access Access) *Channel {
	if !s.Has(varSecret) && !s.Has(varToken) && !s.Has(varApp) && !s.Has(varClient) {
		return nil
	}
	before := s.Refused()
	o := Options{AppToken: s.Get(varApp), ClientID: s.Get(varClient), APIURL: s.URL(varAPIURL), Access: access}
	if o.ClientID != "" {
		o.ClientSecret = s.Need(varClientSecret)
		if s.Get(secretKey) == "" {
			s.Refuse(secretKey.Name, "nothing", "a key, because workspaces install the app at /slack/install; one is made by: gateway secrets key")
		}
	}
	if o.ClientID == "" || s.Has(varToken) {
		o.BotToken = s.Need(varToken)
	}
	if o.AppToken == "" || s.Has(varSecret) {
		o.SigningSecrets = s.NeedList(varSecret)
	}
	if s.Refused() > before {
		return nil
	}
	c, err := New(o)
	if err != nil {
		s.Refuse(Name, err.Error(), "")
	}
	return c
}
