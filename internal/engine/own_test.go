package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// The born and stored times of a protocol: the message was made 7 ms before it was sent, and stored when it was.
func TestAges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.DeliveryLatency = 20 * time.Millisecond })
		f := delivering(b.Factory(), func(_ driver.ConsumerSpec, d *driver.Delivery, deliver func(*driver.Delivery)) {
			d.Born, d.Stored = d.Time-7000, d.Time
			deliver(d)
		})
		s, rep := run(t, newPlan(f, func(p *flat) {
			p.Rate, p.Duration, p.Warmup = rate("100"), 3*time.Second, time.Second
		}), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.Equal(t, s.Latencies[result.Transfer].Count, s.Latencies[result.B2C].Count)
		require.Equal(t, s.Latencies[result.Transfer].Count, s.Latencies[result.S2C].Count)
		require.InDelta(t, 27_000, s.Latencies[result.B2C].Mean(), 1)
		require.InDelta(t, 20_000, s.Latencies[result.S2C].Mean(), 1)
		var all int64
		for _, snap := range rep.snapshots {
			for _, l := range []*result.Latencies{&snap.Latencies, snap.Leftover} {
				if l != nil && l[result.B2C] != nil {
					all += l[result.B2C].Count
				}
			}
		}
		require.EqualValues(t, s.Total.Get(result.Received), all)
		require.Empty(t, aboutTheLoad(s.Warnings()))

		s, _ = run(t, newPlan(mem.New().Factory(), func(p *flat) { p.Rate, p.Count = rate("100"), 10 }), nil)
		require.Nil(t, s.Latencies[result.B2C])
		require.Nil(t, s.Counters)
	})
}

// countingProducer counts its messages, to report them as a counter of its protocol.
type countingProducer struct {
	driver.Producer
	sent   atomic.Uint64
	closed atomic.Bool
}

func (p *countingProducer) Close(ctx context.Context) error {
	p.closed.Store(true)
	return p.Producer.Close(ctx)
}

func (p *countingProducer) Send(ctx context.Context, m *driver.Message) error {
	p.sent.Add(1)
	return p.Producer.Send(ctx, m)
}

func (p *countingProducer) Counters() []driver.Counter {
	list := []driver.Counter{{Name: "sends", Value: p.sent.Load()}, {Name: "closes"}}
	if p.closed.Load() {
		list[1].Value = 1
	}
	return list
}

func TestProtocolCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := (&hooks{wrap: func(_ driver.ProducerSpec, p driver.Producer, _ driver.Completions) driver.Producer {
			return &countingProducer{Producer: p}
		}}).factory(mem.New().Factory())
		s, rep := run(t, newPlan(f, func(p *flat) { p.Producers, p.Count, p.Rate = 3, 250, rate("100") }), nil)
		require.True(t, s.Outcome.Success, s.Problems())
		require.Equal(t, []driver.Counter{{Name: "sends", Value: 250}, {Name: "closes", Value: 3}}, s.Counters,
			"of all three, read after they were closed")
		require.InDelta(t, 100, rep.snapshots[0].Protocol[0].Value, 1)
		require.InDelta(t, 200, rep.snapshots[1].Protocol[0].Value, 1)
		require.Equal(t, result.Measure, rep.snapshots[1].Phase)
	})
}

// heirProducer counts open messages. It takes the count of the producer before over.
type heirProducer struct {
	driver.Producer
	open atomic.Uint64
}

func (p *heirProducer) Send(ctx context.Context, m *driver.Message) error {
	err := p.Producer.Send(ctx, m)
	if err == nil {
		p.open.Add(1)
	}
	return err
}

func (p *heirProducer) Counters() []driver.Counter {
	return []driver.Counter{{Name: "open", Value: p.open.Load()}}
}

// A count that a new connection takes over is counted once.
func TestCountersOfALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := mem.New()
		time.AfterFunc(495*time.Millisecond, b.Disconnect)
		var before *heirProducer
		f := (&hooks{wrap: func(_ driver.ProducerSpec, opened driver.Producer, _ driver.Completions) driver.Producer {
			p := &heirProducer{Producer: opened}
			if before != nil {
				p.open.Store(before.open.Swap(0))
			}
			before = p
			return p
		}}).factory(b.Factory())
		s, _ := run(t, newPlan(f, func(p *flat) { p.Count, p.Rate, p.Reconnect = 100, rate("100"), true }), nil)
		require.Len(t, s.Outages, 1)
		require.Equal(t, []driver.Counter{{Name: "open", Value: 100}}, s.Counters)
	})
}

// aboutTheLoad leaves out warnings about perfmq itself: machines that run tests are busy.
func aboutTheLoad(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool {
		return strings.Contains(w, "perfmq") || strings.HasPrefix(w, "messages sent late")
	})
}
