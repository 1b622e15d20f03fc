package commands

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
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
	return c.each(f.args, func(name string, r io.Reader) error {
		h := hashes[c.name()]()
		_, err := io.Copy(h, r)
		if err == nil {
			c.printf("%x  %s\n", h.Sum(nil), name)
		}
		return err
	})
}
