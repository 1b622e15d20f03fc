package openai_test

import (
	"testing"

	"github.com/heddlehq/heddle/model/openai"
)

func TestOllamaURL(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"":                        "http://127.0.0.1:11434/v1",
		"gpu":                     "http://gpu:11434/v1",
		"gpu:9000":                "http://gpu:9000/v1",
		"0.0.0.0":                 "http://127.0.0.1:11434/v1",
		"0.0.0.0:9000":            "http://127.0.0.1:9000/v1",
		":9000":                   "http://127.0.0.1:9000/v1",
		"[::1]:9000":              "http://[::1]:9000/v1",
		"::1":                     "http://[::1]:11434/v1",
		"http://gpu":              "http://gpu:80/v1",
		"https://gpu.example.org": "https://gpu.example.org:443/v1",
		"https://gpu:9000/ai/":    "https://gpu:9000/ai/v1",
	} {
		if got := openai.OllamaURL(host); got != want {
			t.Errorf("%q: %s, want %s", host, got, want)
		}
	}
}
