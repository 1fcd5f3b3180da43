package engine_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
)

const proof = 3 * time.Second // for which the drain of a verified run continues

// away is a driver that connects again by itself: its consumers receive nothing from a time on, and again after another
// one; times are since the factory was made.
type away struct {
	from, until time.Duration
	begun       time.Time
}

func (a *away) factory(b *mem.Broker) driver.Factory {
	a.begun = time.Now()
	f := b.Factory()
	f.Capabilities.Reconnects = true
	open := f.Open
	f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
		d, err := open(ctx, o)
		return &awayDriver{d, a}, err
	}
	return f
}

// wait waits while the consumers are away. The error is that of ctx.
func (a *away) wait(ctx context.Context) error {
	passed := time.Since(a.begun)
	if passed < a.from || passed >= a.until {
		return ctx.Err()
	}
	select {
	case <-time.After(a.until - passed):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type awayDriver struct {
	driver.Driver
	away *away
}

func (d *awayDriver) Consumer(ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
	c, err := d.Driver.Consumer(ctx, s)
	return &awayConsumer{c, d.away}, err
}

type awayConsumer struct {
	driver.Consumer
	away *away
}

func (c *awayConsumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	return c.Consumer.Run(ctx, func(m *driver.Delivery) driver.Verdict {
		if c.away.wait(ctx) != nil {
			return driver.Release
		}
		return deliver(m)
	})
}

func (c *awayConsumer) Probe(ctx context.Context) error {
	if err := c.away.wait(ctx); err != nil {
		return err
	}
	return c.Consumer.(driver.Prober).Probe(ctx)
}

// What a broker holds is not lost because a client that connects again by itself takes longer for it than the drain.
func TestDrainOfAClientThatConnectsAgain(t *testing.T) {
	const load = 10 * time.Second
	tests := []struct {
		name    string
		away    away
		options func(*mem.Options)
		edit    func(*flat)
		lasts   time.Duration // of the drain
		missing string        // the problem; empty for success
	}{
		{name: "it comes back", away: away{from: 9 * time.Second, until: 11 * time.Second}, lasts: time.Second},
		{
			name: "it does not come back", away: away{from: 9 * time.Second, until: time.Hour}, lasts: drainTimeout + proof,
			missing: "messages not received when the drain ended",
		},
		{
			name: "the broker loses messages", options: func(o *mem.Options) { o.Lose = 100 }, lasts: drainTimeout,
			missing: "messages lost, accepted by the broker but never received: 10 of 1000",
		},
		{
			name: "no drain was asked for", away: away{from: 9 * time.Second, until: time.Hour},
			edit: func(p *flat) { p.DrainTimeout = 0 }, missing: "messages not received when the drain ended",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlan(tt.away.factory(broker(t, tt.options)), func(p *flat) {
					p.Duration, p.Rate, p.MaxPending, p.Verify = load, rate("100"), 100, true
					if tt.edit != nil {
						tt.edit(p)
					}
				})
				s, err := carryOut(t.Context(), nil, p, new(recorder))
				require.NoError(t, err)
				require.InDelta(t, load+tt.lasts, s.End.Sub(s.Start), float64(1500*time.Millisecond))
				require.EqualValues(t, 1000, s.Total.Completed)
				require.Equal(t, tt.missing == "", s.Success, s.Problems)
				require.Contains(t, strings.Join(s.Problems, "\n"), tt.missing)
				if v := s.Verification; v != nil && tt.options == nil {
					require.Zero(t, v.Total.Lost, "what the broker holds is not lost")
				}
			})
		})
	}
}

// cutting is a driver that connects again by itself: the messages of these numbers, from 1 on, end without an answer as
// their connection is lost.
func cutting(b *mem.Broker, numbers ...int) driver.Factory {
	f := b.Factory()
	f.Capabilities.Reconnects = true
	open := f.Open
	f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
		d, err := open(ctx, o)
		return &cuttingDriver{d, numbers}, err
	}
	return f
}

type cuttingDriver struct {
	driver.Driver
	numbers []int
}

func (d *cuttingDriver) Producer(ctx context.Context, s driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	p, err := d.Driver.Producer(ctx, s, done)
	return &cuttingProducer{p, d.numbers, done, 0}, err
}

type cuttingProducer struct {
	driver.Producer
	numbers []int
	done    driver.Completions
	sent    int
}

func (p *cuttingProducer) Send(ctx context.Context, m *driver.Message) error {
	p.sent++
	for _, n := range p.numbers {
		if n == p.sent {
			p.done.Done(m.Slot, driver.Outcome{
				State: driver.Unknown, Class: driver.ClassConnectionLost,
				Err: driver.Errorf(driver.ClassConnectionLost, "send", "", "broken pipe"),
			})
			return nil
		}
	}
	return p.Producer.Send(ctx, m)
}

// Messages that a client that reconnects by itself left in doubt fail a run, unless they are sent again.
func TestInDoubtOfAClientThatReconnects(t *testing.T) {
	tests := []struct {
		name    string
		cut     []int
		resend  bool
		problem string
	}{
		{name: "unconfirmed", cut: []int{50}, problem: "messages sent but not confirmed (the broker may have them or not): 1"},
		{name: "sent again", cut: []int{50, 100}, resend: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := run(t, newPlan(cutting(broker(t, nil), tt.cut...), func(p *flat) {
					p.Count, p.Rate, p.MaxPending, p.Verify, p.Resend = 100, rate("100"), 1, true, tt.resend
				}), nil)
				require.Empty(t, s.Outages, "nobody knows of them")
				require.NotContains(t, s.Figures, "outage.count")
				if tt.resend {
					require.EqualValues(t, 100, s.Total.Completed)
				} else {
					require.EqualValues(t, len(tt.cut), s.Total.Unconfirmed)
				}
				require.Equal(t, tt.problem == "", s.Success, s.Problems)
				require.Contains(t, strings.Join(s.Problems, "\n"), tt.problem)
			})
		})
	}
}
