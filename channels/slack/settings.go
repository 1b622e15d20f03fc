package slack

import "github.com/heddlehq/heddle/config"

// Variables of the channel.
var (
	varSecret = config.Var{Name: "SLACK_SIGNING_SECRET", Doc: "Signing secret of the app (Basic Information), for events over HTTP; several, separated by commas, while rotating. Not needed in Socket Mode.", Secret: true}
	varToken  = config.Var{Name: "SLACK_BOT_TOKEN", Doc: "Bot token of the app (OAuth & Permissions).", Secret: true, Example: "xoxb-..."}
	varAPIURL = config.Var{Name: "SLACK_API_URL", Doc: "Address of the Web API.", Default: defaultAPIURL}
	varApp    = config.Var{Name: "SLACK_APP_TOKEN", Doc: "App token with the scope connections:write: events come in Socket Mode, without a public address. With SLACK_SIGNING_SECRET as well they come both ways.", Secret: true, Example: "xapp-..."}
)

// Vars are the settings of the channel. It is enabled when a secret or token is set.
var Vars = []config.Var{varSecret, varToken, varAPIURL, varApp}

// Setup makes the channel from the settings, nil if it is not enabled or wrong.
// What is wrong is noted in the settings.
func Setup(s *config.Settings, access Access) *Channel {
	if !s.Has(varSecret) && !s.Has(varToken) && !s.Has(varApp) {
		return nil
	}
	before := s.Refused()
	o := Options{AppToken: s.Get(varApp), BotToken: s.Need(varToken), APIURL: s.URL(varAPIURL), Access: access}
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
