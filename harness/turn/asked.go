package turn

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/heddlehq/heddle/model"
)

// A summer knows what digests the messages of a conversation have, so that a
// long one is not read again at every step. The zero summer is ready.
type summer struct{ known []summed }

// A summed message is known by where its parts are: parts are appended, never changed.
type summed struct {
	first *model.Part
	parts int
	sum   [8]byte
}

// asked is the digest of what a request asks: of its system text, its tools and
// its messages, 16 hexadecimal digits each, joined by dashes. The model is
// recorded beside it. Bytes of an image that are kept elsewhere do not count,
// their name does.
func (s *summer) asked(q model.Request) string {
	parts := [][8]byte{
		hashed(func(put func(...string)) { put(q.System, string(q.Thinking)) }),
		hashed(func(put func(...string)) {
			for _, t := range q.Tools {
				put(t.Name, t.Doc, string(t.Schema))
			}
		}),
		hashed(func(put func(...string)) {
			for i, m := range q.Messages {
				sum := s.message(i, m)
				put(string(sum[:]))
			}
		}),
	}
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteByte('-')
		}
		b.WriteString(hex.EncodeToString(p[:]))
	}
	return b.String()
}

func (s *summer) message(i int, m model.Message) [8]byte {
	var first *model.Part
	if len(m.Parts) > 0 {
		first = &m.Parts[0]
	}
	if i < len(s.known) && first != nil && s.known[i].first == first && s.known[i].parts == len(m.Parts) {
		return s.known[i].sum
	}
	sum := hashed(func(put func(...string)) {
		put(string(m.Role))
		for _, p := range m.Parts {
			put(string(p.Kind), p.Text, string(p.Opaque), p.From, p.CallID, p.Name, string(p.Args), p.BadArgs, p.Media, p.Ref)
			if p.Ref == "" {
				put(string(p.Data))
			}
			if p.Failed {
				put("failed")
			}
		}
	})
	s.known = append(s.known[:min(i, len(s.known))], summed{first: first, parts: len(m.Parts), sum: sum})
	return sum
}

// hashed is a digest over texts, each with its length before it.
func hashed(write func(put func(...string))) (sum [8]byte) {
	h := sha256.New()
	w := bufio.NewWriterSize(h, 512)
	write(func(texts ...string) {
		var n [8]byte
		for _, s := range texts {
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			_, _ = w.Write(n[:]) // a hash takes everything
			_, _ = w.WriteString(s)
		}
	})
	_ = w.Flush()
	return [8]byte(h.Sum(nil)[:8])
}
