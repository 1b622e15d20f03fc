package github

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/config"
)

// Variables of the channel.
var (
	varSecret = config.Var{Name: "GITHUB_WEBHOOK_SECRET", Doc: "Secret of the webhook; several, separated by commas, while changing it.", Secret: true}
	varApp    = config.Var{Name: "GITHUB_APP_ID", Doc: "ID of the GitHub App, a number.", Example: "123456"}
	varKey    = config.Var{Name: "GITHUB_APP_PRIVATE_KEY", Doc: "Private key of the App, in PEM; GITHUB_APP_PRIVATE_KEY_FILE names the file that GitHub lets you download.", Secret: true}
	varToken  = config.Var{Name: "GITHUB_TOKEN", Doc: "Token of a user who answers, in place of an App.", Secret: true, Example: "github_pat_..."}
	varAPIURL = config.Var{Name: "GITHUB_API_URL", Doc: "Address of the REST API; for GitHub Enterprise Server https://HOST/api/v3.", Default: defaultAPIURL}
	varSetup  = config.Var{Name: "GITHUB_SETUP_TOKEN", Doc: "Opens https://HOST/github/setup?token=..., where a browser makes the App, while none is set; unset it then.", Secret: true, Example: "what openssl rand -hex 32 prints"}
	varEvery  = config.Var{Name: "GITHUB_WRITE_EVERY", Doc: "Time between two writes of one installation. GitHub asks for a second; a server of your own without limits needs none.", Default: "1s", Example: "0s"}
)

// Vars are the settings of the channel. It is enabled when one of its secrets is set.
var Vars = []config.Var{varSecret, varApp, varKey, varToken, varAPIURL, varEvery, varSetup}

// Setup makes the channel from the settings, nil if it is not enabled or wrong.
// What is wrong is noted in the settings.
func Setup(s *config.Settings, access Access) *Channel {
	if !s.Has(varSecret) && !s.Has(varApp) && !s.Has(varKey) {
		return nil // a token alone may be there for other programs
	}
	before := s.Refused()
	every, err := time.ParseDuration(s.Get(varEvery))
	if err != nil {
		s.Refuse(varEvery.Name, strconv.Quote(s.Get(varEvery)), "a time such as 1s")
	}
	o := Options{WebhookSecrets: s.NeedList(varSecret), APIURL: s.URL(varAPIURL), WriteEvery: every, Access: access}
	if s.Has(varApp) || s.Has(varKey) {
		o.AppID, o.PrivateKey = s.Need(varApp), s.Need(varKey)
		if s.Has(varToken) {
			s.Warn(varToken.Name, "is not used: the App has tokens of its own")
		}
	} else {
		o.Token = s.Need(varToken)
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

// SetupInstaller makes the installer from the settings, nil if it is not wanted,
// not needed or wrong. What is wrong is noted in the settings.
func SetupInstaller(s *config.Settings) *Installer {
	token := s.Get(varSetup)
	switch {
	case token == "":
		return nil
	case s.Has(varApp) || s.Has(varKey) || s.Has(varSecret):
		s.Warn(varSetup.Name, "is not used beside the other settings of GitHub")
		return nil
	}
	i, err := NewInstaller(token, s.URL(varAPIURL))
	if err != nil {
		s.Refuse(Name, err.Error(), "")
	}
	return i
}

// Access says who holds which role. Members and Maintainers are the least
// permission on the repository, Admins the ids of users. "" is nobody.
type Access struct {
	Members, Maintainers string
	Admins               []string
}

// permissions are those of GitHub, the least first.
var permissions = []string{"read", "triage", "write", "maintain", "admin"}

func (a Access) validate() error {
	for _, f := range [...]struct{ name, permission string }{{"members", a.Members}, {"maintainers", a.Maintainers}} {
		if f.permission != "" && !slices.Contains(permissions, f.permission) {
			return fmt.Errorf("access.github.%s: %q: want a permission on the repository: %s", f.name, f.permission, strings.Join(permissions, ", "))
		}
	}
	for _, id := range a.Admins {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n <= 0 {
			return fmt.Errorf("access.github.admins: %q: want the id of a user, a number (https://api.github.com/users/LOGIN shows it)", id)
		}
	}
	return nil
}
