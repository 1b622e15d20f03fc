package state

import (
	"errors"
	"fmt"
	"strconv"
)

// A Count is added to a value that is a whole number: decimal digits, and a
// value that is not there is 0.
type Count struct {
	Space string
	Key   string // not empty
	Add   int64
}

// To is the value after the count, from its data before. It fails if that is no number.
func (c Count) To(data []byte) (Value, error) {
	n, err := Counted(data)
	if err != nil {
		return Value{}, fmt.Errorf("count %s in %s: %w", c.Key, c.Space, err)
	}
	v := Value{Key: c.Key, Data: strconv.AppendInt(nil, n+c.Add, 10)}
	return v, v.Validate()
}

// Counted reads a value that is counted, nil being 0.
func Counted(data []byte) (int64, error) {
	if data == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the value is no count: %w", errors.Unwrap(err)) // without the value
	}
	return n, nil
}
