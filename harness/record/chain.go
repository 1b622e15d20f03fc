package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/heddlehq/heddle/state"
)

// Link is the chain of a log after its next record: a digest over the kind and
// data of that record and of all before it, 64 hexadecimal digits. The chain of
// the empty log is "". Where and when a record was stored is not in it, so a
// log that is copied keeps its chain.
func Link(chain string, r state.Record) string {
	h := sha256.New()
	h.Write([]byte(chain))
	h.Write([]byte{0})
	h.Write([]byte(r.Kind))
	h.Write([]byte{0})
	h.Write(r.Data)
	return hex.EncodeToString(h.Sum(nil))
}

// An Audit is what Verify found.
type Audit struct {
	Records int      `json:"records"`
	Checked int      `json:"checked"`  // ends of turns whose chain was compared
	NotSure int      `json:"not_sure"` // records behind the last of them: nothing in the log vouches for these
	Links   []string `json:"-"`        // the chain after each record
}

// Last is the chain of the whole log.
func (a Audit) Last() string {
	if len(a.Links) == 0 {
		return ""
	}
	return a.Links[len(a.Links)-1]
}

// Verify computes the chain of a log anew and compares it with what the end of
// every turn says. A record that was changed, left out, added or moved fails
// with the numbers between which it stands. It does not find who rewrote
// everything up to the last record: for that one value of the chain must be
// kept elsewhere.
func Verify(records []state.Record) (Audit, error) {
	var a Audit
	chain, sure := "", 0
	for i, r := range records {
		if r.Seq != int64(i+1) {
			return a, fmt.Errorf("record %d follows record %d: the log has a gap", r.Seq, i)
		}
		b, err := Decode(r)
		if err != nil {
			return a, err
		}
		if s, ok := b.(Settled); ok && s.Chain != "" {
			if s.Chain != chain {
				return a, fmt.Errorf("one of the records %d to %d is not what was written: the turn that ends with record %d says so", sure+1, r.Seq, r.Seq)
			}
			a.Checked++
			sure = i
		}
		chain = Link(chain, r)
		a.Links = append(a.Links, chain)
		a.Records++
	}
	a.NotSure = a.Records - sure
	return a, nil
}
