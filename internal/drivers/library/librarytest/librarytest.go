// Package librarytest runs the conformance suite, and a test of probes, on the embedded broker, for the drivers on
// client libraries.
package librarytest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

const (
	user     = "admin"
	password = "secret"
	timeout  = 2 * time.Minute
)

// Embedded returns the configuration of the suite on an embedded broker for the protocol of f, with a login. Headers
// are read from the broker's store.
func Embedded(t testing.TB, f driver.Factory) drivertest.Config {
	t.Helper()
	cfg := embedded(t, f, broker.Config{User: user, Password: password})
	cfg.User, cfg.Password, cfg.WrongPassword = user, password, "wrong"
	return cfg
}

// Anonymous is the same without a login.
func Anonymous(t testing.TB, f driver.Factory) drivertest.Config {
	t.Helper()
	return embedded(t, f, broker.Config{})
}

func embedded(t testing.TB, f driver.Factory, settings broker.Config) drivertest.Config {
	t.Helper()
	settings.Limits = storetest.Limits()
	b := start(t, f.Name, settings)
	cfg := drivertest.Config{
		Factory: f, URL: url(b, &f), Quiet: 100 * time.Millisecond,
		Inspect: func(t testing.TB, dest driver.Destination) func(n int) []drivertest.Header {
			t.Helper()
			if f.Name == broker.RocketMQ { // whose queues are topics of the store
				dest.Kind = driver.Topic
			}
			return inspect(t, b.Store(), dest)
		},
	}
	storetest.Configure(&cfg, b.Store())
	return cfg
}

// Exchange sends n messages to dest, with a consumer already subscribed, and returns the numbers of messages accepted
// and received.
func Exchange(t testing.TB, d driver.Driver, dest driver.Destination, n int) (accepted, received int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	consumer, err := d.Consumer(ctx,
		driver.ConsumerSpec{Destination: dest, Connection: driver.Connection{Key: "c", Name: "c"}, Name: "c"})
	require.NoError(t, err)
	var taken atomic.Int64
	receiving, stop := context.WithCancel(ctx)
	result := make(chan error, 1)
	go func() {
		result <- consumer.Run(receiving, func(*driver.Delivery) driver.Verdict { taken.Add(1); return driver.Accept })
	}()
	accepted = send(ctx, t, d, dest, n)
	for taken.Load() < int64(accepted) && ctx.Err() == nil {
		<-time.After(10 * time.Millisecond)
	}
	<-time.After(time.Second) // time in which no more may come
	stop()
	require.NoError(t, <-result)
	require.NoError(t, consumer.Close(ctx))
	return accepted, int(taken.Load())
}

// Send sends n messages to dest, each with a time of its own, and returns the number of messages accepted.
func Send(t testing.TB, d driver.Driver, dest driver.Destination, n int) (accepted int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return send(ctx, t, d, dest, n)
}

func send(ctx context.Context, t testing.TB, d driver.Driver, dest driver.Destination, n int) (accepted int) {
	t.Helper()
	var ended atomic.Int64
	// RocketMQ's library gives up after 3 s, too short for thousands in flight on a busy machine.
	free := make(chan driver.Slot, min(n, 100))
	for i := range cap(free) {
		free <- driver.NewSlot(uint32(i), 1) //nolint:gosec // small
	}
	producer, err := d.Producer(ctx, driver.ProducerSpec{
		Destination: dest, Connection: driver.Connection{Key: "p", Name: "p"}, Name: "p",
		MaxPending: cap(free), Variants: []driver.Variant{{Body: make([]byte, 100), Priority: -1}},
	}, driver.DoneFunc(func(slot driver.Slot, o driver.Outcome) {
		if o.State == driver.Accepted {
			ended.Add(1)
		}
		free <- driver.NewSlot(slot.Index(), slot.Generation()+1)
	}))
	require.NoError(t, err)
	first := time.Now().UnixMicro()
	for i := range n {
		select {
		case slot := <-free:
			require.NoError(t, producer.Send(ctx, &driver.Message{Slot: slot, Time: first + int64(i)}))
		case <-ctx.Done():
			require.FailNowf(t, "timeout", "%d messages of %d were sent", i, n)
		}
	}
	require.NoError(t, producer.Close(ctx))
	return int(ended.Load())
}

func start(t testing.TB, protocol string, settings broker.Config) *broker.Broker {
	t.Helper()
	settings.Listen = map[string]string{protocol: "127.0.0.1:0"}
	b, err := broker.Start(settings)
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func url(b *broker.Broker, f *driver.Factory) string { return f.Schemes[0] + "://" + b.Addr(f.Name) }

// inspect reads messages from the store itself.
func inspect(t testing.TB, s *store.Store, dest driver.Destination) func(n int) []drivertest.Header {
	t.Helper()
	more := make(chan struct{}, 1)
	notify := func() {
		select {
		case more <- struct{}{}:
		default:
		}
	}
	var consumer *store.Consumer
	var err error
	if dest.Kind == driver.Topic {
		consumer, err = s.Subscribe(dest.Name, store.Subscription{}, notify)
	} else {
		consumer, err = s.ConsumeQueue(dest.Name, nil, notify)
	}
	require.NoError(t, err)
	t.Cleanup(func() { consumer.Close(false) })
	return func(n int) []drivertest.Header {
		var list []drivertest.Header
		deadline := time.After(timeout)
		for len(list) < n {
			buf := make([]store.Delivery, n-len(list))
			took := consumer.Take(buf)
			for _, d := range buf[:took] {
				list = append(list, header(d.Message))
				consumer.Settle(d.ID, store.Accepted)
			}
			if took > 0 {
				continue
			}
			select {
			case <-more:
			case <-deadline:
				require.FailNowf(t, "timeout", "%d messages of %d came to the store", len(list), n)
			}
		}
		return list
	}
}

func header(m *store.Message) drivertest.Header {
	h := drivertest.Header{
		Properties: map[string]string{}, Priority: int(m.Priority), Persistent: m.Durable, Group: m.Group,
	}
	if m.Expires > 0 {
		h.TTL = time.Until(time.UnixMilli(m.Expires))
	}
	h.Text = m.Content.Text()
	for _, p := range m.Content.Properties() {
		if text, ok := p.Value.(string); ok {
			h.Properties[p.Key] = text
		}
	}
	return h
}
