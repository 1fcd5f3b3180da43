//go:build !race

package transport_test

// allowed is how many allocations a write may take.
const allowed = 0.0
