package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// outage is a time in which no worker has a connection, or can make one.
type outage struct{ at, lasts time.Duration }

// through lets the workers connect by a line.
func through(p *flat, line *mem.Line) {
	p.Producer.URL, p.Consumer.URL = line.URL(), line.URL()
}

// TestReconnect: workers reconnect after each outage; schedule, counts and verification continue.
func TestReconnect(t *testing.T) {
	tests := []struct {
		name    string
		edit    func(*flat)
		options func(*mem.Options)
		outages []outage
	}{
		{name: "none"},
		{name: "one", outages: []outage{{2 * time.Second, 2500 * time.Millisecond}}},
		{name: "of no time", outages: []outage{{2 * time.Second, 0}}},
		{name: "three", outages: []outage{{time.Second, time.Second}, {4 * time.Second, 0}, {7 * time.Second, 1500 * time.Millisecond}}},
		{
			name: "many workers", outages: []outage{{2 * time.Second, 500 * time.Millisecond}},
			edit: func(p *flat) { p.Producers, p.Consumers, p.MaxPending = 7, 5, 10 },
		},
		{
			name: "a long one", outages: []outage{{2 * time.Second, 20 * time.Second}},
			edit: func(p *flat) { p.Producers, p.Consumers, p.Duration = 7, 5, 60*time.Second },
		},
		{
			name: "closed loop", outages: []outage{{2 * time.Second, 500 * time.Millisecond}},
			edit: func(p *flat) { p.Rate, p.MaxPending = plan.Rate{}, 3 },
		},
	}
	for _, tt := range tests {
		inBubble(t, tt.name, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = 12 * time.Millisecond }) // three are in flight
			line := b.Line()
			p := newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				verified(p)
				p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("250"), 10*time.Second, 1000
			}, tt.edit)
			began := time.Now()
			for _, o := range tt.outages {
				time.AfterFunc(o.at, func() {
					line.Cut()
					time.Sleep(o.lasts) //nolint:forbidigo // of a fake clock
					line.Restore()
				})
			}
			s, _ := run(t, p, nil)
			require.True(t, s.Outcome.Success, "%q", s.Problems())
			require.Len(t, s.Outages, len(tt.outages))
			var inDoubt uint64
			for i, found := range s.Outages {
				o := inTime(found)
				want := tt.outages[i]
				require.InDelta(t, want.at, o.after(began), float64(2*time.Millisecond))
				require.Empty(t, o.NotBack)
				require.Len(t, o.Workers, p.Producers+p.Consumers)
				for _, came := range []time.Duration{o.Confirmed, o.Received, o.Reconnected} {
					require.GreaterOrEqual(t, came, want.lasts)
					require.Less(t, came, want.lasts+300*time.Millisecond, "one pause at most, and the latency")
				}
				require.GreaterOrEqual(t, o.Back, want.lasts)
				require.Less(t, o.Tried, max(want.lasts, 1))
				require.Less(t, o.Back-o.Tried, 251*time.Millisecond)
				require.Less(t, o.Reconnected-o.Back, 250*time.Millisecond)
				require.Equal(t, driver.ClassConnectionLost.String(), o.Class)
				require.Equal(t, want.lasts >= 500*time.Millisecond, o.Attempts > 0)
				inDoubt += o.InDoubt
			}
			require.Equal(t, s.Total.Get(result.Unconfirmed), inDoubt)
			require.Zero(t, s.Total.Get(result.Failed)+s.Total.Get(result.Unsent))
			require.Equal(t, s.Total.Get(result.Sent), s.Total.Get(result.Completed)+inDoubt)
			if !p.Rate.IsZero() {
				require.EqualValues(t, 250*p.Duration.Seconds(), s.Total.Get(result.Sent), "the schedule goes on, and what was due in an outage is sent after it")
			}
			v := s.Verification.Total
			require.Zero(t, v.Lost+v.Left+v.Damaged)
			require.Equal(t, v.Duplicates, v.AfterOutage)
			require.Equal(t, inDoubt, v.UnconfirmedArrived+v.UnconfirmedMissing)
			require.Equal(t, b.Stats().Stored, v.Received)
			require.Less(t, s.Latencies[result.Ack].Max, int64(20_000), "a message that waits for a connection has not left")
			if len(tt.outages) > 0 && !p.Rate.IsZero() {
				last := tt.outages[0]
				require.GreaterOrEqual(t, s.Latencies[result.Response].Max, last.lasts.Microseconds(), "users would have felt the outage")
			}
		})
	}
}

