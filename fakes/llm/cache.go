package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// Figures of the providers' prompt caches. A token is four bytes here.
const (
	bytesPerToken = 4
	leastCached   = 1024 * bytesPerToken // of the beginning of a request
	cacheStep     = 128 * bytesPerToken  // OpenAI caches by so much
	lookBack      = 20                   // blocks before a mark where Anthropic looks for an older one
)

// A cache remembers the beginnings of requests, as the providers do: tools
// first, then the system text, then the messages. A beginning counts only if it
// is the same to the byte.
type cache struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]bool
}

// look says how many tokens of a request are read from the cache and how many
// are written to it, and remembers the request.
func (c *cache) look(wire, model string, body []byte) (read, wrote int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[[sha256.Size]byte]bool{}
	}
	at := sha256.Sum256([]byte(wire + "/" + model))
	if wire == "anthropic" {
		return c.marked(at, pieces(body))
	}
	return c.common(at, pieces(body)), 0
}

// A piece is a part of a request behind which a beginning may end.
type piece struct {
	data []byte
	mark bool
}

// pieces are the tools, the system text and the messages of a request.
func pieces(body []byte) []piece {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(body, &in) // the request was read already
	var out []piece
	for _, field := range []string{"tools", "system", "instructions", "messages", "input"} {
		var list []json.RawMessage
		if json.Unmarshal(in[field], &list) != nil {
			list = []json.RawMessage{in[field]}
		}
		for _, item := range list {
			var m struct {
				Role    string
				Content []json.RawMessage
			}
			if field == "messages" && json.Unmarshal(item, &m) == nil && m.Content != nil {
				for _, block := range m.Content {
					out = append(out, pieceOf(m.Role, block))
				}
				continue
			}
			out = append(out, pieceOf(field, item))
		}
	}
	return out
}

// pieceOf takes the mark, which is not cached itself, off a block.
func pieceOf(where string, block json.RawMessage) piece {
	const mark = `"cache_control":{"type":"ephemeral"}`
	data := bytes.Replace(block, []byte(","+mark), nil, 1)
	return piece{append([]byte(where), data...), len(data) < len(block)}
}

// marked is Anthropic's way: what ends at a mark is written, and read if this
// end or one shortly before it was written.
func (c *cache) marked(at [sha256.Size]byte, all []piece) (read, wrote int) {
	ends := make([][sha256.Size]byte, len(all))
	sizes := make([]int, len(all))
	total := 0
	for i, p := range all {
		at = sha256.Sum256(append(at[:], p.data...))
		total += len(p.data)
		ends[i], sizes[i] = at, total
	}
	last := 0
	for i, p := range all {
		if !p.mark || sizes[i] < leastCached {
			continue
		}
		for k := i; k >= max(0, i-lookBack); k-- {
			if c.known[ends[k]] {
				read = max(read, sizes[k])
			}
		}
		last = sizes[i]
	}
	for i, p := range all {
		if p.mark && sizes[i] >= leastCached {
			c.known[ends[i]] = true
		}
	}
	return read / bytesPerToken, max(0, last-read) / bytesPerToken
}

// common is OpenAI's way: the longest beginning that an earlier request had, in
// steps.
func (c *cache) common(at [sha256.Size]byte, all []piece) int {
	var text []byte
	for _, p := range all {
		text = append(text, p.data...)
	}
	read, same := 0, true
	for n := cacheStep; n <= len(text); n += cacheStep {
		at = sha256.Sum256(append(at[:], text[n-cacheStep:n]...))
		if same = same && c.known[at]; same && n >= leastCached {
			read = n
		}
		c.known[at] = true
	}
	return read / bytesPerToken
}
