//go:build unix

package main

import "math"

// line returns the slope of the line with the least squares through points, and twice its standard error.
func line(xs, ys []float64) (slope, within float64) {
	n := float64(len(xs))
	if n < 3 {
		return math.NaN(), math.NaN()
	}
	var x, y, xx, xy, rest float64
	for i := range xs {
		x, y = x+xs[i]/n, y+ys[i]/n
	}
	for i := range xs {
		xx, xy = xx+(xs[i]-x)*(xs[i]-x), xy+(xs[i]-x)*(ys[i]-y)
	}
	slope = xy / xx
	for i := range xs {
		d := ys[i] - y - slope*(xs[i]-x)
		rest += d * d
	}
	return slope, 2 * math.Sqrt(rest/(n-2)/xx)
}