// TestReconnectGivesUp: in time, and the summary says why.
func TestReconnectGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		line := b.Line()
		time.AfterFunc(time.Second, line.Cut)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			through(p, line)
			p.Reconnect, p.ReconnectTimeout, p.Rate, p.Duration = true, 3*time.Second, rate("100"), time.Minute
		}), nil)
		require.False(t, s.Outcome.Success)
		require.Less(t, lasted(s), 10*time.Second)
		require.ErrorContains(t, s.Err, "not connected again within 3s (--reconnect-timeout)")
		require.Len(t, s.Outages, 1)
		require.Equal(t, []string{"consumer-0", "producer-0"}, s.Outages[0].NotBack)
		require.Contains(t, strings.Join(s.Problems(), "\n"), "2 of 2 workers were not connected (consumer-0, producer-0)")
	})
}

// TestOutageToTheEnd: a run that ends in an outage ends in time and fails.
func TestOutageToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		line := b.Line()
		time.AfterFunc(1005*time.Millisecond, line.Cut)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			through(p, line)
			verified(p)
			p.Reconnect, p.Rate, p.Duration = true, rate("100"), 5*time.Second
		}), nil)
		require.False(t, s.Outcome.Success)
		require.NoError(t, s.Err)
		require.Equal(t, "duration reached", s.Outcome.Reason)
		require.EqualValues(t, 101, s.Total.Get(result.Completed))
		require.Contains(t, strings.Join(s.Problems(), "\n"), "was not over at the end of the run")
		require.Zero(t, s.Verification.Total.Lost)
	})
}

// TestReconnectPauses: pauses between attempts grow up to the longest, however many workers wait.
func TestReconnectPauses(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		delay    time.Duration
		attempts uint64 // that fail in the outage of 1 s
		again    time.Duration
	}{
		{delay: 0, attempts: 4, again: 1050 * ms},
		{delay: 30 * ms, attempts: 33, again: 1020 * ms},
		{delay: time.Second, attempts: 3, again: 1500 * ms},
	} {
		inBubble(t, tt.delay.String(), func(t *testing.T) {
			b := broker(t, nil)
			line := b.Line()
			p := newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				p.Reconnect, p.ReconnectDelay, p.Producers, p.Consumers = true, tt.delay, 2, 2
				p.Rate, p.Duration, p.MaxPending = rate("2000"), 4*time.Second, 1000
			})
			time.AfterFunc(2*time.Second, line.Cut)
			time.AfterFunc(3*time.Second, line.Restore)
			s, _ := run(t, p, nil)
			require.True(t, s.Outcome.Success, "%q", s.Problems())
			require.Len(t, s.Outages, 1)
			o := inTime(s.Outages[0])
			require.Equal(t, tt.attempts, o.Attempts)
			require.GreaterOrEqual(t, o.Reconnected, tt.again)
			require.Less(t, o.Reconnected, tt.again+2*ms)
		})
	}
}

// TestReconnectUnanswered: a consumer to which the broker does not answer in time connects again.
func TestReconnectUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		f := (&hooks{runs: func(ctx context.Context, run func() error) error {
			if runs.Add(1) > 1 {
				return run()
			}
			<-time.After(time.Second)
			return driver.Errorf(driver.ClassTimeout, "list the consumers of the group", "", "no answer")
		}}).factory(broker(t, nil).Factory())
		s, _ := run(t, newPlan(f, verified, func(p *flat) {
			p.Reconnect, p.Rate, p.Duration = true, rate("100"), 5*time.Second
		}), nil)
		require.True(t, s.Outcome.Success, "%q", s.Problems())
		require.Len(t, s.Outages, 1)
		require.Equal(t, driver.ClassTimeout.String(), s.Outages[0].Class)
		require.EqualValues(t, 500, s.Verification.Total.Received)
	})
}

