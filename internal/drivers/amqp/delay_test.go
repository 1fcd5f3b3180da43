package amqp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// A broker that does not say that it can delay messages would deliver them at once: it is not asked.
func TestDeliveryDelayIsRefused(t *testing.T) {
	r := newRig(t, newPeer(t).start())
	_, err := r.tryProducer(driver.ProducerSpec{Destination: queue(t), Delay: time.Second})
	require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "DELAYED_DELIVERY")
	require.Contains(t, driver.HintOf(err), "--delivery-delay")
}
