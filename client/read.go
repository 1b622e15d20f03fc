package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// A Conversation is how one stands. In lists and of a fork, the fields from
// Status on are empty.
type Conversation struct {
	ID        string    `json:"id"`
	Agent     string    `json:"agent"`
	Thread    Thread    `json:"thread"`
	Seq       int64     `json:"seq"`   // of the newest record
	Inbox     int       `json:"inbox"` // events that wait
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	Status    string          `json:"status"`    // "idle", "waiting", "running" or "paused"
	Turn      *Turn           `json:"turn"`      // the open one, nil if there is none
	Questions []Question      `json:"questions"` // that calls wait with; the next message answers
	Turns     int             `json:"turns"`     // settled ones
	Cost      float64         `json:"cost"`      // US dollars
	Usage     json.RawMessage `json:"usage"`
	Parent    *Parent         `json:"parent"` // nil unless it is a fork
}

// A Question is one that a call has asked people.
type Question struct {
	Turn     string    `json:"turn"`
	Step     int       `json:"step"`
	Call     string    `json:"call"`
	Question string    `json:"question"`
	Who      string    `json:"who"`     // the least role that may answer
	Until    time.Time `json:"until"`   // zero for as long as it takes
	Default  string    `json:"default"` // the answer at that time
}

// A Thread is where a conversation happens.
type Thread struct {
	Channel string `json:"channel"`
	Account string `json:"account"`
	Room    string `json:"room"`
	Root    string `json:"root"`
}

// A Turn is one that is open.
type Turn struct {
	ID   string `json:"id"`
	Step int    `json:"step"` // the last one recorded
}

// A Parent is where a fork comes from.
type Parent struct {
	From string `json:"from"`
	Seq  int64  `json:"seq"` // of the last record that both have
	// NewerFiles says that the files may be of a later time than that record.
	NewerFiles bool `json:"newer_files"`
}

// Conversation tells how a conversation stands.
func (c *Client) Conversation(ctx context.Context, r Ref) (v Conversation, err error) {
	return v, c.do(ctx, "GET", r.path(), nil, nil, &v)
}

// Conversations lists all conversations, the newest first, page by page. It
// ends after the first error.
func (c *Client) Conversations(ctx context.Context) iter.Seq2[Conversation, error] {
	return pages(func(before string) (list []Conversation, next string, err error) {
		var page struct {
			Conversations []Conversation `json:"conversations"`
			Before        string         `json:"before"`
		}
		err = c.do(ctx, "GET", "/conversations", paged(nil, before), nil, &page)
		return page.Conversations, page.Before, err
	})
}

// A Record is one entry of a conversation's log.
type Record struct {
	Seq      int64           `json:"seq"`
	Parent   int64           `json:"parent"` // the record before it
	At       time.Time       `json:"at"`
	Kind     string          `json:"kind"`
	Internal bool            `json:"internal"` // not for the people of the conversation
	Data     json.RawMessage `json:"data"`
}

// A Filter chooses records. The zero Filter takes those that people may see.
type Filter struct {
	Kinds []string // "all" for all
	Turn  string   // of one turn
}

func (f Filter) query() url.Values {
	q := url.Values{}
	if len(f.Kinds) > 0 {
		q.Set("kind", strings.Join(f.Kinds, ","))
	}
	if f.Turn != "" {
		q.Set("turn", f.Turn)
	}
	return q
}

// Records reads the records of a conversation, the newest first, page by page.
// It ends after the first error.
func (c *Client) Records(ctx context.Context, r Ref, f Filter) iter.Seq2[Record, error] {
	return pages(func(before string) (list []Record, next string, err error) {
		var page struct {
			Records []Record `json:"records"`
			Before  int64    `json:"before"`
		}
		err = c.do(ctx, "GET", r.path()+"/records", paged(f.query(), before), nil, &page)
		if page.Before > 0 {
			next = strconv.FormatInt(page.Before, 10)
		}
		return page.Records, next, err
	})
}

func paged(q url.Values, before string) url.Values {
	if q == nil {
		q = url.Values{}
	}
	if before != "" {
		q.Set("before", before)
	}
	return q
}

// pages goes through pages until there is none before.
func pages[T any](read func(before string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		before := ""
		for {
			list, next, err := read(before)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range list {
				if !yield(v, nil) {
					return
				}
			}
			if before = next; next == "" {
				return
			}
		}
	}
}

// A Part is the newest value of what an agent writes for programs under a name.
type Part struct {
	Seq   int64           `json:"seq"` // of the record
	At    time.Time       `json:"at"`
	Value json.RawMessage `json:"value"`
}

// Data reads the parts by their names.
func (c *Client) Data(ctx context.Context, r Ref) (map[string]Part, error) {
	var v struct {
		Data map[string]Part `json:"data"`
	}
	err := c.do(ctx, "GET", r.path()+"/data", nil, nil, &v)
	return v.Data, err
}

// A File is one stored file of a conversation's sandboxes.
type File struct {
	Path  string `json:"path"` // "virtual/notes.txt"
	Bytes int64  `json:"bytes"`
}

// Files lists the stored files.
func (c *Client) Files(ctx context.Context, r Ref) ([]File, error) {
	var v struct {
		Files []File `json:"files"`
	}
	err := c.do(ctx, "GET", r.path()+"/files", nil, nil, &v)
	return v.Files, err
}

// File reads one of them by its path.
func (c *Client) File(ctx context.Context, r Ref, path string) (data []byte, err error) {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = segment(p)
	}
	return data, c.do(ctx, "GET", r.path()+"/files/"+strings.Join(parts, "/"), nil, nil, &data)
}
