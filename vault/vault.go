// Package vault keeps secrets in the store, encrypted by a key that is not in
// it: the tokens of a log-in, which Heddle gets itself and must keep.
package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/heddlehq/heddle/state"
)

// space is where the store has them.
const space = "secrets"

// keyBytes is the size of a key.
const keyBytes = 32

// A Vault keeps secrets by name, each encrypted by AES-256-GCM and bound to its
// name. Methods may be called at once.
type Vault struct {
	values state.Values
	keys   []cipher.AEAD // the first encrypts, all decrypt
}

// NewKey makes a key: 32 random bytes in base64.
func NewKey() string {
	b := make([]byte, keyBytes)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

// ErrKey is what New fails with for a key that is none.
var ErrKey = errors.New("a key has 32 bytes in base64")

// ErrSealed is wrapped by what Load and Renew fail with for a secret that is
// damaged or was made with a key that is not there.
var ErrSealed = errors.New("damaged, or made with another key")

// New makes a vault over a store. The first key encrypts; the others are older
// ones, which still decrypt.
func New(values state.Values, keys ...string) (*Vault, error) {
	v := &Vault{values: values}
	for _, key := range keys {
		raw, err := base64.StdEncoding.DecodeString(key)
		if err != nil || len(raw) != keyBytes {
			return nil, ErrKey
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, err
		}
		v.keys = append(v.keys, aead)
	}
	if v.keys == nil {
		return nil, ErrKey
	}
	return v, nil
}

// bound is what a secret is encrypted together with.
func bound(name string) []byte { return []byte("heddle secret 1\n" + name) }

// Load returns what was saved last, nil if nothing was. It fails if that was
// changed, was saved under another name, or with a key that is not there.
func (v *Vault) Load(ctx context.Context, name string) ([]byte, error) {
	sealed, err := v.values.Value(ctx, space, name)
	if err != nil || sealed == nil {
		return nil, err
	}
	secret, _, err := v.open(name, sealed)
	return secret, err
}

// open decrypts and says which key that took.
func (v *Vault) open(name string, sealed []byte) (secret []byte, key int, err error) {
	for i, k := range v.keys {
		if secret, err := k.Open([]byte{}, nil, sealed, bound(name)); err == nil {
			return secret, i, nil
		}
	}
	return nil, 0, fmt.Errorf("secret %s: %w", name, ErrSealed)
}

// Save replaces a secret; nil deletes it.
func (v *Vault) Save(ctx context.Context, name string, secret []byte) error {
	var sealed []byte
	if secret != nil {
		sealed = v.keys[0].Seal(nil, nil, secret, bound(name))
	}
	if err := v.values.PutValues(ctx, space, state.Value{Key: name, Data: sealed}); err != nil {
		return fmt.Errorf("save secret %s: %w", name, err)
	}
	return nil
}

// Renew encrypts with the first key what an older one encrypted, so that the
// older one can be thrown away, and says how many secrets that were. Those that
// no key decrypts stay as they are and are an error, which holds up no other.
func (v *Vault) Renew(ctx context.Context) (renewed int, err error) {
	var sealed []error
	after := ""
	for {
		some, err := v.values.ListValues(ctx, space, after, 100)
		if err != nil {
			return renewed, err
		}
		if len(some) == 0 {
			return renewed, errors.Join(sealed...)
		}
		for _, one := range some {
			after = one.Key
			secret, key, err := v.open(one.Key, one.Data)
			switch {
			case err != nil:
				sealed = append(sealed, err)
				continue
			case key == 0:
				continue
			}
			if err := v.Save(ctx, one.Key, secret); err != nil {
				return renewed, err
			}
			renewed++
		}
	}
}
