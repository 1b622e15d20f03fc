package memory

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/heddlehq/heddle/chat"
)

// MaxText bounds the text of an item, in bytes. More is cut off.
const MaxText = 4 << 10

// A Kind says what an item is.
type Kind string

// The kinds of item.
const (
	Note Kind = "note" // saved by a tool
	Turn Kind = "turn" // a question and its answer
)

// An Item is one thing remembered, with all that decides who may find it.
type Item struct {
	ID     string      `json:"id"` // what it is known by: remembered again, it changes nothing
	Kind   Kind        `json:"kind"`
	Thread chat.Thread `json:"thread"`         // where it was said; its account is whose memory it is
	Turn   string      `json:"turn,omitempty"` // id of the turn in which that was
	Text   string      `json:"text"`
	Author chat.Author `json:"author"`         // who was answered
	Role   chat.Role   `json:"role"`           // of the weakest voice that had a part in it
	Open   bool        `json:"open,omitempty"` // everybody in the account could read the room; set by Remember
	At     time.Time   `json:"at"`
}

func (it *Item) check() error {
	switch {
	case it.ID == "":
		return errors.New("remember: the item has no id")
	case strings.TrimSpace(it.Text) == "":
		return errors.New("remember: the item has no text")
	case it.Kind != Note && it.Kind != Turn:
		return fmt.Errorf("remember: no such kind of item: %q", it.Kind)
	}
	if err := it.Thread.Validate(); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	it.Text = cut(strings.ToValidUTF8(it.Text, "\uFFFD"), MaxText)
	return nil
}

// cut shortens a text at the end of a character and says so.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = " …"
	return strings.ToValidUTF8(s[:most-len(mark)], "") + mark
}

// name is the item's id in a form of fixed length.
func name(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12])
}

// encode writes an item and its vector, which may be nil: the length of the
// head, the head as JSON, the vector as little-endian float32. As JSON a vector
// would be three times as long and be read twenty times as slowly.
func encode(it Item, vec []float32) ([]byte, error) {
	head, err := json.Marshal(it)
	if err != nil {
		return nil, fmt.Errorf("encode item: %w", err)
	}
	b := binary.AppendUvarint(make([]byte, 0, len(head)+4*len(vec)+4), uint64(len(head)))
	b = append(b, head...)
	for _, f := range vec {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b, nil
}

var errItem = errors.New("stored item is damaged")

func decode(b []byte) (it Item, vec []float32, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) || (uint64(len(b)-w)-n)%4 != 0 {
		return it, nil, errItem
	}
	if json.Unmarshal(b[w:w+int(n)], &it) != nil {
		return it, nil, errItem
	}
	if b = b[w+int(n):]; len(b) > 0 {
		vec = make([]float32, len(b)/4)
		for i := range vec {
			vec[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	return it, vec, nil
}
