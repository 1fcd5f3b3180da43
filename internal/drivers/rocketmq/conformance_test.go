//go:build unix

package rocketmq

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// The brokers are started by the first test that asks and ended by TestMain. Each start takes about ten seconds of
// processor time.
var (
	shared sharedBroker
	// mortal is for tests after which a broker is not as it was: its threads may spin, or it stalled.
	mortal sharedBroker
	// peculiar creates no groups by itself, serves sends by one thread and does not check transactions back.
	peculiar = sharedBroker{brokertest.Shared{RocketMQOptions: []brokertest.RocketMQOption{
		brokertest.WithRocketMQProperty("autoCreateSubscriptionGroup", "false"),
		brokertest.WithRocketMQProperty("sendMessageThreadPoolNums", "1"),
		brokertest.WithRocketMQProperty("transactionTimeOut", "3600000"),
	}}}
)

type sharedBroker struct{ brokertest.Shared }

func (s *sharedBroker) get(tb testing.TB) *brokertest.RocketMQ {
	tb.Helper()
	return s.RocketMQ(tb)
}

func TestMain(m *testing.M) {
	rlog.SetLogger(quiet{}) // once: the library reads it without a lock, also long after a test
	brokertest.Main(m, &shared.Shared, &mortal.Shared, &peculiar.Shared)
}

// The differences from other brokers, and the reasons:
//   - MinBody 1: RocketMQ refuses empty bodies.
//   - MaxBody 1 MiB: brokers take 4 MiB unless configured otherwise.
//   - Log: a filter belongs to a consumer group, which passes over messages that do not match.
//   - Path: clients connect to the address that the name server gives, so that both need a proxy.
//   - pull-batch and queues: when a consumer leaves, the broker still answers the pull that it holds for each queue.
//
// The broker creates no groups by itself: otherwise each consumer would wait for the end of its pulls, for seconds.
func conformance(t *testing.T, options ...string) drivertest.Config {
	broker := peculiar.get(t)
	return drivertest.Config{
		Factory: Factory(), URL: broker.URL(), Options: append(options, "pull-batch=4", "queues=2", "send-timeout=1m"), MinBody: 1, MaxBody: 1 << 20, Log: true,
		Unordered: unordered,
		Path: func(t testing.TB) drivertest.Path {
			return brokertest.NewRocketMQPath(t, broker.NameServer(), broker.Broker())
		},
	}
}

const unordered = "the messages of a topic are spread over its queues"

// TestConformance: `make features` has the other modes, which internal/broker/rocketmq always tests.
func TestConformance(t *testing.T) {
	cfg := conformance(t)
	cfg.Broker = "RocketMQ " + brokertest.RocketMQVersion
	drivertest.Run(t, cfg)
}

// openDriver opens a driver with options; it is closed with the test.
func openDriver(t testing.TB, url string, options ...string) driver.Driver {
	t.Helper()
	f := Factory()
	o := f.NewOptions()
	require.NoError(t, driver.SetOptions(o, options))
	user, password := "", ""
	if i := strings.IndexByte(url, ' '); i > 0 { // "url user password"
		parts := strings.Fields(url)
		url, user, password = parts[0], parts[1], parts[2]
	}
	d, err := f.Open(t.Context(), driver.OpenOptions{URL: url, User: user, Password: password, ConnectTimeout: patience, Options: o})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

func topicNamed(name string) driver.Destination {
	return driver.Destination{Kind: driver.Topic, Name: name}
}

func queueNamed(name string) driver.Destination {
	return driver.Destination{Kind: driver.Queue, Name: name}
}

func unique(prefix string) string { return prefix + "-" + strconv.FormatInt(time.Now().UnixNano(), 36) }
