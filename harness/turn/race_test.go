//go:build race

package turn

// thorough divides the rounds of random tests: the race detector makes each cost ten times as much.
const thorough = 10
