package slack

import (
	"encoding/json"
	"errors"
	"net/url"
)

// formFrame is a form as a socket carries it: the payload of interactivity, or
// the fields of a command.
func formFrame(body []byte) (kind string, payload json.RawMessage, err error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", nil, err
	}
	if p := form.Get("payload"); p != "" {
		return "interactive", json.RawMessage(p), nil
	}
	if form.Get("command") == "" {
		return "", nil, errors.New("the form is neither interactivity nor a command")
	}
	fields := map[string]string{}
	for k := range form {
		fields[k] = form.Get(k)
	}
	return "slash_commands", mustJSON(fields), nil
}
