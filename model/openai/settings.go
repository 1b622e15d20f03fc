package openai

import (
	"net/url"
	"strings"

	"github.com/heddlehq/heddle/config"
)

var (
	varKey    = config.Var{Name: "OPENAI_API_KEY", Doc: "Key for OpenAI, or for the compatible server at OPENAI_BASE_URL.", Secret: true}
	varBase   = config.Var{Name: "OPENAI_BASE_URL", Doc: "Address of OpenAI or of a compatible server (vLLM, OpenRouter, LiteLLM), with its /v1.", Default: DefaultBaseURL}
	varOllama = config.Var{Name: "OLLAMA_HOST", Doc: "Address of an Ollama server; enables models named ollama/...", Example: "http://127.0.0.1:11434"}
)

// Vars are the settings of the providers that speak this wire format.
var Vars = []config.Var{varKey, varBase, varOllama}

// Setup makes the providers that the settings enable: "openai" with a key or an
// address of its own, "ollama" with a host.
func Setup(s *config.Settings) []*Provider {
	var out []*Provider
	key, base, host := Servers(s)
	if key != "" || base != varBase.Default {
		if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
			s.Warn(varBase.Name, "has no path; most servers want "+u.JoinPath("v1").String())
		}
		out = append(out, New(Options{APIKey: key, BaseURL: base}))
	}
	if host != "" {
		out = append(out, Ollama(host))
	}
	return out
}

// Servers are the servers that the settings name, for whoever asks them for
// something else than answers: OpenAI's key and address, and Ollama's host.
func Servers(s *config.Settings) (key, base, ollama string) {
	key, base, ollama = s.Get(varKey), s.URL(varBase), s.Get(varOllama)
	if ollama != "" {
		s.CheckURL(varOllama, OllamaURL(ollama))
	}
	return key, base, ollama
}

// Ollama returns the provider "ollama" for a host as OLLAMA_HOST has it.
func Ollama(host string) *Provider {
	return New(Options{Name: "ollama", BaseURL: OllamaURL(host)})
}
