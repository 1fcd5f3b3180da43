package rocketmq

import (
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// headRoom is by how much a frame that we take may be larger than the largest body.
const headRoom = 1 << 20

// reply is an answer, or a request of the broker. Its slices are valid only while it is being handled.
type reply struct {
	wire.Frame
	from *conn
	err  error // there was no answer: the connection ended, or the time was over
}

// field is a field of a header.
type field struct{ key, value string }

// appendGiven appends a field, but not one without a value, which brokers would sign as "null".
func appendGiven(b []byte, key string, value []byte) []byte {
	if len(value) == 0 {
		return b
	}
	return wire.AppendField(b, key, value)
}

const (
	notRocketMQ  = "is this a RocketMQ name server or broker?"
	lookAtBroker = "look into the broker's log; see also whether a proxy on the way changes its messages"
)

// errLength is for a frame that says to have n bytes, of at most limit. Proven tells that the peer has sent good ones
// before.
func errLength(n uint32, limit int, proven bool) error {
	if proven && n > uint32(limit) { //nolint:gosec // above zero
		return driver.Errorf(driver.ClassTooLarge, "", "--max-message-size SIZE accepts larger messages",
			"the broker sends a frame of %d bytes; perfmq accepts at most %d", n, limit)
	}
	return driver.Errorf(driver.ClassProtocol, "", notRocketMQ,
		"the peer sends a frame of %d bytes; perfmq accepts %d to %d: %w", n, wire.MinFrame, limit, wire.ErrFrame)
}
