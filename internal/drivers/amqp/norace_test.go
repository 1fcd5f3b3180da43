//go:build !race

package amqp

// few is how much of an allocation per message is not ours, but the test's and the runtime's.
const few = 0.02
