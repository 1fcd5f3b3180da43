package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// closeTo is the largest excess of a reported outage length.
const closeTo = 600 * time.Millisecond

// twoHosts is a driver for two hosts, each behind a line. Silent hosts never answer attempts that begin while they are
// away.
type twoHosts struct {
	lines    [2]*mem.Line
	silent   bool
	away     [2]atomic.Bool
	attempts [2]atomic.Int64 // while away
}

func (h *twoHosts) cut(i int)     { h.away[i].Store(true); h.lines[i].Cut() }
func (h *twoHosts) restore(i int) { h.away[i].Store(false); h.lines[i].Restore() }

func (h *twoHosts) factory(b *mem.Broker) driver.Factory {
	h.lines = [2]*mem.Line{b.Line(), b.Line()}
	f := b.Factory()
	open := f.Open
	f.Hosts = func(string) []string { return []string{"one", "two"} }
	f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
		d := &twoHostsDriver{h: h}
		for i := range d.at {
			var err error
			o.URL = h.lines[i].URL()
			if d.at[i], err = open(ctx, o); err != nil {
				return nil, err
			}
		}
		return d, nil
	}
	return f
}

type twoHostsDriver struct {
	driver.Driver
	h  *twoHosts
	at [2]driver.Driver
}

func (d *twoHostsDriver) Close(ctx context.Context) error {
	return errorsOf(d.at[0].Close(ctx), d.at[1].Close(ctx))
}

func errorsOf(list ...error) error {
	return list[max(0, slices.IndexFunc(list, func(err error) bool { return err != nil }))]
}

// first opens something at the first host of the order that answers.
func first[T any](ctx context.Context, h *twoHosts, order []int, open func(i int) (T, error)) (opened T, at int, err error) {
	if len(order) == 0 {
		order = []int{0, 1}
	}
	for _, at = range order {
		if h.away[at].Load() {
			h.attempts[at].Add(1)
			if h.silent {
				<-ctx.Done()
				return opened, at, driver.Errorf(driver.ClassConnect, "connect", "", "%w", ctx.Err())
			}
		}
		if opened, err = open(at); err == nil {
			break
		}
	}
	return opened, at, err
}

func (d *twoHostsDriver) Producer(ctx context.Context, s driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	order := s.Connection.Order
	s.Connection.Order = nil
	p, at, err := first(ctx, d.h, order, func(i int) (driver.Producer, error) { return d.at[i].Producer(ctx, s, done) })
	return &locatedProducer{p, d.h.name(at)}, err
}

func (d *twoHostsDriver) Consumer(ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
	order := s.Connection.Order
	s.Connection.Order = nil
	c, at, err := first(ctx, d.h, order, func(i int) (driver.Consumer, error) { return d.at[i].Consumer(ctx, s) })
	return &locatedConsumer{c, d.h.name(at)}, err
}

func (h *twoHosts) name(i int) string { return []string{"one", "two"}[i] }

type (
	locatedProducer struct {
		driver.Producer
		host string
	}
	locatedConsumer struct {
		driver.Consumer
		host string
	}
)

func (p *locatedProducer) Host() string { return p.host }
func (c *locatedConsumer) Host() string { return c.host }

