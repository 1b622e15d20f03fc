package turn

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/heddlehq/heddle/model"
)

// A summer knows what digests the messages of a conversation have, so that a
// long one is not read again at every step. The zero summer is ready.
type summer struct {
	known []summed
	all   hash.Cloner // over the sums of the known, nil for none
}

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
		s.messages(q.Messages),
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

// messages is the digest over those of the messages.
func (s *summer) messages(ms []model.Message) [8]byte {
	n := 0
	for n < min(len(s.known), len(ms)) && s.known[n].is(ms[n]) {
		n++
	}
	h := s.upTo(n)
	for _, m := range ms[n:] {
		k := summed{parts: len(m.Parts), sum: sumOf(m)}
		if len(m.Parts) > 0 {
			k.first = &m.Parts[0]
		}
		s.known = append(s.known, k)
		writeSum(h, k.sum)
	}
	s.all, _ = h.(hash.Cloner)
	return [8]byte(h.Sum(nil)[:8])
}

// upTo forgets all but the first n known messages and returns the hash over their
// digests, to be written on.
func (s *summer) upTo(n int) hash.Hash {
	if n == len(s.known) && s.all != nil {
		if h, err := s.all.Clone(); err == nil {
			return h
		}
	}
	h := sha256.New()
	s.known = s.known[:n]
	for _, k := range s.known {
		writeSum(h, k.sum)
	}
	return h
}

func (k *summed) is(m model.Message) bool {
	return k.parts == len(m.Parts) && k.parts > 0 && k.first == &m.Parts[0]
}

// writeSum adds the digest of a message, with its length before it.
func writeSum(h hash.Hash, sum [8]byte) {
	b := [16]byte{7: byte(len(sum))}
	copy(b[8:], sum[:])
	_, _ = h.Write(b[:]) // a hash takes everything
}

func sumOf(m model.Message) [8]byte {
	return hashed(func(put func(...string)) {
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
