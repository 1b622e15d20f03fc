package turn

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/heddlehq/heddle/model"
)

// asked is the digest of what a request asks: of its system text, its tools and
// its messages, 16 hexadecimal digits each, joined by dashes. The model is
// recorded beside it. Bytes of an image that are kept elsewhere do not count,
// their name does.
func asked(q model.Request) string {
	return strings.Join([]string{
		hashed(func(put func(...string)) { put(q.System, string(q.Thinking)) }),
		hashed(func(put func(...string)) {
			for _, t := range q.Tools {
				put(t.Name, t.Doc, string(t.Schema))
			}
		}),
		hashed(func(put func(...string)) {
			for _, m := range q.Messages {
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
			}
		}),
	}, "-")
}

// hashed is a digest over texts, each with its length before it.
func hashed(write func(put func(...string))) string {
	h := sha256.New()
	w := bufio.NewWriter(h)
	write(func(texts ...string) {
		var n [8]byte
		for _, s := range texts {
			binary.BigEndian.PutUint64(n[:], uint64(len(s)))
			_, _ = w.Write(n[:]) // a hash takes everything
			_, _ = w.WriteString(s)
		}
	})
	_ = w.Flush()
	return hex.EncodeToString(h.Sum(nil)[:8])
}
