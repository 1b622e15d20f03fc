// Package chat is Heddle's vocabulary: what was said, by whom, where, and what
// is to be posted. Plain values without I/O; every other package speaks it.
package chat
