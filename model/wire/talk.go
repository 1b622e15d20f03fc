package wire

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/heddlehq/heddle/model"
)

// What stands for that which is missing.
const (
	noResult = "no result: the call was cut off; whether it did anything is unknown"
	noImage  = "[an image was here; it is not available]"
)

// media are the types of image that every provider takes.
const media = " image/png image/jpeg image/webp "

// Talk is a conversation as any model may be sent it, whichever models have
// been in it before. From is the model it is for, "provider/model".
//
//   - Reasoning is kept only if it is this model's own and can go back, and only
//     beside something said or called.
//   - Right after the calls of an answer come their results, one each and in
//     their order. A call without one gets a failed result that says so; a
//     result without a call, or a second one, is left out.
//   - What else lies with results becomes a message of the user after them.
//   - Blank texts and empty messages are left out; an image that cannot be sent
//     is replaced by a text.
//
// A longer conversation gives the same messages and more, once its calls have
// been answered.
func Talk(in []model.Message, from string) []model.Message {
	results := map[string]model.Part{}
	for _, m := range in {
		for _, p := range m.Parts {
			if _, again := results[p.CallID]; p.Kind == model.Result && !again {
				results[p.CallID] = p
			}
		}
	}
	out := make([]model.Message, 0, len(in))
	add := func(role model.Role, parts []model.Part) {
		if len(parts) > 0 {
			out = append(out, model.Message{Role: role, Parts: parts})
		}
	}
	for _, m := range in {
		if m.Role != model.Assistant {
			add(model.User, shown(m.Parts))
			continue
		}
		said := answered(m.Parts, from)
		add(model.Assistant, said)
		var closing []model.Part
		for _, p := range said {
			if p.Kind != model.Call {
				continue
			}
			r, ok := results[p.CallID]
			if !ok {
				r = model.Part{Kind: model.Result, CallID: p.CallID, Text: noResult, Failed: true}
			}
			r.Name = p.Name
			closing = append(closing, r)
		}
		add(model.Results, closing)
	}
	return out
}

// shown are the texts and images of a message.
func shown(parts []model.Part) []model.Part {
	var out []model.Part
	for _, p := range parts {
		switch {
		case p.Kind == model.Text && strings.TrimSpace(p.Text) != "":
			out = append(out, p)
		case p.Kind == model.Image && len(p.Data) > 0 && strings.Contains(media, " "+p.Media+" "):
			out = append(out, p)
		case p.Kind == model.Image:
			out = append(out, model.Part{Kind: model.Text, Text: noImage})
		}
	}
	return out
}

// answered are the parts of an answer that may go to the model from.
func answered(parts []model.Part, from string) []model.Part {
	var out []model.Part
	said := false
	for _, p := range parts {
		switch {
		case p.Kind == model.Text && strings.TrimSpace(p.Text) != "", p.Kind == model.Call:
			said = true
		case p.Kind == model.Reasoning && p.From == from && len(p.Opaque) > 0:
		default:
			continue
		}
		out = append(out, p)
	}
	if !said {
		return nil
	}
	return out
}

// Led returns the parts of a message without reasoning that leads to nothing,
// as of an answer whose calls were dropped. Wires that want something after
// reasoning use it.
func Led(parts []model.Part) []model.Part {
	n := len(parts)
	for n > 0 && parts[n-1].Kind == model.Reasoning {
		n--
	}
	return parts[:n]
}

// HasImage says whether one of the parts is an image.
func HasImage(parts []model.Part) bool {
	return slices.ContainsFunc(parts, func(p model.Part) bool { return p.Kind == model.Image })
}

// DataURL is an image as a URL that holds it.
func DataURL(p model.Part) string {
	return "data:" + p.Media + ";base64," + base64.StdEncoding.EncodeToString(p.Data)
}

// CacheKey is the key of a request as providers take it.
func CacheKey(r model.Request) string { return r.CacheKey[:min(len(r.CacheKey), 64)] }
