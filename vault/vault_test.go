package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heddlehq/heddle/state"
	"github.com/heddlehq/heddle/state/mem"
	"github.com/heddlehq/heddle/vault"
)

func open(t *testing.T, values state.Values, keys ...string) *vault.Vault {
	t.Helper()
	v, err := vault.New(values, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func store(t *testing.T) state.Store {
	t.Helper()
	st := mem.Open(time.Now)
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// What is saved is read back by its key and name only, and the store holds
// nothing of it in the clear.
func TestVault(t *testing.T) {
	t.Parallel()
	st, key := store(t), vault.NewKey()
	v := open(t, st, key)
	if got, err := v.Load(t.Context(), "a"); got != nil || err != nil {
		t.Errorf("nothing saved: %q, %v", got, err)
	}
	for _, text := range []string{"hush", "hush-hush"} {
		if err := v.Save(t.Context(), "a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Load(t.Context(), "a"); string(got) != text || err != nil {
			t.Errorf("loaded %q, %v", got, err)
		}
	}
	sealed, err := st.Value(t.Context(), "secrets", "a")
	if err != nil || bytes.Contains(sealed, []byte("hush")) {
		t.Fatalf("the store holds %q, %v", sealed, err)
	}
	if _, err := open(t, st, vault.NewKey()).Load(t.Context(), "a"); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("with another key: %v", err)
	}
	damaged := bytes.Clone(sealed)
	damaged[len(damaged)-1] ^= 1
	for name, data := range map[string][]byte{"b": sealed, "c": damaged, "d": []byte("x"), "e": {}} {
		if err := st.PutValues(t.Context(), "secrets", state.Value{Key: name, Data: data}); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Load(t.Context(), name); err == nil {
			t.Errorf("%s: loaded %q", name, got)
		}
	}
	if err := v.Save(t.Context(), "empty", []byte{}); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Load(t.Context(), "empty"); got == nil || len(got) != 0 || err != nil {
		t.Errorf("an empty one: %v, %v", got, err)
	}
	if err := v.Save(t.Context(), "a", nil); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Load(t.Context(), "a"); got != nil || err != nil {
		t.Errorf("deleted: %q, %v", got, err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	if a, b := vault.NewKey(), vault.NewKey(); a == b {
		t.Error("two keys are equal")
	}
	for _, keys := range [][]string{nil, {""}, {"c2hvcnQ="}, {"no base64 !"}, {vault.NewKey(), "short"}} {
		if _, err := vault.New(store(t), keys...); !errors.Is(err, vault.ErrKey) {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

// A new key goes first: old secrets are still read, and after Renew the old key
// is of no use any more.
func TestRotation(t *testing.T) {
	t.Parallel()
	st, old, fresh := store(t), vault.NewKey(), vault.NewKey()
	before := open(t, st, old)
	const n = 250 // more than are listed at once
	for i := range n {
		if err := before.Save(t.Context(), fmt.Sprint(i), []byte("hush")); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.PutValues(t.Context(), "secrets", state.Value{Key: "1", Data: []byte("damaged")}); err != nil {
		t.Fatal(err)
	}
	if err := before.Save(t.Context(), "9", []byte{}); err != nil {
		t.Fatal(err)
	}
	both := open(t, st, fresh, old)
	if got, err := both.Load(t.Context(), "7"); string(got) != "hush" || err != nil {
		t.Errorf("an old secret: %q, %v", got, err)
	}
	if err := both.Save(t.Context(), "7", []byte("new")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{n - 2, 0} { // the damaged one holds up no other
		if got, err := both.Renew(t.Context()); got != want || !errors.Is(err, vault.ErrSealed) || !strings.Contains(err.Error(), "secret 1:") {
			t.Errorf("renewed %d, %v, want %d", got, err, want)
		}
	}
	if err := both.Save(t.Context(), "1", []byte("again")); err != nil {
		t.Fatal(err)
	}
	if got, err := both.Renew(t.Context()); got != 0 || err != nil {
		t.Errorf("renewed %d, %v, want none", got, err)
	}
	after := open(t, st, fresh)
	for i := range n {
		if got, err := after.Load(t.Context(), fmt.Sprint(i)); got == nil || err != nil {
			t.Fatalf("%d: %q, %v", i, got, err)
		}
	}
	if _, err := before.Load(t.Context(), "8"); err == nil {
		t.Error("the old key still decrypts")
	}
	if got, err := before.Renew(t.Context()); got != 0 || err == nil {
		t.Errorf("renewed %d of no key, %v", got, err)
	}
}