// TestLengthOfOutages: the reported length of an outage is exact for refusing and silent hosts and any number of
// workers; workers share the probes.
func TestLengthOfOutages(t *testing.T) {
	for _, lasts := range []time.Duration{500 * time.Millisecond, 6 * time.Second, 30 * time.Second} {
		for _, workers := range []int{1, 40} {
			for _, silent := range []bool{false, true} {
				inBubble(t, fmt.Sprintf("%v, %d workers a side, silent %v", lasts, workers, silent), func(t *testing.T) {
					h := &twoHosts{silent: silent}
					p := newPlan(h.factory(broker(t, func(o *mem.Options) { o.Latency = 3 * time.Millisecond })), verified, func(p *flat) {
						p.Producers, p.Consumers = workers, workers
						p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("200"), lasts+10*time.Second, 100
						p.Producer.ConnectTimeout, p.Consumer.ConnectTimeout = 10*time.Second, 10*time.Second
					})
					began := time.Now()
					const at = 2003 * time.Millisecond
					time.AfterFunc(at, func() { h.cut(0); h.cut(1) })
					time.AfterFunc(at+lasts, func() { h.restore(0); h.restore(1) })
					s, _ := run(t, p, nil)
					require.True(t, s.Outcome.Success, "%q", s.Problems())
					require.Len(t, s.Outages, 1)
					o := inTime(s.Outages[0])
					require.InDelta(t, at, o.after(began), float64(2*time.Millisecond))
					for _, came := range []time.Duration{o.Length, o.Back, o.Confirmed, o.Received, o.Reconnected} {
						require.GreaterOrEqual(t, came, lasts-2*time.Millisecond)
						require.Less(t, came, lasts+closeTo)
					}
					require.LessOrEqual(t, o.Tried, lasts)
					require.GreaterOrEqual(t, o.Recovered, max(o.Confirmed, o.Received), "the load recovers after the first message")
					require.Len(t, o.Workers, 2*workers)
					for i := range h.attempts {
						require.LessOrEqual(t, h.attempts[i].Load(), int64(lasts/(250*time.Millisecond))+3, "attempts at a host that was away")
					}
				})
			}
		}
	}
}

// TestLengthOfOutagesOfHosts: each host is probed by itself. A host that is away for longer, and says nothing, does not
// keep workers from the other.
func TestLengthOfOutagesOfHosts(t *testing.T) {
	const never = time.Hour
	for _, tt := range []struct {
		name  string
		hosts plan.HostOrder
		lasts [2]time.Duration // of each host
		want  time.Duration
		moved bool // all workers are at the second host in the end
	}{
		{"the first one dies", plan.InOrder, [2]time.Duration{never, 0}, 0, true},
		{"the second one dies", plan.Spread, [2]time.Duration{0, never}, 0, false},
		{"the other comes back first", plan.Spread, [2]time.Duration{20 * time.Second, 6 * time.Second}, 6 * time.Second, true},
		{"the first comes back first", plan.InOrder, [2]time.Duration{6 * time.Second, 20 * time.Second}, 6 * time.Second, false},
		{"the first stays away", plan.InOrder, [2]time.Duration{never, 6 * time.Second}, 6 * time.Second, true},
	} {
		for _, silent := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s, silent %v", tt.name, silent), func(t *testing.T) {
				h := &twoHosts{silent: silent}
				p := newPlan(h.factory(broker(t, nil)), func(p *flat) {
					p.Producers, p.Consumers, p.Hosts = 4, 4, tt.hosts
					p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("200"), 30*time.Second, 1000
					p.Producer.ConnectTimeout, p.Consumer.ConnectTimeout = 10*time.Second, 10*time.Second
				})
				for i, lasts := range tt.lasts {
					if lasts > 0 {
						time.AfterFunc(2*time.Second, func() { h.cut(i) })
						defer time.AfterFunc(2*time.Second+lasts, func() { h.restore(i) }).Stop()
					}
				}
				s, _ := run(t, p, nil)
				require.True(t, s.Outcome.Success, "%q", s.Problems())
				require.Len(t, s.Outages, 1)
				o := inTime(s.Outages[0])
				require.GreaterOrEqual(t, o.Reconnected, tt.want)
				require.Less(t, o.Reconnected, tt.want+2*closeTo, "a silent host is given half a second before the next is tried")
				if tt.hosts == plan.InOrder {
					require.GreaterOrEqual(t, o.Length, tt.want)
				}
				for _, w := range s.Workers {
					last := w.BrokerHosts[len(w.BrokerHosts)-1]
					require.Equal(t, tt.moved, last == "two", "%s is at host %s", w.Name, last)
				}
			})
		}
	}
}

