package amqp

import (
	"slices"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// acceptedState is the encoded state accepted.
func acceptedState() []byte { return []byte(wire.Accepted) }

func appendRejected(b []byte, e *failure) []byte {
	return (&wire.State{Kind: wire.DescRejected, Error: e}).Append(b)
}

// can tells whether a terminus has a capability.
func can(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}
