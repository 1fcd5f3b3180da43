package librarytest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/driver"
)

const (
	// probePatience is longer than any driver may take to answer a probe.
	probePatience = 2 * time.Minute
	// standstill is the time that a probe waits for a stalled broker.
	standstill = time.Second
)

// Probe tests the probes of the consumers of f, which distinguish lost messages from held ones: a working broker
// answers a probe, with or without messages to deliver, and a stalled broker does not.
func Probe(t *testing.T, f driver.Factory) {
	t.Helper()
	b := start(t, f.Name, broker.Config{})
	d, err := f.Open(t.Context(),
		driver.OpenOptions{URL: url(b, &f), ConnectTimeout: probePatience, Options: f.NewOptions()})
	require.NoError(t, err)
	c := &probed{t: t, d: d, dest: driver.Destination{Name: "probed"}}
	consumer, err := d.Consumer(t.Context(), driver.ConsumerSpec{
		Destination: c.dest, Connection: driver.Connection{Key: "c", Name: "c"}, Name: "c",
	})
	require.NoError(t, err)
	var known bool
	c.prober, known = consumer.(driver.Prober)
	require.True(t, known, "a consumer that is no driver.Prober counts as answered: what the broker holds would be lost")
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- consumer.Run(running, func(*driver.Delivery) driver.Verdict { c.received.Add(1); return driver.Accept })
	}()

	c.works("a broker that works")
	b.Store().SetFaults(store.Faults{LoseEvery: 1})
	require.Positive(t, Send(t, d, c.dest, 1), "messages that the broker accepted, and lost")
	require.NoError(t, c.probe(probePatience), "a probe of a broker that has lost a message")
	b.Store().SetFaults(store.Faults{})
	b.Store().Stall(time.Hour)
	require.Error(t, c.probe(standstill), "a probe of a stalled broker")
	b.Store().Stall(0)
	c.works("a broker that went on")

	stop()
	require.NoError(t, <-ended)
	require.NoError(t, consumer.Close(t.Context()))
	require.NoError(t, d.Close(t.Context()))
}

// probed is a consumer that is probed.
type probed struct {
	t        *testing.T
	d        driver.Driver
	dest     driver.Destination
	prober   driver.Prober
	received atomic.Int64
	sent     int64 // and accepted
}

func (c *probed) probe(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	return c.prober.Probe(ctx)
}

// works probes while messages are sent, and then waits for these. RocketMQ's library asks for more when it has got
// some.
func (c *probed) works(what string) {
	c.t.Helper()
	answered := make(chan error, 1)
	go func() { answered <- c.probe(probePatience) }()
	for waiting := true; waiting; {
		c.sent += int64(Send(c.t, c.d, c.dest, 20))
		select {
		case err := <-answered:
			require.NoError(c.t, err, "a probe of %s", what)
			waiting = false
		default:
		}
	}
	require.Eventually(c.t, func() bool { return c.received.Load() >= c.sent }, probePatience, 10*time.Millisecond,
		"the messages that %s has accepted", what)
}
