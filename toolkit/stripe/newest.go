package stripe

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/heddlehq/heddle/harness"
)

// late is how old an event may be before the model is told its age.
const late = 10 * time.Minute

// newestTime bounds the look at the newest state.
const newestTime = 15 * time.Second

// useNewest reads what an event of Stripe is about before the model answers:
// events come in any order, and say how things were. Where that cannot be done
// the model is told so.
func useNewest(c *harness.Context, api API) {
	harness.UseTurnStart(c, "stripe: newest state", func(ctx context.Context, call *harness.Call) error {
		e := call.Event()
		path := e.Facts["path"]
		if path == "" {
			path = pathOf(e.Facts["object"])
		}
		if e.Thread.Channel != channel || path == "" {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, newestTime)
		defer cancel()
		source := fmt.Sprintf("Stripe: %s %s as it is now", e.Facts["kind"], e.Facts["object"])
		answer, err := api.Call(ctx, e.Thread.Account, http.MethodGet, path, nil, "")
		if err != nil {
			call.Cite(source, "It could not be read, so the event may be out of date: "+told(err).Error())
			return nil
		}
		text, err := show(answer)
		if err != nil {
			call.Cite(source, "It could not be read, so the event may be out of date.")
			return nil
		}
		call.Cite(source, stale(e.Facts["status"], answer, call.Now().Sub(e.At), !e.At.IsZero())+text)
		return nil
	})
}

// stale says in what way an event is out of date, "" if in none.
func stale(was string, answer []byte, age time.Duration, dated bool) (text string) {
	v, _ := decode(answer) // it could be shown
	m, _ := v.(map[string]any)
	is, _ := m["status"].(string)
	switch {
	case m["deleted"] == true:
		text = "The event is out of date: this was deleted since.\n"
	case was != "" && is != was:
		text = fmt.Sprintf("The event is out of date: it says %q, and the status is %q now.\n", was, is)
	}
	if dated && age > late {
		text += fmt.Sprintf("The event is %v old.\n", age.Round(time.Minute))
	}
	return text
}
