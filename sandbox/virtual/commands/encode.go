package commands

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"strings"
)

func base(c *Call, f *flags) int {
	data, code := c.slurpAll(f.args)
	if code != 0 {
		return code
	}
	if f.has("d") {
		out, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(data)), ""))
		_, _ = c.out.Write(out) // as far as it went
		if err != nil {
			c.errorf("invalid input")
			return 1
		}
		return 0
	}
	wrap := f.num("w", 76)
	text := base64.StdEncoding.EncodeToString(data)
	for wrap > 0 && len(text) > wrap {
		c.printf("%s\n", text[:wrap])
		text = text[wrap:]
	}
	c.line([]byte(text), wrap > 0 && text != "")
	return 0
}

var hashes = map[string]func() hash.Hash{"md5sum": md5.New, "sha1sum": sha1.New, "sha256sum": sha256.New, "sha512sum": sha512.New}

func sum(c *Call, f *flags) int {
	of := func(r io.Reader) (string, error) {
		h := hashes[c.name()]()
		_, err := io.Copy(h, r)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	if !f.has("c") {
		return c.each(f.args, func(name string, r io.Reader) error {
			digest, err := of(r)
			if err == nil {
				c.printf("%s  %s\n", digest, name)
			}
			return err
		})
	}
	failed := 0
	code := c.eachLine(f.args, func(line []byte, _ bool) error {
		want, name, found := strings.Cut(string(line), " ")
		if name = strings.TrimLeft(name, " *"); !found {
			return nil
		}
		result := "FAILED"
		if r, err := c.open(name); err != nil {
			result = "FAILED open or read"
		} else if got, err := of(r); err == nil && got == want {
			result = "OK"
		}
		if result != "OK" {
			failed++
		}
		c.printf("%s: %s\n", name, result)
		return nil
	})
	if failed > 0 {
		c.errorf("WARNING: %d computed checksum did NOT match", failed)
		return 1
	}
	return code
}
