package harness

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// ErrUnknown is wrapped by what a tool fails with when nobody knows whether it
// has done its work, because the reply was lost. Running out of time is one such
// failure. The call is then probed; see [Tool.Probe].
var ErrUnknown = errors.New("its outcome is unknown")

// Found says what a probe has found out about a call.
type Found string

// What there is to find.
const (
	FoundNothing Found = "not done" // and it will not happen any more: the call is run again
	FoundRunning Found = "running"  // the probe is asked again later
	FoundDone    Found = "done"     // Result is the result
	FoundUnclear Found = "unclear"  // a person has to look
)

// Probed is what a probe has found.
type Probed struct {
	Found  Found  `json:"found"`
	Result string `json:"result,omitempty"` // of FoundDone: what the model is told
}

// A Probe says what became of a call of whose outcome nothing is known, mostly
// by asking a service for what it did under [Call.Key]. It changes nothing.
type Probe func(ctx context.Context, call *Call, args json.RawMessage) (Probed, error)

// Probe makes f look before a call of unknown outcome is repeated or given up:
// one that a crash left open, unless the tool is durable, or one that failed
// with [ErrUnknown]. A probe that fails is asked again later. When it stays
// unclear, or for too long, the turn ends and people are asked to look.
func (t Tool) Probe(f Probe) Tool { t.probe = f; return t }

// HasProbe says whether the tool's calls can be probed.
func (t Tool) HasProbe() bool { return t.probe != nil }

// probeTime bounds one look.
const probeTime = time.Minute

// Look asks the probe, which is bounded as a tool is by Run.
func (t Tool) Look(ctx context.Context, call *Call, args json.RawMessage) (Probed, error) {
	call.again()
	look := Tool{Name: t.Name + " (probe)", timeout: probeTime}
	look.run = func(ctx context.Context, call *Call, args json.RawMessage) (string, error) {
		p, err := t.probe(ctx, call, args)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(p)
		return string(text), err
	}
	var p Probed
	text, err := look.Run(ctx, call, args)
	call.again()
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal([]byte(text), &p)
}
