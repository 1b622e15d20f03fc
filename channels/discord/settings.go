package discord

import "github.com/heddlehq/heddle/config"

// Variables of the channel.
var (
	varToken  = config.Var{Name: "DISCORD_BOT_TOKEN", Doc: "Token of the bot (Bot page of the application); it also connects to the Gateway.", Secret: true}
	varApp    = config.Var{Name: "DISCORD_APPLICATION_ID", Doc: "Id of the application; asked of Discord if not set."}
	varKey    = config.Var{Name: "DISCORD_PUBLIC_KEY", Doc: "Public key of the application (General Information), for interactions over HTTP; without it they come by the Gateway."}
	varAPIURL = config.Var{Name: "DISCORD_API_URL", Doc: "Address of the REST API.", Default: defaultAPIURL}
)

// Vars are the settings of the channel. It is enabled when the token or the key is set.
var Vars = []config.Var{varToken, varApp, varKey, varAPIURL}

// Setup makes the channel from the settings, nil if it is not enabled or wrong.
// What is wrong is noted in the settings.
func Setup(s *config.Settings, access Access) *Channel {
	if !s.Has(varToken) && !s.Has(varKey) {
		return nil
	}
	before := s.Refused()
	o := Options{
		BotToken: s.Need(varToken), ApplicationID: s.Get(varApp), PublicKey: s.Get(varKey), APIURL: s.URL(varAPIURL), Access: access,
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
