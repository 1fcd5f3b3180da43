//go:build race

package transport_test

// allowed bounds the allocations of a write: the race detector lets a sync.Pool forget some of its buffers.
const allowed = 3.0
