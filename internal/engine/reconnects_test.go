package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// losing is a driver that connects again by itself: after so many messages there is no broker any more, and each send
// ends after a while in that way.
func losing(b *mem.Broker, after int64, took time.Duration, end driver.Outcome) driver.Factory {
	f := (&hooks{wrap: func(_ driver.ProducerSpec, p driver.Producer, done driver.Completions) driver.Producer {
		return &losingProducer{Producer: p, after: after, took: took, end: end, done: done}
	}}).factory(b.Factory())
	f.Capabilities.Reconnects = true
	return f
}

type losingProducer struct {
	driver.Producer
	after int64
	took  time.Duration
	end   driver.Outcome
	done  driver.Completions
	sent  atomic.Int64
}

func (p *losingProducer) Send(ctx context.Context, m *driver.Message) error {
	if p.sent.Add(1) <= p.after {
		return p.Producer.Send(ctx, m)
	}
	slot := m.Slot
	time.AfterFunc(p.took, func() { p.done.Done(slot, p.end) })
	return nil
}

// If the broker of a client that reconnects by itself dies for good, the run ends; messages sent without a broker are
// counted by their outcome.
func TestBrokerGoneFromAClientThatConnectsAgain(t *testing.T) {
	timeout := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	refused := driver.Outcome{State: driver.Failed, Class: driver.ClassConnect, Err: driver.Errorf(driver.ClassConnect, "send", "is the broker running?", "refused")}
	tests := []struct {
		name   string
		edit   func(*flat)
		took   time.Duration
		end    driver.Outcome
		reason string
		lasts  time.Duration
	}{
		{name: "no answer", took: 3 * time.Second, end: timeout, reason: "no answer", lasts: 11 * time.Second},
		{name: "nobody there", took: 100 * time.Millisecond, end: refused, reason: "no answer", lasts: 11 * time.Second},
		{
			name: "with a duration it is awaited", took: 100 * time.Millisecond, end: refused,
			edit: func(p *flat) { p.Count, p.Duration = 0, time.Minute }, reason: "duration reached", lasts: time.Minute,
		},
		{
			name: "the rest of the count fails", took: 100 * time.Millisecond, end: refused,
			edit: func(p *flat) { p.Count = 120 }, reason: "message count reached", lasts: 7 * time.Second,
		},
		{
			name: "an answer is a sign of life", took: 100 * time.Millisecond, end: driver.Outcome{State: driver.Failed, Class: driver.ClassFull},
			edit: func(p *flat) { p.Count = 300 }, reason: "message count reached", lasts: 25 * time.Second,
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			s, _ := run(t, newPlan(losing(broker(t, nil), 50, tt.took, tt.end), func(p *flat) {
				p.Count, p.MaxPending = 1_000_000, 1
			}, tt.edit), nil)
			require.Contains(t, s.Outcome.Reason, tt.reason)
			require.InDelta(t, tt.lasts, lasted(s), float64(5*time.Second))
			require.False(t, s.Outcome.Success)
			require.EqualValues(t, 50, s.Total.Get(result.Completed))
			require.EqualValues(t, 50, s.Total.Get(result.Received))
			require.InDelta(t, s.Total.Get(result.Sent)-50, s.Total.OfClass(tt.end.Class.String()), 1, "failures of the class %s, but for a message that ends with the run", tt.end.Class)
			require.Positive(t, s.Total.OfClass(tt.end.Class.String()))
			if tt.end.Err != nil {
				require.Contains(t, strings.Join(s.Problems(), "\n"), "refused")
			}
		})
	}
}
