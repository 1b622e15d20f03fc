package wire

import (
	"bytes"
	"encoding/json"
)

// A Shape reads the events of a stream that differ in one string only, which
// are nearly all, without decoding each: what was around that string in an
// event that was decoded must be around it again, byte for byte.
type Shape struct {
	Key        string // what comes before the string, such as `"text":"`
	head, tail []byte
}

// Learn keeps the shape of an event that was decoded and held nothing but text.
// An event in which the string is not found beyond doubt is not kept.
func (s *Shape) Learn(data []byte, text string) {
	s.head, s.tail = s.head[:0], s.tail[:0]
	before, rest, ok := bytes.Cut(data, []byte(s.Key))
	if !ok || bytes.Contains(rest, []byte(s.Key)) {
		return
	}
	end := 0
	for end < len(rest) && rest[end] != '"' {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	start := len(before) + len(s.Key)
	var found string
	if end >= len(rest) || json.Unmarshal(data[start-1:start+end+1], &found) != nil || found != text {
		return
	}
	s.head, s.tail = append(s.head, data[:start]...), append(s.tail, rest[end:]...)
}

// Forget makes the next event be decoded.
func (s *Shape) Forget() { s.head, s.tail = s.head[:0], s.tail[:0] }

// Text is the string of an event of the kept shape. It is not ok if the event
// has another one, and must be decoded.
func (s *Shape) Text(data []byte) (text string, ok bool) {
	if len(s.head) == 0 || len(data) < len(s.head)+len(s.tail) || !bytes.HasPrefix(data, s.head) || !bytes.HasSuffix(data, s.tail) {
		return "", false
	}
	start, end := len(s.head), len(data)-len(s.tail)
	for _, b := range data[start:end] {
		if b < ' ' || b == '"' || b == '\\' || b >= 0x80 {
			return text, json.Unmarshal(data[start-1:end+1], &text) == nil
		}
	}
	return string(data[start:end]), true
}
