package slack

import "github.com/heddlehq/heddle/config"

// Variables of the channel.
var (
	varSecret = config.Var{Name: "SLACK_SIGNING_SECRET", Doc: "Signing secret of the app (Basic Information); several, separated by commas, while rotating.", Secret: true}
	varToken  = config.Var{Name: "SLACK_BOT_TOKEN", Doc: "Bot token of the app (OAuth & Permissions).", Secret: true, Example: "xoxb-..."}
	varAPIURL = config.Var{Name: "SLACK_API_URL", Doc: "Address of the Web API.", Default: defaultAPIURL}
	varApp    = config.Var{Name: "SLACK_APP_TOKEN", Doc: "App token for Socket Mode, which this version does not have: leave it unset.", Secret: true}
)

// Vars are the settings of the channel. It is enabled when a secret or token is set.
var Vars = []config.Var{varSecret, varToken, varAPIURL, varApp}

// Setup makes the channel from the settings, nil if it is not enabled or wrong.
// What is wrong is noted in the settings.
func Setup(s *config.Settings, access Access) *Channel {
	if s.Get(varApp) != "" {
		if !s.Has(varSecret) {
			s.Refuse(varApp.Name, "an app token without SLACK_SIGNING_SECRET", "SLACK_SIGNING_SECRET: this version takes events over HTTP")
			return nil
		}
		s.Warn(varApp.Name, "is not used: this version has no Socket Mode and takes events over HTTP")
	}
	if !s.Has(varSecret) && !s.Has(varToken) {
		return nil
	}
	before := s.Refused()
	o := Options{SigningSecrets: s.NeedList(varSecret), BotToken: s.Need(varToken), APIURL: s.URL(varAPIURL), Access: access}
	if s.Refused() > before {
		return nil
	}
	c, err := New(o)
	if err != nil {
		s.Refuse(Name, err.Error(), "")
	}
	return c
}
