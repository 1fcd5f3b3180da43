package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// outage is a time in which no worker has a connection, or can make one.
type outage struct{ at, lasts time.Duration }

// through lets the workers connect by a line.
func through(p *flat, line *mem.Line) {
	p.Producer.Open.URL, p.Consumer.Open.URL = line.URL(), line.URL()
}

// TestReconnect: the workers come back after each outage; the schedule, the counts and the verification go on, and the
// outages are those that there were.
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
			edit: func(p *flat) { p.Rate, p.MaxPending = load.Schedule{}, 3 },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker(t, func(o *mem.Options) { o.Latency = 3 * time.Millisecond })
				line := b.Line()
				p := newPlan(b.Factory(), func(p *flat) {
					through(p, line)
					verified(p)
					p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("1000"), 10*time.Second, 1000
					if tt.edit != nil {
						tt.edit(p)
					}
				})
				began := time.Now()
				for _, o := range tt.outages {
					time.AfterFunc(o.at, func() {
						line.Cut()
						time.Sleep(o.lasts) //nolint:forbidigo // of a fake clock
						line.Restore()
					})
				}
				s, _ := run(t, p, nil)
				require.True(t, s.Success, "%q", s.Problems)
				require.Len(t, s.Outages, len(tt.outages))
				var inDoubt uint64
				for i, o := range s.Outages {
					want := tt.outages[i]
					require.InDelta(t, want.at, o.Start.Sub(began), float64(2*time.Millisecond))
					require.Empty(t, o.NotBack)
					require.Len(t, o.Workers, p.Producers+p.Consumers)
					// Pauses double from 0.1 s on, each shortened by half at most: the last is at most twice as long as the outage,
					// and 0.1 s.
					for _, came := range []time.Duration{o.Confirmed, o.Received, o.Reconnected} {
						require.GreaterOrEqual(t, came, want.lasts)
						require.Less(t, came, 3*want.lasts+200*time.Millisecond)
					}
					require.Less(t, o.Reconnected-o.Length(), 200*time.Millisecond, "the others need not wait for the ends of their pauses")
					require.Equal(t, driver.ClassConnectionLost, o.Class)
					require.Equal(t, want.lasts >= 500*time.Millisecond, o.Attempts > 0)
					inDoubt += o.InDoubt
				}
				require.Equal(t, s.Total.Unconfirmed, inDoubt)
				require.Zero(t, s.Total.Failed+s.Total.Unsent)
				require.Equal(t, s.Total.Sent, s.Total.Completed+inDoubt)
				if !p.Rate.IsZero() {
					require.EqualValues(t, 1000*p.Duration.Seconds(), s.Total.Sent, "the schedule goes on, and what was due in an outage is sent after it")
				}
				v := s.Verification.Total
				require.Zero(t, v.Lost+v.Left+v.Damaged)
				require.Equal(t, v.Duplicates, v.AfterOutage)
				require.Equal(t, inDoubt, v.UnconfirmedArrived+v.UnconfirmedMissing)
				require.Equal(t, b.Stats().Stored, v.Received+b.Stats().Purged)
				if len(tt.outages) > 0 && !p.Rate.IsZero() {
					last := tt.outages[0]
					require.GreaterOrEqual(t, s.Latencies.Response.Max(), last.lasts.Microseconds(), "users would have felt the outage")
				}
			})
		})
	}
}