// TestOutagesAndVerification: of lost and doubled messages it is known which outage they belong to.
func TestOutagesAndVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		out, in := b.Line(), b.Line()
		p := newPlan(b.Factory(), func(p *flat) {
			p.Producer.URL, p.Consumer.URL = out.URL(), in.URL()
			verified(p)
			p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("1000"), 12*time.Second, 1000
			p.Producers, p.Consumers = 3, 2
			p.ConsumerWork = load.Work{Mean: 1900 * time.Microsecond}
		})
		var mu sync.Mutex
		var lost []uint64 // by the broker, in each time of losses
		losing := func(from, to time.Duration) {
			var before atomic.Uint64
			time.AfterFunc(from, func() {
				before.Store(b.Stats().Lost)
				o := mem.Options{}
				o.Lose = 1
				b.Set(o)
			})
			time.AfterFunc(to, func() {
				b.Set(mem.Options{})
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, b.Stats().Lost-before.Load())
			})
		}
		cut := func(at time.Duration, lines ...*mem.Line) {
			time.AfterFunc(at, func() {
				for _, l := range lines {
					l.Cut()
					time.AfterFunc(500*time.Millisecond, l.Restore)
				}
			})
		}
		losing(1900*time.Millisecond, 2000*time.Millisecond)
		cut(2*time.Second, out)
		losing(4450*time.Millisecond, 4500*time.Millisecond)
		cut(4500*time.Millisecond+300*time.Microsecond, in)
		cut(7*time.Second+300*time.Microsecond, in, out)
		losing(9*time.Second, 9030*time.Millisecond) // of no outage

		s, _ := run(t, p, nil)
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, s.Outages, 3)
		require.Len(t, lost, 3)
		for i, want := range []uint64{lost[0], lost[1], 0} {
			require.InDelta(t, want, s.Outages[i].Lost, 0, "outage %d", i)
		}
		for _, n := range lost {
			require.NotZero(t, n)
		}
		v := &s.Verification.Total
		require.Equal(t, lost[0]+lost[1]+lost[2], v.Lost)
		require.NotZero(t, s.Outages[1].Doubled)
		require.Zero(t, s.Outages[0].Doubled, "no consumer lost its connection")
		require.Equal(t, v.AfterOutage, s.Outages[1].Doubled+s.Outages[2].Doubled)
	})
}

// parting is a driver that loses its connection at a message. The message before it is in flight then, and ends when
// closing times out.
func parting(b *mem.Broker, at int64, took time.Duration) driver.Factory {
	return (&hooks{wrap: func(_ driver.ProducerSpec, p driver.Producer, done driver.Completions) driver.Producer {
		return &partingProducer{Producer: p, at: at, took: took, done: done}
	}}).factory(b.Factory())
}

type partingProducer struct {
	driver.Producer
	at   int64
	took time.Duration
	done driver.Completions
	sent int64
	held driver.Slot
}

func (p *partingProducer) Send(ctx context.Context, m *driver.Message) error {
	p.sent++
	switch {
	case p.sent == p.at-1:
		p.held = m.Slot
		return nil
	case p.sent >= p.at:
		return driver.Errorf(driver.ClassConnectionLost, "send", "", "the connection was lost")
	}
	return p.Producer.Send(ctx, m)
}

func (p *partingProducer) Close(ctx context.Context) error {
	if p.held != 0 {
		<-time.After(p.took)
		p.done.Done(p.held, driver.Outcome{State: driver.Unknown, Class: driver.ClassConnectionLost})
	}
	return p.Producer.Close(context.WithoutCancel(ctx))
}

// TestLostAtTheEnd: a run that ends while a lost connection is being closed waits for that, so that its messages have an
// end.
func TestLostAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := run(t, newPlan(parting(broker(t, nil), 200, 2400*time.Millisecond), func(p *flat) {
			p.Producer.ConnectTimeout, p.Consumer.ConnectTimeout = 2*time.Second, 2*time.Second
			p.Reconnect, p.Rate, p.Duration, p.MaxPending, p.DrainTimeout = true, rate("100"), 2*time.Second, 10, 100*time.Millisecond
		}), nil)
		require.False(t, s.Outcome.Success)
		require.Empty(t, s.Outcome.LeftBehind)
		require.EqualValues(t, 1, s.Total.Get(result.Unconfirmed))
		require.NotContains(t, strings.Join(s.Problems(), "\n"), "of unknown end")
	})
}

// TestWaitsOfABlindClient: a client that does not report its waits takes 50 ms for a message. The messages due meanwhile
// leave late because of that, also if its lost connections are replaced.
func TestWaitsOfABlindClient(t *testing.T) {
	for _, reconnect := range []bool{false, true} {
		inBubble(t, fmt.Sprint(reconnect), func(t *testing.T) {
			f := (&hooks{send: func(_ context.Context, send func() error) error {
				pass(50 * time.Millisecond)
				return send()
			}}).factory(broker(t, nil).Factory())
			s, _ := run(t, newPlan(f, func(p *flat) {
				p.Reconnect, p.Rate, p.Count, p.MaxPending = reconnect, rate("100"), 100, 100
			}), nil)
			require.Zero(t, s.Total.Get(result.LateSends))
		})
	}
}

