package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heddlehq/heddle/channels"
)

// What a signature vouches for beside the body.
type signed struct {
	id string // "" if none is signed
	at int64  // Unix seconds of the sending, 0 if it is not signed
}

// A scheme is how a source signs.
type scheme interface {
	verify(h http.Header, body []byte, now time.Time) (signed, error)
	// sign returns the headers of a request called id, with the first secret.
	sign(id string, body []byte, now time.Time) http.Header
}

// one returns the value of a header that must be there exactly once.
func one(h http.Header, name string) (string, error) {
	v := h.Values(name)
	if len(v) != 1 || v[0] == "" {
		return "", fmt.Errorf("want one header %s, got %d: %w", name, len(v), channels.ErrUnverified)
	}
	return v[0], nil
}

// standard is the scheme of Standard Webhooks with symmetric keys.
type standard struct {
	secrets [][]byte
	header  string // "webhook"
}

// verify accepts a v1 signature over id, time and raw bytes, made with any of the
// secrets. A stale request is told from a forged one only if it was signed.
func (s standard) verify(h http.Header, body []byte, now time.Time) (signed, error) {
	id, err := one(h, s.header+"-Id")
	if err != nil {
		return signed{}, err
	}
	stamp, err := one(h, s.header+"-Timestamp")
	if err != nil {
		return signed{}, err
	}
	sigs, err := one(h, s.header+"-Signature")
	if err != nil {
		return signed{}, err
	}
	at, ok := channels.Seconds(stamp)
	if !ok || len(id) > maxKeyBytes {
		return signed{}, fmt.Errorf("timestamp is not decimal, or the id is too long: %w", channels.ErrUnverified)
	}
	var found bool
	for _, secret := range s.secrets {
		want := []byte(s.mac(secret, id, stamp, body))
		for sig := range strings.SplitSeq(sigs, " ") {
			version, value, ok := strings.Cut(sig, ",")
			if !ok || value == "" {
				return signed{}, fmt.Errorf("signature header has no form: %w", channels.ErrUnverified)
			}
			found = version == "v1" && hmac.Equal([]byte(value), want) || found
		}
	}
	if !found {
		return signed{}, fmt.Errorf("signature does not match: %w", channels.ErrUnverified)
	}
	return signed{id, at}, channels.Fresh(at, now)
}

func (s standard) mac(secret []byte, id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (s standard) sign(id string, body []byte, now time.Time) http.Header {
	stamp, h := strconv.FormatInt(now.Unix(), 10), http.Header{}
	h.Set(s.header+"-Id", id)
	h.Set(s.header+"-Timestamp", stamp)
	h.Set(s.header+"-Signature", "v1,"+s.mac(s.secrets[0], id, stamp, body))
	return h
}

// plain is an HMAC of the body in one header; several are separated by commas.
// No time is signed, so a request can be sent again at any time: it is then the
// same event.
type plain struct {
	secrets        [][]byte
	header, prefix string
	encode         func([]byte) string
	hash           func() hash.Hash
}

func (p plain) verify(h http.Header, body []byte, _ time.Time) (signed, error) {
	sigs, err := one(h, p.header)
	if err != nil {
		return signed{}, err
	}
	var found bool
	for _, secret := range p.secrets {
		want := []byte(p.mac(secret, body))
		for sig := range strings.SplitSeq(sigs, ",") {
			if len(sig) != len(want) {
				return signed{}, fmt.Errorf("signature header has no form: %w", channels.ErrUnverified)
			}
			found = hmac.Equal([]byte(sig), want) || found
		}
	}
	if !found {
		return signed{}, fmt.Errorf("signature does not match: %w", channels.ErrUnverified)
	}
	return signed{}, nil
}

func (p plain) mac(secret, body []byte) string {
	mac := hmac.New(p.hash, secret)
	mac.Write(body)
	return p.prefix + p.encode(mac.Sum(nil))
}

func (p plain) sign(_ string, body []byte, _ time.Time) http.Header {
	h := http.Header{}
	h.Set(p.header, p.mac(p.secrets[0], body))
	return h
}
