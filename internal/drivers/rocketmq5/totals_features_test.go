//go:build unix && features

package rocketmq5_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq5"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// twoWays sends over one driver and receives over another.
type twoWays struct {
	driver.Driver
	receiver driver.Driver
}

// Consumer implements [driver.Driver].
func (w twoWays) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	return w.receiver.Consumer(ctx, spec)
}

func open(t *testing.T, f driver.Factory, url string, options ...string) driver.Driver {
	t.Helper()
	o := f.NewOptions()
	require.NoError(t, driver.SetOptions(o, options))
	d := musttest.Get(f.Open(t.Context(), driver.OpenOptions{URL: url, ConnectTimeout: time.Minute, Options: o}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

// TestConformanceTotals takes part in `make features` only. What is sent through the proxy comes over remoting, and the reverse; the broker's own offsets say how much
// it stored, and how much the group settled.
func TestConformanceTotals(t *testing.T) {
	const n = 2000
	broker := brokertest.StartRocketMQ(t, brokertest.WithRocketMQProxy())
	proxy := open(t, rocketmq5.Factory(), broker.ProxyURL(), "name-server="+broker.NameServer(), "send-timeout=1m")
	remoting := open(t, rocketmq.Factory(), broker.URL(), "send-timeout=1m")
	for name, w := range map[string]twoWays{
		"proxy": {proxy, proxy}, "to-remoting": {proxy, remoting}, "from-remoting": {remoting, proxy},
	} {
		t.Run(name, func(t *testing.T) {
			dest := driver.Destination{Name: "totals-" + name}
			accepted, received := librarytest.Exchange(t, w, dest, n)
			require.Equal(t, n, accepted)
			require.Equal(t, n, received)
			require.EqualValues(t, n, musttest.Get(broker.TopicMessages(t.Context(), dest.Name))(t), "stored")
			require.Eventually(t, func() bool {
				settled, err := broker.Consumed(t.Context(), "perfmq-queue-"+dest.Name, dest.Name)
				return err == nil && settled == n
			}, time.Minute, 100*time.Millisecond, "settled")
		})
	}
}
