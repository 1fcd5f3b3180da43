//go:build !race

package amqp

// few bounds the allocations per message: the test and the runtime make some.
const few = 0.02
