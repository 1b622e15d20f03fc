package commands

import (
	"bytes"
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

func base(c *Call) int {
	f, ok := c.flags("d|D|decode w|wrap: i|ignore-garbage")
	if !ok {
		return 2
	}
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
	wrap, ok := f.num("w", 76)
	if !ok || wrap < 0 {
		return c.usage("invalid wrap size")
	}
	text := base64.StdEncoding.EncodeToString(data)
	if wrap == 0 {
		c.printf("%s", text)
		return 0
	}
	for len(text) > wrap {
		c.printf("%s\n", text[:wrap])
		text = text[wrap:]
	}
	if text != "" {
		c.printf("%s\n", text)
	}
	return 0
}

func newHash(name string) hash.Hash {
	switch name {
	case "md5sum":
		return md5.New()
	case "sha1sum":
		return sha1.New()
	case "sha512sum":
		return sha512.New()
	}
	return sha256.New()
}

func sum(c *Call) int {
	f, ok := c.flags("c|check b|binary t|text quiet status")
	if !ok {
		return 2
	}
	of := func(r io.Reader) (string, error) {
		h := newHash(c.name())
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
	code := c.each(f.args, func(_ string, r io.Reader) error {
		return lines(r, '\n', func(line []byte, _ bool) error {
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
			if !f.has("status") && !(f.has("quiet") && result == "OK") {
				c.printf("%s: %s\n", name, result)
			}
			return nil
		})
	})
	if failed > 0 {
		c.errorf("WARNING: %d computed checksum did NOT match", failed)
		return 1
	}
	return code
}

func xxd(c *Call) int {
	f, ok := c.flags("r|revert p|ps|plain l: c: s: u g:")
	if !ok {
		return 2
	}
	data, code := c.slurpAll(f.args)
	if code != 0 {
		return code
	}
	if f.has("r") {
		return c.unhex(data, f.has("p"))
	}
	width, ok1 := f.num("c", 16)
	most, ok2 := f.num("l", len(data))
	skip, ok3 := f.num("s", 0)
	if !ok1 || !ok2 || !ok3 || width < 1 || most < 0 || skip < 0 {
		return c.usage("not a number")
	}
	data = data[min(skip, len(data)):]
	data = data[:min(most, len(data))]
	if f.has("p") {
		text := hex.EncodeToString(data)
		for len(text) > 60 {
			c.printf("%s\n", text[:60])
			text = text[60:]
		}
		c.printf("%s\n", text)
		return 0
	}
	for at := 0; at < len(data); at += width {
		row := data[at:min(at+width, len(data))]
		c.printf("%08x: ", at+skip)
		for i := range width {
			if i < len(row) {
				c.printf("%02x", row[i])
			} else {
				c.printf("  ")
			}
			if i%2 == 1 {
				c.printf(" ")
			}
		}
		c.printf(" %s\n", printable(row))
	}
	return 0
}

// unhex reverts a dump.
func (c *Call) unhex(data []byte, plain bool) int {
	var text strings.Builder
	for _, line := range splitLines(data) {
		if !plain {
			_, rest, found := strings.Cut(line, ": ")
			if !found {
				continue
			}
			line, _, _ = strings.Cut(rest, "  ")
		}
		text.WriteString(strings.Join(strings.Fields(line), ""))
	}
	out, err := hex.DecodeString(text.String())
	_, _ = c.out.Write(out) // as far as it went
	if err != nil {
		return c.usage("not a hex dump")
	}
	return 0
}

func printable(row []byte) string {
	out := bytes.Clone(row)
	for i, b := range out {
		if b < ' ' || b > '~' {
			out[i] = '.'
		}
	}
	return string(out)
}
