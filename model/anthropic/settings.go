package anthropic

import "github.com/heddlehq/heddle/config"

var (
	varKey  = config.Var{Name: "ANTHROPIC_API_KEY", Doc: "Key for Anthropic.", Secret: true}
	varBase = config.Var{Name: "ANTHROPIC_BASE_URL", Doc: "Address of Anthropic or of a compatible server.", Default: DefaultBaseURL}
)

// Vars are the settings of the provider.
var Vars = []config.Var{varKey, varBase}

// Setup makes the provider "anthropic" if it has a key or an address of its own, else nil.
func Setup(s *config.Settings) *Provider {
	key, base := s.Get(varKey), s.URL(varBase)
	if key == "" && base == varBase.Default {
		return nil
	}
	return New(Options{APIKey: key, BaseURL: base})
}
