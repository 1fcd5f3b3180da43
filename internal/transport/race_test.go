//go:build race

package transport_test

// allowed is how many allocations a write may take: the race detector lets a sync.Pool forget some of its buffers.
const allowed = 3.0
