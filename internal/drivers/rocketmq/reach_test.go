package rocketmq

import (
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// TestReach distinguishes a message that comes again, a message that follows, and a message with the offset of one that
// the broker has lost.
func TestReach(t *testing.T) {
	r := &reach{}
	for _, c := range []struct {
		offset, stored int64
		again          bool
	}{
		{5, 100, false}, {6, 100, false}, {6, 100, true}, {5, 100, true}, {7, 90, false}, // the broker's clock was set back
		{8, 200, false}, {9, 200, false}, {8, 300, false}, {9, 300, false}, {9, 300, true},
	} {
		require.Equal(t, c.again, r.again(&wire.Message{MessageHead: wire.MessageHead{QueueOffset: c.offset, Stored: c.stored}}), c)
	}
}
