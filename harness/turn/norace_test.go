//go:build !race

package turn

const thorough = 1