// TestLastTry: a run that ends in a pause tries once more at once.
func TestLastTry(t *testing.T) {
	for _, back := range []bool{true, false} {
		inBubble(t, fmt.Sprintf("back %v", back), func(t *testing.T) {
			h := &twoHosts{}
			p := newPlan(h.factory(broker(t, nil)), func(p *flat) {
				p.Producers, p.Consumers, p.Reconnect, p.ReconnectDelay = 20, 20, true, 10*time.Second
				p.Rate, p.Duration = rate("1000"), 10*time.Second
			})
			time.AfterFunc(2*time.Second, func() { h.cut(0); h.cut(1) })
			if back { // after the attempts of 0.1, 0.3, 0.7, 1.5, 3.1 and 6.3 s
				time.AfterFunc(9*time.Second, func() { h.restore(0); h.restore(1) })
			}
			s, _ := run(t, p, nil)
			require.Len(t, s.Outages, 1)
			o := inTime(s.Outages[0])
			require.Equal(t, back, len(o.NotBack) == 0, "%v are not connected again", o.NotBack)
			if back {
				require.Equal(t, 8*time.Second, o.Back)
			}
			require.LessOrEqual(t, h.attempts[0].Load()+h.attempts[1].Load(), int64(16), "not one of each worker")
		})
	}
}

// TestYoungConnections: a broker that accepts connections and ends them at once is not asked all the time.
func TestYoungConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened atomic.Int64
		h := &hooks{producer: func(context.Context) error { opened.Add(1); return nil }}
		h.send = func(ctx context.Context, send func() error) error {
			if n := opened.Load(); n > 1 && n < 40 {
				return driver.Errorf(driver.ClassClosedByBroker, "send", "", "not now")
			}
			if opened.Load() == 1 && ctx.Err() == nil {
				opened.Add(1)
				return driver.Errorf(driver.ClassClosedByBroker, "send", "", "not now")
			}
			return send()
		}
		s, _ := run(t, newPlan(h.factory(broker(t, nil).Factory()), func(p *flat) {
			p.Reconnect, p.Rate, p.Duration = true, rate("100"), 20*time.Second
		}), nil)
		require.Len(t, s.Outages, 1)
		require.Greater(t, us(s.Outages[0].Length), 38*235*time.Millisecond)
	})
}

// TestSlowOpening: workers that a broker is slow to accept, once it is back, have one attempt each: members of a consumer
// group wait for each other, and a second attempt would be one more member.
func TestSlowOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Bool
		var attempts, accepted atomic.Int64
		h := &hooks{consumer: func(ctx context.Context) error {
			if !back.Load() {
				return nil
			}
			attempts.Add(1)
			select {
			case <-time.After(7 * time.Second):
				accepted.Add(1)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		b := broker(t, nil)
		line := b.Line()
		p := newPlan(h.factory(b.Factory()), func(p *flat) {
			p.Producers, p.Consumers, p.Reconnect, p.Rate, p.Duration = 4, 4, true, rate("1000"), 20*time.Second
			p.Producer.URL, p.Consumer.URL = line.URL(), line.URL()
			p.Producer.ConnectTimeout, p.Consumer.ConnectTimeout = 10*time.Second, 10*time.Second
		})
		time.AfterFunc(2*time.Second, line.Cut)
		time.AfterFunc(4*time.Second, func() { back.Store(true); line.Restore() })
		s, _ := run(t, p, nil)
		require.Len(t, s.Outages, 1)
		require.Empty(t, s.Outages[0].NotBack)
		require.Less(t, us(s.Outages[0].Length), 2*time.Second+closeTo, "the producers are not kept from the broker")
		require.Less(t, us(s.Outages[0].Reconnected), 9*time.Second+closeTo)
		require.EqualValues(t, 4, accepted.Load())
		require.LessOrEqual(t, attempts.Load(), int64(8), "at most one that gives way to the one that follows")
	})
}
