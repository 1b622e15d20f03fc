package channels

import (
	"fmt"
	"strconv"
	"time"
)

// Window is how far the signed time of a request may be off, both ways.
const Window = 5 * time.Minute

// Seconds reads the digits of a Unix time; no sign, no space, no other base.
func Seconds(s string) (int64, bool) {
	if s == "" || len(s) > 12 {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// Fresh fails with an error that wraps ErrStale if a signed Unix time is outside
// the Window around now.
func Fresh(at int64, now time.Time) error {
	if d, most := now.Unix()-at, int64(Window/time.Second); d > most || d < -most {
		return fmt.Errorf("timestamp is off by %d s: %w", d, ErrStale)
	}
	return nil
}
