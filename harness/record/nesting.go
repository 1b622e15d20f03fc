package record

import "github.com/heddlehq/heddle/harness"

// TooDeep says whether a JSON value is nested too deep to be recorded.
func TooDeep(value []byte) bool { return harness.TooDeep(value) }