// TestLatencyAroundOutages: the worst latencies of an outage are those that the broker made, and not those of the rest of
// the load.
func TestLatencyAroundOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		line := b.Line()
		slow := func(latency time.Duration) func() {
			return func() {
				o := b.Options()
				o.Latency = latency
				require.NoError(t, b.Set(o))
			}
		}
		time.AfterFunc(1500*time.Millisecond, slow(4*time.Second)) // before the outages
		time.AfterFunc(1600*time.Millisecond, slow(0))
		for at, lasts := range map[time.Duration]time.Duration{12: 2 * time.Second, 20: 500 * time.Millisecond} {
			time.AfterFunc(at*time.Second+5*time.Millisecond, func() {
				line.Cut()
				time.Sleep(lasts) //nolint:forbidigo // of a fake clock
				line.Restore()
			})
		}
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			through(p, line)
			p.Reconnect, p.Rate, p.Duration, p.MaxPending = true, rate("100"), 30*time.Second, 1000
		}), nil)
		require.Len(t, s.Outages, 2)
		require.GreaterOrEqual(t, s.Latencies.Response.Max(), int64(4_000_000))
		for i := range s.Outages {
			o := &s.Outages[i]
			require.Positive(t, o.Recovered)
			// The first message that waits is due 5 ms after the cut, and confirmed at once when it is sent.
			first := (o.Confirmed - 5*time.Millisecond).Microseconds()
			require.InDelta(t, first, o.Worst.Response, 10_000)
			require.LessOrEqual(t, o.Worst.Ack, o.Worst.Response)
			require.Less(t, o.Worst.Transfer, int64(4_000_000))
		}
		require.Less(t, s.Outages[1].Worst.Response, s.Outages[0].Worst.Response)
	})
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
		require.False(t, s.Success)
		require.Less(t, s.End.Sub(s.Start), 10*time.Second)
		require.ErrorContains(t, s.Err, "not connected again within 3s (--reconnect-timeout)")
		require.Len(t, s.Outages, 1)
		require.Equal(t, []string{"consumer-0", "producer-0"}, s.Outages[0].NotBack)
		require.Contains(t, strings.Join(s.Problems, "\n"), "2 of 2 workers were not connected again (consumer-0, producer-0)")
	})
}

// TestOutageToTheEnd: a run whose duration ends in an outage ends then, and is no success.
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
		require.False(t, s.Success)
		require.NoError(t, s.Err)
		require.Equal(t, "duration reached", s.Reason)
		require.EqualValues(t, 101, s.Total.Completed)
		require.Contains(t, strings.Join(s.Problems, "\n"), "was not over when the run ended")
		require.Zero(t, s.Verification.Total.Lost)
	})
}

// TestWithoutReconnect: a lost connection ends the run, as ever.
func TestWithoutReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, nil)
		line := b.Line()
		time.AfterFunc(time.Second, line.Cut)
		s, _ := run(t, newPlan(b.Factory(), func(p *flat) {
			through(p, line)
			p.Rate, p.Duration = rate("100"), 5*time.Second
		}), nil)
		require.False(t, s.Success)
		require.Error(t, s.Err)
		require.Empty(t, s.Outages)
	})
}

// TestBackoff: the pauses of a failover URL are kept exactly, by each worker for itself; other ones are the usual.
func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name     string
		backoff  plan.Backoff
		attempts uint64 // of one worker, that fail in the outage of 200 ms
		again    time.Duration
		err      string
	}{
		{name: "exponential", backoff: plan.Backoff{First: 10 * ms, Longest: 40 * ms, Multiplier: 2, Exact: true}, attempts: 6, again: 230 * ms},
		{name: "even", backoff: plan.Backoff{First: 30 * ms, Longest: 30 * ms, Multiplier: 2, Exact: true}, attempts: 6, again: 210 * ms},
		{name: "by three", backoff: plan.Backoff{First: 10 * ms, Longest: time.Second, Multiplier: 3, Exact: true}, attempts: 3, again: 400 * ms},
		{
			name: "two attempts", backoff: plan.Backoff{First: 10 * ms, Longest: 40 * ms, Multiplier: 2, Exact: true, Attempts: 2},
			err: "not connected again by 2 attempts (maxReconnectAttempts)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := broker(t, nil)
				line := b.Line()
				p := newPlan(b.Factory(), func(p *flat) {
					through(p, line)
					p.Reconnect, p.Backoff, p.Producers, p.Consumers = true, tt.backoff, 2, 2
					p.Rate, p.Duration, p.MaxPending = rate("10000"), 5*time.Second, 1000
				})
				time.AfterFunc(2*time.Second, line.Cut)
				time.AfterFunc(2*time.Second+200*ms, line.Restore)
				s, _ := run(t, p, nil)
				if tt.err != "" {
					require.ErrorContains(t, s.Err, tt.err)
					return
				}
				require.True(t, s.Success, "%q", s.Problems)
				require.Len(t, s.Outages, 1)
				o := s.Outages[0]
				require.Equal(t, 4*tt.attempts, o.Attempts)
				require.GreaterOrEqual(t, o.Reconnected, tt.again)
				require.Less(t, o.Reconnected, tt.again+2*ms)
			})
		})
	}
}
