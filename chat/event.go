package chat

import (
	"encoding/json"
	"time"
)

// A Kind says what happened.
type Kind string

// The kinds of event.
const (
	Mention Kind = "mention" // the bot was addressed by name
	Message Kind = "message" // something was said; in a direct message that addresses the bot, too
	Edited  Kind = "edited"  // Ref was changed, Text is the new text
	Deleted Kind = "deleted" // Ref was taken back
	Reacted Kind = "reacted" // a reaction was put on Ref
	Action  Kind = "action"  // a button or form was used
	Command Kind = "command" // a slash command
	Notice  Kind = "notice"  // a machine reports something: an issue was opened, a payment failed
	Control Kind = "control" // an operator steers the conversation; Topic is how, Text its argument. No provider makes one
)

// About is the topic of an event that tells only what the next one of its
// delivery is about, such as the issue that a comment is in. It shares that
// one's fate, is read with it, and starts nothing.
const About = "about"

// An Event is one normalised fact: who said or did what, where. It holds
// nothing that differs between two deliveries of the same fact.
type Event struct {
	ID     string            `json:"id"`              // the provider's id, stable over redeliveries, unique within the channel
	Same   string            `json:"same,omitempty"`  // second identity of the same human act ("T01/C02/1721.0001"), "" if none; deduplicated as well
	Thread Thread            `json:"thread"`          // where
	Kind   Kind              `json:"kind"`            // what
	Topic  string            `json:"topic"`           // what routes match after "channel.": "mention", "dm", "thread", "issues.opened"
	Ref    string            `json:"ref,omitempty"`   // the provider's id of the message that this is or is about
	Author Author            `json:"author"`          // zero for machines without identity
	Text   string            `json:"text,omitempty"`  // Markdown, the bot's own mention removed, valid UTF-8
	Files  []File            `json:"files,omitempty"` // declared; fetched later and only through the channel
	Facts  map[string]string `json:"facts,omitempty"` // verified identifiers a tool may trust: "issue" -> "42"
	At     time.Time         `json:"at,omitzero"`     // provider's time in UTC, zero if unknown
	Data   json.RawMessage   `json:"data,omitempty"`  // what a program passed along, for the agent; nil if nothing
	Want   json.RawMessage   `json:"want,omitempty"`  // JSON Schema that the answer must fit, nil if it is free
	Handle Handle            `json:"-"`               // a short-lived right to answer; kept beside the log, never in records, logs or prompts
}

// Addressed is the fact that tells whom the text of a message addresses first,
// by the provider's id or, where that is not told, as "@name", if it is somebody
// else than the bot.
const Addressed = "addressed"

// A Handle is a right to answer one event that the provider gave with it: an
// interaction's token, a response URL. Whoever has it can post.
type Handle struct {
	Secret string    `json:"secret"` // as the channel wrote it
	Until  time.Time `json:"until"`  // when it ends
}

// An Author is who caused an event. Identity is (channel, account, ID); the
// name is text, good for showing and for nothing else.
type Author struct {
	ID      string `json:"id,omitempty"`      // the provider's stable id
	Account string `json:"account,omitempty"` // the account the author belongs to; differs from the thread's for foreign people
	Name    string `json:"name,omitempty"`    // for showing only
	Bot     bool   `json:"bot,omitempty"`     // a machine
}

// Reserved begins the accounts of authors that Heddle makes itself; no provider
// has such an account. APIAccount is that of whoever holds the API's token, an
// admin everywhere. ConversationAccount is that of conversations that send
// something to others, trusted as the fact "trust" of the event says.
const (
	Reserved            = "heddle."
	APIAccount          = Reserved + "api"
	ConversationAccount = Reserved + "conversation"
)

// Bounds of the files of one event: of more, the rest is not fetched, and neither
// is a larger one.
const (
	MaxFiles     = 10
	MaxFileBytes = 10 << 20
)

// A File is declared by an event and not yet fetched.
type File struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	Bytes     int64  `json:"bytes,omitempty"`
}
