package amqp

import (
	"slices"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// outcome is the outcome of a delivery at its receiver.
type outcome struct {
	kind   wire.Descriptor // of a state that ends a delivery or not; 0 for none
	failed bool            // of modified: delivery-failed
	refuse bool            // of modified: undeliverable-here
}

// terminal tells whether the state ends a delivery.
func (o outcome) terminal() bool { return o.kind >= wire.DescAccepted && o.kind <= wire.DescModified }

// readOutcome reads an encoded delivery state; nil is none. Of a transactional state inTxn is set, and the outcome is
// the provisional one.
func readOutcome(raw []byte) (o outcome, txn []byte, inTxn bool, err error) {
	s, err := wire.ParseState(raw)
	return outcome{kind: s.Kind, failed: s.DeliveryFailed, refuse: s.UndeliverableHere}, s.TxnID, s.Transactional, err
}

// acceptedState is the encoded state accepted.
func acceptedState() []byte { return []byte(wire.Accepted) }

func appendRejected(b []byte, e *failure) []byte {
	return (&wire.State{Kind: wire.DescRejected, Error: e}).Append(b)
}

// can tells whether a terminus has a capability.
func can(t *wire.Terminus, capability string) bool {
	return slices.Contains(t.Capabilities, capability)
}
