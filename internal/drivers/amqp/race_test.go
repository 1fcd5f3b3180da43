//go:build race

package amqp

// few is how much of an allocation per message is not ours: the race detector makes pools forget their contents.
const few = 2.0
