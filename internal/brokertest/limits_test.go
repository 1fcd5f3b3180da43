//go:build unix

package brokertest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRabbitMQTellsTheKeyThatItDoesNotKnow(t *testing.T) {
	Needs(t, "RabbitMQ")
	_, err := LaunchRabbitMQ(t.Context(), WithRabbitMQSetting("channel_maxx", "7"))
	require.ErrorContains(t, err, "tried to set channel_maxx")
}
