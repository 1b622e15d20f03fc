package record

// Probed is a look at a call of whose outcome nothing is known.
type Probed struct {
	Turn  string `json:"turn"`
	Step  int    `json:"step"`
	Call  string `json:"call"`
	Tool  string `json:"tool"`
	Try   int    `json:"try"`   // from 1
	Found string `json:"found"` // a harness.Found, or "failed"
}

func (Probed) kind() string { return "probed" }

// probed counts the looks at an open call.
func (f *Fold) probed(b Probed) {
	if f.Turn != nil {
		f.Turn.Probes = put(f.Turn.Probes, b.Call, b.Try, true)
	}
}
