package harness

import (
	"encoding/json"
	"fmt"
)

// MaxNesting is how many objects and arrays deep a value may be that is to be
// recorded. JSON is read to a depth of 10 000, and a record, a task's record and
// a checkpoint put levels of their own around it: what is written must be read.
const MaxNesting = 500

// TooDeep says whether a JSON value is nested deeper than MaxNesting.
func TooDeep(value []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > MaxNesting {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// marshal is the JSON form of a value that is to be recorded.
func marshal(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the value has no JSON form: %w", err)
	case TooDeep(b):
		return nil, fmt.Errorf("the value is nested more than %d deep", MaxNesting)
	}
	return b, nil
}
