package stomp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestHints: each refusal has the hint of its case.
func TestHints(t *testing.T) {
	for _, c := range []struct {
		dialect dialect
		says    string
		class   driver.Class
		hint    string
	}{
		{rabbitmq, "Virtual host 'nope' access denied", driver.ClassAuth, "-o virtual-host"},
		{rabbitmq, "Virtual host 'nope' does not exist", driver.ClassNotFound, "-o virtual-host"},
		{rabbitmq, "Access refused for user 'guest'", driver.ClassAuth, "--password"},
		{rabbitmq, "NOT_FOUND - no queue 'q' in vhost '/'", driver.ClassNotFound, "declare it on the broker first"},
		{artemis, "AMQ339001: Destination does not exist: q", driver.ClassNotFound, "try queue:// or topic://"},
		{generic, "queue not found", driver.ClassNotFound, "let the broker create it"},
		{artemis, "AMQ339011: Error handling CoreMessage", driver.ClassOther, "full address"},
		{artemis, "AMQ229119: Disk Capacity is Low, cannot produce more messages.", driver.ClassFull, "full address"},
		{artemis, "AMQ229020: Invalid filter: a =", driver.ClassUnsupported, "--selector"},
		{
			artemis, "AMQ229014: Did not receive data from 127.0.0.1:59508 within the 60000ms connection TTL. The connection " +
				"will now be closed.", driver.ClassConnectionLost, "-o heart-beat",
		},
		{generic, "the selector is not understood", driver.ClassUnsupported, "--selector"},
	} {
		err := errorFrame(c.dialect, &wire.Received{Headers: []wire.Field{{Key: []byte("message"), Value: []byte(c.says)}}})
		assert.Equal(t, c.class, err.Class, c.says)
		assert.Contains(t, err.Hint, c.hint, c.says)
	}
}
