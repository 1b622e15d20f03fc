package record

import "github.com/heddlehq/heddle/model"

// Chunk is a part of the text of an answer that is still being streamed.
type Chunk struct {
	Turn string `json:"turn"`
	Step int    `json:"step"`
	Text string `json:"text"`
}

// Torn closes an answer that broke off: the text that there is of it. The model
// goes on from there, and people see the whole.
type Torn struct {
	Turn string `json:"turn"`
	Step int    `json:"step"`
	Text string `json:"text"`
}

func (Chunk) kind() string { return "chunk" }
func (Torn) kind() string  { return "torn" }

// cutOff is what the model is told behind its own text.
const cutOff = "Your answer was cut off here by a failure; whatever you called in it was not run. Go on exactly where the text stops, " +
	"in the middle of a word if need be. Do not repeat any of it and do not mention this: people see both parts as one."

// Partial is what there is of the answer of a step before it is whole.
type Partial struct {
	Step int    `json:"step"`
	Text string `json:"text,omitempty"` // of the answer under way
	Torn string `json:"torn,omitempty"` // of those that broke off
}

// partial is that of a step.
func (t *Turn) partial(step int) *Partial {
	if t.Partial.Step != step {
		t.Partial = Partial{Step: step}
	}
	return &t.Partial
}

func (f *Fold) chunk(b Chunk) {
	if f.Turn != nil {
		p := f.Turn.partial(b.Step)
		p.Text += b.Text
		f.Work.Text = p.Torn + p.Text
	}
}

func (f *Fold) torn(b Torn) {
	if f.Turn != nil {
		p := f.Turn.partial(b.Step)
		p.Torn, p.Text = p.Torn+b.Text, ""
	}
	f.say(model.Assistant, model.Part{Kind: model.Text, Text: b.Text})
	f.say(model.User, model.Part{Kind: model.Text, Text: Notice(cutOff)})
}

// unsaid keeps what there is of an answer when the turn ends in the middle of it.
func (f *Fold) unsaid() {
	if f.Turn != nil && f.Turn.Partial.Text != "" {
		f.say(model.Assistant, model.Part{Kind: model.Text, Text: f.Turn.Partial.Text})
	}
}
