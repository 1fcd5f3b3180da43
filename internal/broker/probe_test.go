package broker_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestProbe: clients learn that the broker is stalled over each protocol. Those on client libraries have this test, too.
func TestProbe(t *testing.T) {
	t.Parallel()
	for _, f := range []driver.Factory{amqp.Factory(), stomp.Factory(), rocketmq.Factory()} {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			librarytest.Probe(t, f)
		})
	}
}
