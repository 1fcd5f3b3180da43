package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
)

// TestMessageTypeHint: the proxy of RocketMQ 5.5.0 words refusals so.
func TestMessageTypeHint(t *testing.T) {
	const words = "TopicMessageType validate failed, the expected type is "
	for text, hint := range map[string]string{
		words + "FIFO, but actual type is NORMAL":        "--group",
		words + "DELAY, but actual type is NORMAL":       "-o delay",
		words + "TRANSACTION, but actual type is NORMAL": "-o transactional=true",
		words + "NORMAL, but actual type is FIFO":        "leave out --group",
		words + "LITE, but actual type is NORMAL":        "a topic of type NORMAL",
	} {
		require.Contains(t, protocol.MessageTypeHint(text), hint)
	}
	require.Empty(t, protocol.MessageTypeHint("message size is too big"))
}
