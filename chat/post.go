package chat

// A Post is one message to send. Its Key is the same on every attempt, so a
// channel can find out whether it was made already.
type Post struct {
	Key    string `json:"key"`    // "<turn>/<step>/<n>", see state.PostKey
	Thread Thread `json:"thread"` // where
	Text   string `json:"text"`   // in the channel's dialect and within its limits: one part made by Sender.Compose
}
