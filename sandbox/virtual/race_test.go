//go:build race

package virtual_test

// raced tells that the tests run under the race detector. It maps more memory
// than a worker may have, so the workers are then of another build.
const raced = true
