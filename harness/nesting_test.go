package harness

import (
	"strings"
	"testing"
)

func TestTooDeep(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`{"a":[`, n/2) + strings.Repeat("]}", n/2) }
	for text, want := range map[string]bool{
		``: false, `7`: false, nested(MaxNesting): false, nested(MaxNesting + 2): true,
		`["` + strings.Repeat("[", 2*MaxNesting) + `"]`:       false,
		`["\"` + strings.Repeat("[", 2*MaxNesting) + `\\\""]`: false,
		`["\\",` + nested(MaxNesting) + `]`:                   true,
		`[` + strings.Repeat(`[],`, 2*MaxNesting) + `{}]`:     false,
	} {
		if got := TooDeep([]byte(text)); got != want {
			t.Errorf("%.40q of %d bytes: %v", text, len(text), got)
		}
	}
}
