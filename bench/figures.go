//go:build linux

package main

import (
	"math"
	"slices"
	"time"
)

// quantiles are in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func quantilesOf(all []time.Duration) quantiles {
	if len(all) == 0 {
		return quantiles{}
	}
	slices.Sort(all)
	at := func(q float64) float64 {
		return round(float64(all[int(q*float64(len(all)-1))]) / 1e6)
	}
	return quantiles{P50: at(0.5), P95: at(0.95), P99: at(0.99), Max: at(1)}
}

// median of a list that is not empty; the mean of both middles of an even one.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// round keeps three significant digits, and all before the point.
func round(f float64) float64 {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	digits := max(0, 2-math.Floor(math.Log10(math.Abs(f))))
	p := math.Pow(10, digits)
	return math.Round(f*p) / p
}

func ms(d time.Duration) float64 { return round(float64(d) / 1e6) }
