package openings_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/openings"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// hesitant is a broker that takes each message after a time, and never answers.
type hesitant struct {
	driver.Driver
	takes        time.Duration
	open, closed atomic.Int64
}

type hesitantProducer struct {
	*hesitant
	done    driver.Completions
	slot    driver.Slot
	sending atomic.Bool
}

func (h *hesitant) Producer(
	_ context.Context, _ driver.ProducerSpec, done driver.Completions,
) (driver.Producer, error) {
	h.open.Add(1)
	return &hesitantProducer{hesitant: h, done: done}, nil
}

func (p *hesitantProducer) Send(ctx context.Context, m *driver.Message) error {
	p.sending.Store(true)
	defer p.sending.Store(false)
	select {
	case <-time.After(p.takes):
		p.slot = m.Slot
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *hesitantProducer) Close(context.Context) error {
	if p.sending.Load() {
		panic("Send is running")
	}
	if p.slot != 0 {
		p.done.Done(p.slot, driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout})
	}
	p.closed.Add(1)
	return nil
}

// TestCloseUnanswered: a connection is closed at the broker when its time is over, even while the broker takes its
// message late and does not answer.
func TestCloseUnanswered(t *testing.T) {
	for _, takes := range []time.Duration{time.Second, 1900 * time.Millisecond, time.Hour} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &hesitant{takes: takes}
				rec := stats.NewConnectionRecorder("")
				rate, err := load.ParseSchedule("10")
				require.NoError(t, err)
				o := openings.New(&openings.Config{
					Driver: b, Clock: load.NewClock(), Phases: new(load.Phases), Rec: rec, Count: 5, Step: 1, AtOnce: 9,
					Patience: 2 * time.Second, Messages: 3, Churn: true, Hold: 10 * time.Millisecond,
					Schedule: rate,
					Spec: func(n uint64) (driver.Connection, *driver.ProducerSpec, *driver.ConsumerSpec) {
						return driver.Connection{Key: fmt.Sprint(n)},
							&driver.ProducerSpec{Variants: []driver.Variant{{Body: []byte("x")}}}, nil
					},
					Within: func(ctx context.Context, open func(context.Context) error) error { return open(ctx) },
				})
				o.Run(t.Context())
				<-time.After(3 * time.Second) // of the bubble: answers that come late
				require.EqualValues(t, 5, rec.Count(result.Opened))
				require.EqualValues(t, 5, rec.Count(result.ConnectionsClosed))
				require.EqualValues(t, 5, b.closed.Load(), "a connection counts as closed, so the broker knows")
				require.EqualValues(t, 5, rec.Count(result.Unconfirmed, result.Failed), "one message of each")
				require.Zero(t, rec.Count(result.Strays), "the broker never answered")
				require.Zero(t, o.Close(t.Context()))
			})
		})
	}
}
