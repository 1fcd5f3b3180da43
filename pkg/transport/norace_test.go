//go:build !race

package transport_test

// allowed bounds the allocations of a write.
const allowed = 0.0
