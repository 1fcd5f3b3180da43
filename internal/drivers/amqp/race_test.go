//go:build race

package amqp

// few bounds the allocations per message: the race detector makes pools forget their contents.
const few = 2.0
