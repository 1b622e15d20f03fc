package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/heddlehq/heddle/chat"
)

// TestVisibility holds every search to account, room and trust.
func TestVisibility(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{})
	w.note(in("T1", "C1"), "U1", chat.Member, "member in open one")
	w.note(in("T1", "C2"), "U2", chat.Outsider, "outsider in open two")
	w.note(in("T1", "G1"), "U1", chat.Member, "member in private")
	w.note(in("T1", "D1"), "U3", chat.Maintainer, "maintainer in direct")
	w.note(in("T1", "C1"), "U3", chat.Maintainer, "maintainer in open one")
	w.note(in("T2", "C1"), "U1", chat.Admin, "another account in open one")
	for _, tt := range []struct {
		name  string
		from  chat.Thread
		trust chat.Role
		want  []string
	}{
		{"a member sees open rooms", in("T1", "C3"), chat.Member, []string{"maintainer in open one", "member in open one"}},
		{"and the own private room", in("T1", "G1"), chat.Member, []string{"maintainer in open one", "member in open one", "member in private"}},
		{"an outsider sees the own room only", in("T1", "C2"), chat.Outsider, []string{"outsider in open two"}},
		{"and all of that", in("T1", "C1"), chat.Outsider, []string{"maintainer in open one", "member in open one"}},
		{"what is said with less trust is left out", in("T1", "C1"), chat.Maintainer, []string{"maintainer in open one"}},
		{"also where all was said", in("T1", "C2"), chat.Admin, []string{}},
		{"accounts do not mix", in("T2", "C9"), chat.Member, []string{"another account in open one"}},
		{"an account without memory", in("T3", "C1"), chat.Admin, []string{}},
		{"a room of the same name elsewhere", in("T2", "G1"), chat.Member, []string{"another account in open one"}},
	} {
		if diff := gocmp.Diff(tt.want, w.find(tt.from, tt.trust, "open private direct")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	r, err := w.Search(context.Background(), Query{Text: "private", Thread: in("T1", ""), Everything: true})
	if err != nil || len(r.Found) != 5 {
		t.Errorf("an operator finds %d of 5, %v", len(r.Found), err)
	}
}

// TestNow looks again at who and what was trusted when it was remembered.
func TestNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{})
	w.note(in("T1", "C1"), "U1", chat.Maintainer, "by one")
	w.note(in("T1", "C1"), "U2", chat.Maintainer, "by two")
	w.roles["U1"] = chat.Member // no maintainer any more
	if diff := gocmp.Diff([]string{"by two"}, w.find(in("T1", "C2"), chat.Maintainer, "by")); diff != "" {
		t.Errorf("after a demotion (-want +got):\n%s", diff)
	}
	r, err := w.Search(context.Background(), Query{Text: "by one", Thread: in("T1", "C2"), Trust: chat.Member, Limit: 1})
	if err != nil || len(r.Found) != 1 || r.Found[0].Role != chat.Member {
		t.Errorf("the demoted one's item is %+v, %v; want the role of now", r.Found, err)
	}
	w.blind = true
	if got := w.find(in("T1", "C2"), chat.Member, "by"); len(got) != 0 {
		t.Errorf("while nobody can be looked up, %q are found in another room", got)
	}
	if got := w.find(in("T1", "C1"), chat.Member, "by"); len(got) != 0 {
		t.Errorf("while nobody can be looked up, %q count as a member's", got)
	}
	w.note(in("T1", "C1"), "U1", chat.Admin, "saved blindly")
	w.blind = false
	if got := w.find(in("T1", "C2"), chat.Member, "saved blindly"); slices.Contains(got, "saved blindly") {
		t.Error("what was saved while the room was not known is found elsewhere")
	}
}

// TestSentAlong finds what a conversation was sent by another one: there is
// nobody of that name to look up.
func TestSentAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{})
	sent := chat.Author{ID: "cabc", Account: chat.ConversationAccount}
	w.roles[sent.ID] = chat.Outsider
	if err := w.Remember(context.Background(), Item{ID: "sent", Kind: Note, Thread: in("T1", "C1"), Text: "sent along", Author: sent, Role: chat.Member, At: start}); err != nil {
		t.Fatal(err)
	}
	for trust, want := range map[chat.Role]int{chat.Member: 1, chat.Maintainer: 0} {
		if got := w.find(in("T1", "C2"), trust, "sent along"); len(got) != want {
			t.Errorf("a %v finds %q", trust, got)
		}
	}
}

