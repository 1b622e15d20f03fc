package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"unsafe"

	"github.com/heddlehq/heddle/model"
)

// A Body is JSON in pieces, whose bytes nobody changes any more.
type Body [][]byte

func (b Body) length() (n int64) {
	for _, p := range b {
		n += int64(len(p))
	}
	return n
}

func (b Body) reader() io.ReadCloser {
	pieces := net.Buffers(slices.Clone(b)) // reading takes them away
	return io.NopCloser(&pieces)
}

// A Form is how a wire format writes the messages of a talk: as items, which
// stand in a list by themselves, or in the list of a message together with those
// of neighbours of one role.
type Form struct {
	From      string                    // the model that is asked, "provider/model"
	Items     func(model.Message) []any // of a message of the talk; a json.RawMessage is not ours
	List      string                    // name of the list in a message, "" if items stand by themselves
	Assistant string                    // what that role is called; every other is the user
	Mark      string                    // written at the end of the last item that is ours
}

// mostWritten is how many bytes are kept of a conversation; a longer one is
// written anew with every request.
const mostWritten = 4 << 20

var errHead = errors.New("the head of a request does not end with a list")

// Write makes the body of a request: the head, which ends with a list, with the
// messages at the end of that. What r.Written holds is not written again; the bytes
// are the same as if it were. It fails if the request holds what is no JSON, or an
// image that cannot be read.
func (f Form) Write(head any, r model.Request) (Body, error) {
	first, err := Encode(head)
	if err != nil {
		return nil, err
	}
	first, ok := bytes.CutSuffix(first, []byte("]}"))
	if !ok {
		return nil, errHead
	}
	w := f.resume(r)
	p := newPrinter(&f, r, w)
	n := settled(r.Messages, len(w.places))
	for i := len(w.places); i < n; i++ {
		if err := p.message(i); err != nil {
			return nil, err
		}
		w.places = append(w.places, placeOf(r.Messages[i], p.at))
	}
	w.data = p.out
	w.keep(r.Written)
	// What may change yet stands apart: a request that is still being sent reads
	// what comes before, and only that.
	p.before, p.out = len(w.data), nil
	for i := n; i < len(r.Messages); i++ {
		if err := p.message(i); err != nil {
			return nil, err
		}
	}
	return p.body(first, w.data), nil
}

// written is what a model.Written keeps: the messages that a longer conversation
// does not change, and what was written for them.
type written struct {
	from   string
	blind  bool
	places []place
	data   []byte
}

// A place is a message and where writing stood after it.
type place struct {
	first *model.Part
	parts int
	at    point
}

// A point is where writing stands.
type point struct {
	end  int // of the bytes so far
	ours int // end of the last item that is ours, 0 if there is none
	open role
}

// A role is whose message is open.
type role byte

const (
	nobody role = iota
	user
	assistant
)

func placeOf(m model.Message, at point) place {
	p := place{parts: len(m.Parts), at: at}
	if len(m.Parts) > 0 {
		p.first = &m.Parts[0]
	}
	return p
}

// resume returns what was written of the messages of this request.
func (f *Form) resume(r model.Request) written {
	var w *written
	if r.Written != nil {
		w, _ = r.Written.Kept.(*written)
	}
	if w == nil || w.from != f.From || w.blind != r.Blind {
		return written{from: f.From, blind: r.Blind}
	}
	n := 0
	for n < min(len(w.places), len(r.Messages)) && w.places[n] == placeOf(r.Messages[n], w.places[n].at) {
		n++
	}
	out := *w
	if n < len(w.places) {
		out.places = w.places[:n]
		end := out.at().end
		out.data = w.data[:end:end] // what follows may still be being sent
	}
	return out
}

func (w *written) at() point {
	if n := len(w.places); n > 0 {
		return w.places[n-1].at
	}
	return point{}
}

func (w written) keep(in *model.Written) {
	if in == nil {
		return
	}
	in.Bytes = cap(w.data) + cap(w.places)*int(unsafe.Sizeof(place{}))
	if in.Kept = &w; in.Bytes > mostWritten {
		*in = model.Written{}
	}
}

// A printer writes messages.
type printer struct {
	*Form
	teller
	at     point
	before int // bytes before out
	out    []byte
	enc    *json.Encoder
}

func newPrinter(f *Form, r model.Request, w written) *printer {
	p := &printer{Form: f, at: w.at(), out: w.data}
	p.teller = teller{in: r.Messages, from: f.From, blind: r.Blind, image: r.Image}
	p.enc = json.NewEncoder(p)
	p.enc.SetEscapeHTML(false)
	return p
}

// Write takes a value from the encoder.
func (p *printer) Write(b []byte) (int, error) {
	p.out = append(p.out, b...)
	return len(b), nil
}

func (p *printer) message(i int) error {
	talk := p.tell(nil, i)
	if p.err != nil {
		return p.err
	}
	for _, m := range talk {
		for _, v := range p.Items(m) {
			p.begin(m.Role)
			if err := p.enc.Encode(v); err != nil {
				return err
			}
			p.out = p.out[:len(p.out)-1] // the encoder ends each value with a line feed
			p.at.end = p.before + len(p.out)
			if _, raw := v.(json.RawMessage); !raw {
				p.at.ours = p.at.end
			}
		}
	}
	return nil
}

// begin writes what stands before an item.
func (p *printer) begin(r model.Role) {
	who, name := user, "user"
	if r == model.Assistant {
		who, name = assistant, p.Assistant
	}
	switch {
	case p.List == "" && p.at.end == 0:
	case p.List == "", p.at.open == who:
		p.out = append(p.out, ',')
	default:
		if p.at.open != nobody {
			p.out = append(p.out, "]},"...)
		}
		p.out = append(p.out, `{"role":"`+name+`","`+p.List+`":[`...)
		p.at.open = who
	}
}

// body puts the pieces together, and the mark where it belongs.
func (p *printer) body(head, data []byte) Body {
	tail := "]}"
	if p.at.open != nobody {
		tail = "]}" + tail
	}
	if p.at.end > 0 && head[len(head)-1] != '[' {
		head = append(head, ',')
	}
	b := Body{head, data, p.out, []byte(tail)}
	if p.Mark == "" || p.at.ours == 0 {
		return b
	}
	i, at := 1, p.at.ours-1
	if at >= len(data) {
		i, at = 2, at-len(data)
	}
	return slices.Replace(b, i, i+1, b[i][:at], []byte(p.Mark), b[i][at:])
}
