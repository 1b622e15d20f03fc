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
// been in it before. From is the model it is for, "provider/model"; one that is
// blind cannot look at images.
//
//   - Reasoning is kept only if it is this model's own and can go back, and only
//     beside something said or called.
//   - Right after the calls of an answer come their results, one each and in
//     their order: the first that follows. A call without one gets a failed
//     result that says so; a result without a call, or a second one, is left out.
//   - What else lies with results becomes a message of the user after them.
//   - Blank texts and empty messages are left out; an image that cannot be sent
//     is replaced by a text.
//
// A longer conversation gives the same messages and more, once its calls have
// been answered.
func Talk(in []model.Message, from string, blind bool) []model.Message {
	out := make([]model.Message, 0, len(in))
	t := teller{in: in, from: from, blind: blind}
	for i := range in {
		out = t.tell(out, i)
	}
	return out
}

// A teller makes the messages of a talk.
type teller struct {
	in    []model.Message
	from  string
	blind bool
	image func(ref string) ([]byte, error) // may be nil
	err   error                            // of reading an image
}

// tell appends what becomes of message i.
func (t *teller) tell(out []model.Message, i int) []model.Message {
	in := t.in
	add := func(role model.Role, parts []model.Part) {
		if len(parts) > 0 {
			out = append(out, model.Message{Role: role, Parts: parts})
		}
	}
	if in[i].Role != model.Assistant {
		add(model.User, t.shown(in[i].Parts))
		return out
	}
	said := answered(in[i].Parts, t.from)
	add(model.Assistant, said)
	var closing []model.Part
	for k := range said {
		if said[k].Kind != model.Call {
			continue
		}
		p := model.Part{Kind: model.Result, CallID: said[k].CallID, Text: noResult, Failed: true}
		if _, r := result(in, i+1, p.CallID); r != nil {
			p = *r
		}
		p.Name = said[k].Name
		closing = append(closing, p)
	}
	add(model.Results, closing)
	return out
}

// result finds the first result of a call from message i on, and its message.
func result(in []model.Message, i int, call string) (int, *model.Part) {
	for ; i < len(in); i++ {
		for k := range in[i].Parts {
			if p := &in[i].Parts[k]; p.Kind == model.Result && p.CallID == call {
				return i, p
			}
		}
	}
	return i, nil
}

// settled is how many messages, at least from, a longer conversation does not
// change: the calls of those before it are answered among them.
func settled(in []model.Message, from int) int {
	need := from
	for i := from; i < len(in); i++ {
		if in[i].Role == model.Assistant {
			for k := range in[i].Parts {
				if in[i].Parts[k].Kind != model.Call {
					continue
				}
				at, r := result(in, i+1, in[i].Parts[k].CallID)
				if r == nil {
					return from
				}
				need = max(need, at+1)
			}
		}
		if need <= i+1 {
			from = i + 1
		}
	}
	return from
}

// shown are the texts and images of a message.
func (t *teller) shown(parts []model.Part) []model.Part {
	if len(parts) == 1 && parts[0].Kind == model.Text && !blank(parts[0].Text) {
		return parts
	}
	var out []model.Part
	for i := range parts {
		switch p := &parts[i]; {
		case p.Kind == model.Text && !blank(p.Text):
			out = append(out, *p)
		case p.Kind == model.Image:
			out = append(out, t.look(*p))
		}
	}
	return out
}

// look is an image with its bytes, or what is told in its place.
func (t *teller) look(p model.Part) model.Part {
	if t.blind {
		return model.Part{Kind: model.Text, Text: model.NoImages}
	}
	known := strings.Contains(media, " "+p.Media+" ")
	if known && len(p.Data) == 0 && p.Ref != "" && t.image != nil && t.err == nil {
		p.Data, t.err = t.image(p.Ref)
	}
	if !known || len(p.Data) == 0 {
		return model.Part{Kind: model.Text, Text: noImage}
	}
	return p
}

// answered are the parts of an answer that may go to the model from.
func answered(parts []model.Part, from string) []model.Part {
	var out []model.Part
	said := false
	for i := range parts {
		switch p := &parts[i]; {
		case p.Kind == model.Text && !blank(p.Text), p.Kind == model.Call:
			said = true
		case p.Kind == model.Reasoning && p.From == from && len(p.Opaque) > 0:
		default:
			continue
		}
		out = append(out, parts[i])
	}
	if !said {
		return nil
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

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