// liar is an embedder that answers with something else.
type liar struct{ vectors [][]float32 }

func (liar) Name() string                                           { return "liar" }
func (l liar) Embed(context.Context, []string) ([][]float32, error) { return l.vectors, nil }

// TestLyingEmbedder keeps what is remembered, and finds it by its words,
// whatever the embedder answers.
func TestLyingEmbedder(t *testing.T) {
	t.Parallel()
	for name, vectors := range map[string][][]float32{
		"nothing": nil, "two for one": {{1}, {1}}, "an empty one": {{}}, "no vector": {nil}, "nothing but zeros": {{0, 0}},
		"no number": {{1, float32(math.NaN())}}, "endless": {{float32(math.Inf(1))}}, "huge": {make([]float32, maxDimension+1)},
	} {
		l := &liar{vectors: vectors}
		if name == "huge" {
			l.vectors[0][0] = 1
		}
		s := newStore()
		w := newWorld(t, s, Options{Embedder: l})
		w.note(in("T1", "C1"), "U1", chat.Member, "a note")
		r, err := w.Search(context.Background(), Query{Text: "note", Thread: in("T1", "C1"), Trust: chat.Member})
		if err != nil || len(r.Found) != 1 || !r.WordsOnly {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		l.vectors = [][]float32{{3, 4}} // it comes to its senses
		w.note(in("T1", "C1"), "U1", chat.Member, "another")
		if r, err = w.Search(context.Background(), Query{Text: "note", Thread: in("T1", "C1"), Trust: chat.Member}); err != nil || len(r.Found) != 2 || r.WordsOnly {
			t.Errorf("%s, then right: %+v, %v", name, r, err)
		}
		l.vectors = [][]float32{{1}} // of another length: it is another model
		if _, err = w.Search(context.Background(), Query{Text: "note", Thread: in("T1", "C1"), Trust: chat.Member}); !errors.As(err, new(*MismatchError)) {
			t.Errorf("%s, then shorter: %v", name, err)
		}
	}
}

// TestRememberTwice stores an item once, also after a restart.
func TestRememberTwice(t *testing.T) {
	t.Parallel()
	s := newStore()
	w := newWorld(t, s, Options{})
	for range 3 {
		w.note(in("T1", "C1"), "U1", chat.Member, "once")
		w = newWorld(t, s, Options{})
	}
	if got := w.find(in("T1", "C1"), chat.Member, "once"); len(got) != 1 {
		t.Errorf("remembered three times, found %d times", len(got))
	}
}

// TestReplicas has two memories on one store find what either remembers.
func TestReplicas(t *testing.T) {
	t.Parallel()
	s := newStore()
	a, b := newWorld(t, s, Options{}), newWorld(t, s, Options{})
	b.now = b.now.Add(-time.Minute) // clocks differ
	for i := range 10 {
		a.note(in("T1", "C1"), "U1", chat.Member, fmt.Sprint("note of a ", i))
		b.note(in("T1", "C1"), "U1", chat.Member, fmt.Sprint("note of b ", i))
		for _, w := range []*world{a, b} {
			if got := w.find(in("T1", "C1"), chat.Member, "note"); len(got) != 2*(i+1) {
				t.Fatalf("found %d of %d", len(got), 2*(i+1))
			}
		}
	}
}

// TestItems forgets the oldest turns first, and notes only when nothing else is left.
func TestItems(t *testing.T) {
	t.Parallel()
	s := newStore()
	w := newWorld(t, s, Options{Items: 3})
	other := newWorld(t, s, Options{Items: 3})
	turn := func(id string) {
		t.Helper()
		it := Item{ID: id, Kind: Turn, Thread: in("T1", "C1"), Text: id, Role: chat.Admin, At: start}
		if err := w.Remember(context.Background(), it); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		do   func()
		want []string
	}{
		{func() { w.note(in("T1", "C1"), "U1", chat.Admin, "note one") }, []string{"note one"}},
		{func() { turn("turn one"); turn("turn two") }, []string{"note one", "turn one", "turn two"}},
		{func() { turn("turn three") }, []string{"note one", "turn three", "turn two"}},
		{func() { w.note(in("T1", "C1"), "U1", chat.Admin, "note two") }, []string{"note one", "note two", "turn three"}},
		{func() { w.note(in("T1", "C1"), "U1", chat.Admin, "note three") }, []string{"note one", "note three", "note two"}},
		{func() { w.note(in("T1", "C1"), "U1", chat.Admin, "note four") }, []string{"note four", "note three", "note two"}},
	} {
		step.do()
		for _, x := range []*world{w, other, newWorld(t, s, Options{})} {
			if diff := gocmp.Diff(step.want, x.find(in("T1", "C1"), chat.Member, "note turn")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
}

// TestCache lets go of the indexes that were not used for longest, and reads
// them again when they are.
func TestCache(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{Cache: 20_000})
	for i := range 8 {
		w.note(in(fmt.Sprint("T", i), "C1"), "U1", chat.Member, "note")
	}
	sum := 0
	for _, x := range w.kept {
		sum += x.bytes()
	}
	if sum > 20_000 || len(w.kept) < 2 || len(w.kept) != len(w.used) || w.kept[account{"slack", "T7"}] == nil {
		t.Errorf("%d indexes of %d bytes are kept", len(w.kept), sum)
	}
	for i := range 8 {
		if got := w.find(in(fmt.Sprint("T", i), "C1"), chat.Member, "note"); len(got) != 1 {
			t.Errorf("account %d: found %d", i, len(got))
		}
	}
}

// TestAway goes on by words while the embedder is away, and catches up.
func TestAway(t *testing.T) {
	t.Parallel()
	e := &shifted{name: "e", n: 256, away: true}
	w := newWorld(t, newStore(), Options{Embedder: e})
	w.note(in("T1", "C1"), "U1", chat.Member, "payments failed")
	r, err := w.Search(context.Background(), Query{Text: "payments", Thread: in("T1", "C1")})
	if err != nil || len(r.Found) != 1 || !r.WordsOnly {
		t.Errorf("while away: %+v, %v", r, err)
	}
	e.away = false
	if got := w.find(in("T1", "C1"), chat.Member, "payment"); len(got) != 0 {
		t.Errorf("found %q by a vector that there is not", got)
	}
	if err := w.Reindex(context.Background(), "slack/T1", false, func(int) {}); err != nil {
		t.Fatal(err)
	}
	if got := w.find(in("T1", "C1"), chat.Member, "payment"); len(got) != 1 {
		t.Errorf("after the reindex found %q", got)
	}
}

// TestNearest compares the search by meaning with sorting all items by their
// cosine.
func TestNearest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 9).Draw(t, "dim")
		vector := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 { return float32(rapid.IntRange(-5, 5).Draw(t, "x")) / 4 }), dim, dim)
		vecs := rapid.SliceOfN(vector, 0, 60).Draw(t, "vectors")
		q := vector.Draw(t, "query")
		hidden := rapid.SliceOfN(rapid.Bool(), len(vecs), len(vecs)).Draw(t, "hidden")
		k := rapid.IntRange(0, 12).Draw(t, "k")
		x := newIndex("", dim)
		var naive []float64 // cosines of what may be found, the greatest first
		cosines := map[int]float64{}
		for i, v := range vecs {
			u, err := unit(slices.Clone(v))
			if err != nil {
				t.Fatal(err)
			}
			x.add(fmt.Sprint(i), 0, Item{ID: fmt.Sprint(i), Text: "x", Kind: Note, Open: !hidden[i]}, u, 0)
			if c := cosine(q, v); !hidden[i] && !math.IsNaN(c) {
				naive, cosines[i] = append(naive, c), c
			}
		}
		slices.SortFunc(naive, func(a, b float64) int { return cmp.Compare(b, a) })
		u, err := unit(q)
		if err != nil {
			t.Fatal(err)
		}
		got := x.nearest(u, k, func(r *row) bool { return r.open })
		want := min(k, len(naive))
		if len(u) == 0 {
			want = 0
		}
		if len(got) != want {
			t.Fatalf("found %d, want %d", len(got), want)
		}
		seen := map[int]bool{}
		for i, h := range got {
			c, ok := cosines[h.row]
			if !ok || seen[h.row] || math.Abs(c-naive[i]) > 1e-5 || math.Abs(c-h.score) > 1e-5 {
				t.Fatalf("place %d: row %d with %v, its cosine is %v; want one of %v", i, h.row, h.score, c, naive[i])
			}
			seen[h.row] = true
		}
	})
}