// TestOutagesThatAbort: a demand on outages ends the run as soon as it cannot be kept any more, also while one lasts.
func TestOutagesThatAbort(t *testing.T) {
	for _, tt := range []struct {
		demand string
		lasts  time.Duration
		ends   time.Duration // 0 if it does not abort
	}{
		{"outage.count == 0", 500 * time.Millisecond, 3 * time.Second},
		{"outage.count <= 1", 500 * time.Millisecond, 0},
		{"outage.max < 2s", 500 * time.Millisecond, 0},
		{"outage.max < 2s", 30 * time.Second, 5 * time.Second},
		{"recovery.max < 10ms", 3 * time.Second, 9 * time.Second},
		{"in_doubt == 0", time.Second, 4 * time.Second},
	} {
		inBubble(t, tt.demand, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Latency = 50 * time.Millisecond })
			line := b.Line()
			p := newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("1000"), 20*time.Second, 1000
				p.Plan.Thresholds = aborting(t, tt.demand)
			})
			time.AfterFunc(2500*time.Millisecond, line.Cut)
			restore := time.AfterFunc(2500*time.Millisecond+tt.lasts, line.Restore)
			defer restore.Stop()
			s, _ := run(t, p, nil)
			require.Equal(t, tt.ends > 0, s.Outcome.Aborted, s.Outcome.Reason)
			require.Equal(t, tt.ends == 0, s.Thresholds[0].Kept, s.Thresholds[0].String())
			if s.Outcome.Aborted {
				require.Contains(t, s.Outcome.Reason, tt.demand)
				require.Less(t, s.Latencies[result.Ack].Count, int64(1000*tt.ends.Seconds()+100))
			}
		})
	}
}

// TestReconnectStorm: how many workers came back, how long their logins took, and the most of them in a second: all at
// once, sixteen at a time, or spread over a time by the seed.
func TestReconnectStorm(t *testing.T) {
	const workers = 320
	storm := func(t *testing.T, seed uint64, spread time.Duration) (o result.Outage) {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(o *mem.Options) { o.Connect, o.Login = time.Millisecond, 99*time.Millisecond })
			line := b.Line()
			time.AfterFunc(8*time.Second, func() {
				line.Cut()
				time.AfterFunc(time.Second, line.Restore)
			})
			s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
				through(p, line)
				p.Reconnect, p.ReconnectSpread, p.Seed = true, spread, seed
				p.Producers, p.Consumers, p.Rate, p.Duration, p.MaxPending = workers-1, 1, rate("640"), 25*time.Second, 10_000
			}), nil)
			require.True(t, s.Outcome.Success, s.Problems())
			require.Len(t, s.Outages, 1)
			o = s.Outages[0]
			require.Len(t, o.Workers, workers)
			const probes = 4 // at the same moment: their workers may connect twice
			require.InDelta(t, workers, o.Logins, probes)
			require.EqualValues(t, 99_000, o.LoginP99)
			require.InDelta(t, 2*workers, s.Latencies[result.Login].Count, probes, "those of the begin, too")
			require.InDelta(t, 2*workers, s.Latencies[result.Open].Count, probes)
			text := fmt.Sprintf("%d workers connected again after ", workers)
			require.Contains(t, words.Outage(&o), text)
			require.Contains(t, words.Outage(&o), fmt.Sprintf("; login p99 99.0 ms, at most %d logins a second", o.LoginRate))
			f := s.Findings[slices.IndexFunc(s.Findings, func(f result.Finding) bool { return f.Kind == "opened" })]
			require.Equal(t, "opened 320 workers in 2.1 s (connect p99 1.00 ms, login p99 99.0 ms, attach p99 0 µs)", f.Text)
		})
		return o
	}
	at := storm(t, 1, 0)
	require.InDelta(t, 160, at.LoginRate, 16, "sixteen at a time, of 100 ms")
	require.Less(t, inTime(at).Reconnected, 4*time.Second)

	spread := storm(t, 1, 10*time.Second)
	require.Less(t, spread.LoginRate, uint64(60), "32 on average")
	require.InDelta(t, 11*time.Second, inTime(spread).Reconnected, float64(500*time.Millisecond))
	again := storm(t, 1, 10*time.Second)
	require.InDelta(t, spread.Reconnected, again.Reconnected, 200_000, "the same seed, unless the last worker is the one that probes")
	require.NotEqual(t, spread.Reconnected, storm(t, 2, 10*time.Second).Reconnected)
}
