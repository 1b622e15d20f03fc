// Package model is the port of the model family: one neutral conversation, one
// streamed call, one typed error. The log stores these types, so they are ours
// and change only with a decoder for the old form.
package model

import (
	"context"
	"encoding/json"
)

// A Provider speaks one wire format to one endpoint. It may be used by many at once.
type Provider interface {
	Name() string // "openai"; the part of a model name before the first slash
	// Stream makes one call. It hands every Delta to on as it arrives (on may
	// be nil) and returns the whole answer. A stream that ends without its
	// terminator is an error, never an answer. Every failure is an *Error. It
	// makes one attempt: retrying is the caller's.
	Stream(ctx context.Context, r Request, on func(Delta)) (Response, error)
}

// A Request is all that a call depends on. Equal requests give equal bytes on the wire.
type Request struct {
	Model     string // the provider's id of the model
	System    string
	Tools     []Tool // in the order given: order is part of the provider's prompt cache
	Messages  []Message
	MaxTokens int // most tokens to answer, 0 for the provider's default
	// Thinking is how much the model is to think. A codec sends it as it is:
	// Spec.Fit makes it one that the model takes.
	Thinking Thinking
	// CacheKey names the conversation to providers that route requests of one
	// key to one cache, "" for none; its first 64 bytes count. It is no secret.
	CacheKey string
	// Blind says that the model cannot look at images: NoImages is told instead.
	Blind bool
	// Image reads the bytes of an image by its Ref, the same ones whenever it is
	// asked; none if they are gone. A codec asks for the images that it writes.
	// It may be nil.
	Image func(ref string) ([]byte, error)
	// Written is what was written of the conversation before, nil if nothing is
	// kept. One request at a time may have it.
	Written *Written
}

// Written is what a codec keeps of a conversation from one request to the next,
// so that a long one is not written anew each time. Messages are known by where
// their parts are: parts may be appended and replaced, but never changed. The
// zero value is ready.
type Written struct {
	Kept  any // the codec's own
	Bytes int // that it takes, about
}

// Thinking is how much a model thinks before it answers.
type Thinking string

// The levels. The zero value leaves it to the provider.
const (
	ThinkOff    Thinking = "off"
	ThinkLow    Thinking = "low"
	ThinkMedium Thinking = "medium"
	ThinkHigh   Thinking = "high"
)

// A Tool is a definition the model may call.
type Tool struct {
	Name   string          `json:"name"` // [a-zA-Z0-9_-]{1,64}
	Doc    string          `json:"doc"`
	Schema json.RawMessage `json:"schema"` // JSON schema of the arguments, an object
}

// A Role says whose a message is.
type Role string

// The roles. Results of tools go in messages of their own; codecs merge
// neighbours where a wire format wants it.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Results   Role = "results"
)

// A Message is one entry of the conversation as a model sees it.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// A PartKind says which fields of a Part count.
type PartKind string

// The kinds of part.
const (
	Text      PartKind = "text"      // Text
	Reasoning PartKind = "reasoning" // Text (may be empty), Opaque, From
	Call      PartKind = "call"      // CallID, Name, Args
	Result    PartKind = "result"    // CallID, Name, Text, Failed
	Image     PartKind = "image"     // Media, and Data or Ref; from people and tools, in User and Results
)

// A Part is a piece of a message.
type Part struct {
	Kind PartKind `json:"kind"`
	Text string   `json:"text,omitempty"`
	// Opaque is a reasoning block as its provider sent it, byte for byte, to be
	// sent back to the same provider and model (From) and to no other.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	From   string          `json:"from,omitempty"` // "anthropic/claude-opus-4-6"
	CallID string          `json:"call_id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"` // of a call; see BadArgs
	// BadArgs holds the arguments of a call that are no JSON object; Args is
	// then {}. The harness answers such a call with an error and runs nothing.
	BadArgs string `json:"bad_args,omitempty"`
	// Repeated says of a call that the provider gave it the id of an earlier call
	// of the same answer. It has an id of its own now; whether it was meant to be
	// made twice, nobody knows, so the harness does not run it.
	Repeated bool `json:"repeated,omitempty"`
	Failed   bool `json:"failed,omitempty"` // of a result
	// Of an image: its media type, and its bytes, at most 3 MiB, or where they
	// are kept. An image without them, or of a type a provider does not take, is
	// told as missing.
	Media string `json:"media,omitempty"` // "image/png"
	Data  []byte `json:"data,omitempty"`
	Ref   string `json:"ref,omitempty"`
	// Of names what a text or an image is taken from, for who made the part; no
	// provider is sent it.
	Of string `json:"of,omitempty"`
}

// A Delta is a piece of an answer as it arrives.
type Delta struct {
	Text      string
	Reasoning string
	Tool      string // name of a call that begins
}

// Stop says why an answer ended.
type Stop string

// The reasons.
const (
	StopEnd     Stop = "end"     // said all
	StopTools   Stop = "tools"   // wants its calls answered
	StopLength  Stop = "length"  // hit MaxTokens: the last part may be cut, calls are dropped
	StopRefused Stop = "refused" // the provider's filter or the model declined: calls are dropped
)

// A Response is a whole answer. Calls have non-empty ids that no other call of
// the answer or of its request has.
type Response struct {
	Parts []Part
	Stop  Stop
	Usage Usage
	Model string // the model that answered, as the provider names it
	ID    string // the provider's id of the answer
	// Raw is the provider's answer put together into the shape its
	// non-streaming form has.
	Raw json.RawMessage
}

// Usage counts tokens. In includes Cached and CacheWrite; Out includes Reasoning.
type Usage struct {
	In         int `json:"in"`
	Out        int `json:"out"`
	Cached     int `json:"cached,omitempty"`      // read from the provider's cache
	CacheWrite int `json:"cache_write,omitempty"` // written to it
	Reasoning  int `json:"reasoning,omitempty"`
}

// Plus adds up the tokens of two calls.
func (u Usage) Plus(o Usage) Usage {
	return Usage{
		In: u.In + o.In, Out: u.Out + o.Out, Cached: u.Cached + o.Cached,
		CacheWrite: u.CacheWrite + o.CacheWrite, Reasoning: u.Reasoning + o.Reasoning,
	}
}
