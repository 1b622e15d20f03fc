package llm

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// embedDimension is how long vectors of the stand-in are.
const embedDimension = 16

// embed answers a request in OpenAI's format for embeddings: a vector counts
// the letters of its text. It stands in no ledger.
func (s *Server) embed(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, kind, code, text string) { reply(w, status, openAI{}.refuse(status, kind, code, text)) }
	var in struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}
	d := json.NewDecoder(io.LimitReader(r.Body, 32<<20))
	d.DisallowUnknownFields()
	switch {
	case r.Method != http.MethodPost:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	case s.opt.Key != "" && (openAI{}).key(r) != s.opt.Key:
		refuse(http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Incorrect API key provided")
		return
	case d.Decode(&in) != nil || in.Model == "" || len(in.Input) == 0 || len(in.Input) > 2048 || in.Format != "float":
		refuse(http.StatusBadRequest, "invalid_request_error", "", "want model, input and encoding_format")
		return
	}
	type vector struct {
		Object    string    `json:"object"`
		Index     int       `json:"index"`
		Embedding []float64 `json:"embedding"`
	}
	var data []vector
	for i, text := range in.Input {
		if text == "" {
			refuse(http.StatusBadRequest, "invalid_request_error", "", "input cannot be an empty string")
			return
		}
		v := make([]float64, embedDimension)
		for _, c := range strings.ToLower(text) {
			v[int(c)%embedDimension]++
		}
		data = append(data, vector{"embedding", i, v})
	}
	reply(w, http.StatusOK, map[string]any{"object": "list", "model": in.Model, "data": data})
}
