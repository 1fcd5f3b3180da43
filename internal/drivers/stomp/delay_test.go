package stomp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// A delayed delivery is asked for by a header, or refused where none is known to have an effect.
func TestDeliveryDelay(t *testing.T) {
	spec := &driver.ProducerSpec{Destination: driver.Destination{Name: "q"}, Delay: 1500 * time.Millisecond, Variants: []driver.Variant{{Priority: -1}}}
	for _, d := range []dialect{artemis, activemq, perfmq} {
		headers, err := d.send(spec, defaultOptions())
		require.NoError(t, err)
		require.Contains(t, headers, driver.Property{Key: "AMQ_SCHEDULED_DELAY", Value: "1500"})
	}
	for _, d := range []dialect{rabbitmq, generic} {
		_, err := d.send(spec, defaultOptions())
		require.ErrorContains(t, err, "delayed delivery")
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
	}
}