// cosine by the definition, NaN where there is none.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa) / math.Sqrt(bb)
}

// TestWords splits texts of several scripts.
func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"It's Paid: 3 PAYMENTS": "it s paid 3 payments",
		"北京大学 x光":               "北京 京大 大学 x 光",
		"결제가 실패":                "결제가 실패",
		"データ・ベース":               "デー ータ ベー ース",
		"ภาษา!":                 "ภา าษ ษา",
		"":                      "", "…!": "", "é É cafe\u0301": "é é cafe\u0301",
	} {
		if got := strings.Join(words(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestItemCodec refuses what is damaged.
func TestItemCodec(t *testing.T) {
	t.Parallel()
	it := Item{ID: "a", Kind: Note, Thread: in("T1", "C1"), Text: "text", Role: chat.Member, At: start}
	for _, vec := range [][]float32{nil, {1, -0.5, float32(math.SmallestNonzeroFloat32)}} {
		b, err := encode(it, vec)
		if err != nil {
			t.Fatal(err)
		}
		got, v, err := decode(b)
		if err != nil || gocmp.Diff(it, got) != "" || gocmp.Diff(vec, v) != "" {
			t.Errorf("%v: %v %v %v", vec, got, v, err)
		}
		for i := range len(b) {
			if _, _, err := decode(b[:i]); err == nil && (len(vec) == 0 || i%4 != (len(b)%4)) {
				t.Errorf("cut to %d of %d bytes it is read", i, len(b))
			}
		}
	}
	for _, b := range []string{"", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x02{", "\x02[]", "\x80"} {
		if _, _, err := decode([]byte(b)); !errors.Is(err, errItem) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// TestRememberRefuses what no item is.
func TestRememberRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newStore(), Options{})
	good := Item{ID: "a", Kind: Note, Thread: in("T1", "C1"), Text: "text"}
	for name, change := range map[string]func(*Item){
		"no id":      func(it *Item) { it.ID = "" },
		"no text":    func(it *Item) { it.Text = " \n" },
		"no kind":    func(it *Item) { it.Kind = "other" },
		"no account": func(it *Item) { it.Thread.Account = "" },
	} {
		it := good
		change(&it)
		if err := w.Remember(context.Background(), it); err == nil {
			t.Errorf("%s: remembered", name)
		}
	}
	if used := w.store.used(t); len(used) != 0 {
		t.Errorf("the store holds %v", used)
	}
	good.Text = strings.Repeat("語", MaxText)
	if err := w.Remember(context.Background(), good); err != nil {
		t.Fatal(err)
	}
	if got := w.find(in("T1", "C1"), chat.Outsider, "語語"); len(got) != 1 || len(got[0]) > MaxText || !strings.HasSuffix(got[0], "語 …") {
		t.Errorf("a long text became %d bytes", len(got[0]))
	}
}

// TestSlow searches by words when the embedder does not answer in time.
func TestSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &shifted{name: "e", n: 64}
		w := newWorld(t, newStore(), Options{Embedder: e})
		w.note(in("T1", "C1"), "U1", chat.Member, "payments failed")
		e.hangs = true
		began := time.Now()
		r, err := w.Search(t.Context(), Query{Text: "payments", Thread: in("T1", "C1")})
		if took := time.Since(began); err != nil || !r.WordsOnly || len(r.Found) != 1 || took != embedTime {
			t.Errorf("%+v, %v after %v", r, err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Search(ctx, Query{Text: "payments", Thread: in("T1", "C1")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when the caller's time is over: %v", err)
		}
	})
}
