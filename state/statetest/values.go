package statetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/heddlehq/heddle/state"
)

// spaces are those that tests put values in.
var spaces = []string{"memory/slack/T01", "secrets"}

func (k *kit) put(space string, vs ...state.Value) {
	k.Helper()
	if err := k.PutValues(k.ctx, space, vs...); err != nil {
		k.Fatalf("put values: %v", err)
	}
}

func (k *kit) list(space, after string, limit int) []state.Value {
	k.Helper()
	vs, err := k.ListValues(k.ctx, space, after, limit)
	if err != nil {
		k.Fatalf("list values: %v", err)
	}
	return vs
}

func testValues(t *testing.T, h Harness) {
	k := newKit(t, h)
	value := func(key, data string) state.Value { return state.Value{Key: key, Data: []byte(data)} }
	// In the order of their bytes, whatever the bytes.
	all := []state.Value{
		value("\x00", "zero"), value(" ", "blank"), value("10", "ten"), value("2", "two"), value("B", "b"),
		value("a", "\x00\xff binary"), value("a\x00", "empty follows"), value("a\x00b", ""), value("aa", "aa"), value("é", "e"),
		value("\xff", "no text"),
	}
	k.put(spaces[0], all[7], all[2], all[10], all[0], all[1], value("a", "replaced in the call"), all[8])
	k.put(spaces[0], all[3], all[9], all[5], all[4], all[6], value("gone", "soon"))
	k.put(spaces[0], state.Value{Key: "gone"}, state.Value{Key: "never"})
	k.put(spaces[0])
	k.put(spaces[1], value("a", "of another space"))
	k.same("all values", k.list(spaces[0], "", 100), all)
	for i := range all {
		k.same(fmt.Sprintf("values after %q", all[i].Key), k.list(spaces[0], all[i].Key, 100), all[i+1:])
	}
	k.same("the first three", k.list(spaces[0], "", 3), all[:3])
	k.same("two after one that is not there", k.list(spaces[0], "3", 2), all[4:6])
	for _, limit := range []int{0, -1} {
		k.same("no values", k.list(spaces[0], "", limit), []state.Value(nil))
	}
	k.same("values of the other space", k.list(spaces[1], "", 100), []state.Value{value("a", "of another space")})
	k.same("values of a space that is not", k.list("memory/slack", "", 100), []state.Value(nil))
	for _, v := range append(all, state.Value{Key: "gone"}, state.Value{Key: "A"}) {
		got, err := k.Value(k.ctx, spaces[0], v.Key)
		if err != nil || string(got) != string(v.Data) || (got == nil) != (v.Data == nil) {
			t.Errorf("value %q is %#v, %v; want %#v", v.Key, got, err, v.Data)
		}
	}
	// What is put and read is the caller's to change.
	data := []byte("kept")
	k.put(spaces[1], state.Value{Key: "b", Data: data})
	data[0] = 'X'
	k.list(spaces[1], "a", 1)[0].Data[0] = 'X'
	got, err := k.Value(k.ctx, spaces[1], "b")
	if err != nil || string(got) != "kept" {
		t.Errorf("value is %q, %v; want what was put", got, err)
	}
	before := k.dump()
	if err := k.PutValues(k.ctx, spaces[0], value("b", "b"), value("", "no key")); err == nil {
		t.Error("a value without a key was put")
	}
	k.same("stores before and after a bad value", k.dump(), before)
}

// testValueRaces puts and deletes a thousand values again and again: readers
// see all of one call, or none.
func testValueRaces(t *testing.T, h Harness) {
	k := newKit(t, h)
	const writers, rounds, n = 3, 6, 1000
	var puts, reads sync.WaitGroup
	for w := range writers {
		puts.Go(func() {
			for round := range rounds {
				vs := make([]state.Value, n)
				for i := range vs {
					vs[i].Key = fmt.Sprintf("%03d", i)
					if (w+round)%3 != 0 {
						vs[i].Data = fmt.Append(nil, w, "/", round)
					}
				}
				if err := k.PutValues(k.ctx, spaces[0], vs...); err != nil {
					t.Errorf("put values: %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { puts.Wait(); close(done) }()
	for range 2 {
		reads.Go(func() {
			for last := false; !last; {
				select {
				case <-done:
					last = true
				default:
				}
				vs, err := k.ListValues(k.ctx, spaces[0], "", 2*n)
				if err != nil || len(vs) != 0 && len(vs) != n {
					t.Errorf("%d values, %v; want %d or none", len(vs), err, n)
				}
				for _, v := range vs {
					if string(v.Data) != string(vs[0].Data) {
						t.Errorf("value %s is %s beside %s", v.Key, v.Data, vs[0].Data)
						return
					}
				}
			}
		})
	}
	reads.Wait()
}
