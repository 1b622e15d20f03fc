package gemini

import "github.com/heddlehq/heddle/config"

var (
	varKey  = config.Var{Name: "GEMINI_API_KEY", Doc: "Key for Gemini.", Secret: true}
	varBase = config.Var{Name: "GEMINI_BASE_URL", Doc: "Address of Gemini or of a compatible server, with its /v1beta.", Default: DefaultBaseURL}
)

// Vars are the settings of the provider.
var Vars = []config.Var{varKey, varBase}

// Setup makes the provider "gemini" if it has a key or an address of its own, else nil.
func Setup(s *config.Settings) *Provider {
	key, base := s.Get(varKey), s.URL(varBase)
	if key == "" && base == varBase.Default {
		return nil
	}
	return New(Options{APIKey: key, BaseURL: base})
}
