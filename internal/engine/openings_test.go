package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

// connecting makes the plan one of a group of connections.
func connecting(edit func(*flat)) func(*flat) {
	return func(p *flat) {
		p.Role, p.Destinations = plan.Connections, nil
		p.MaxPending = 0
		if edit(p); p.MaxPending == 0 {
			p.SetAtOnce()
		}
	}
}

// openings runs a group of connections on a broker with faults, in a bubble.
func openings(t *testing.T, faults mem.Options, edit func(*flat), then func(*testing.T, *mem.Broker, *stats.Summary, *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { *o = faults })
		p := newPlan(b.Factory(), connecting(edit))
		rep := new(recorder)
		s, err := carryOut(t.Context(), nil, p, rep)
		require.NoError(t, err)
		requireIdentity(t, s)
		then(t, b, s, rep)
	})
}

// requireIdentity checks that each opened connection is closed or lost.
func requireIdentity(t *testing.T, s *stats.Summary) {
	t.Helper()
	n := s.Total.Values()
	require.Equal(t, n[result.Opened], n[result.ConnectionsClosed]+n[result.ConnectionsLost], "all that opened have ended")
	require.EqualValues(t, n[result.Opened], s.Latencies[result.Open].Count, "each has its time")
}

// TestConnections: an open loop opens as many as are asked for, at their times, and holds them together.
func TestConnections(t *testing.T) {
	faults := mem.Options{Connect: 2 * time.Millisecond, Login: 3 * time.Millisecond, Attach: 5 * time.Millisecond, Close: 7 * time.Millisecond}
	openings(t, faults, func(p *flat) {
		p.Rate, p.Connections, p.Hold = rate("100"), 250, 4*time.Second
		p.Plan.Thresholds = demands(t, "open.p99 < 6ms", "connections.live >= 250", "connections.opened == 250", "connections.refused == 0", "login.max < 4ms")
	}, func(t *testing.T, _ *mem.Broker, s *stats.Summary, rep *recorder) {
		require.True(t, s.Outcome.Success, s.Problems())
		require.Equal(t, "all connections were opened and held", s.Outcome.Reason)
		require.Equal(t, &result.Connections{Opened: 250, Closed: 250}, s.Total.Connections)
		for _, o := range s.Thresholds {
			require.True(t, o.Kept, o.String())
		}
		for kind, want := range map[result.Kind]time.Duration{
			result.Connect: 2 * time.Millisecond, result.Login: 3 * time.Millisecond, result.Open: 5 * time.Millisecond, result.Close: 7 * time.Millisecond,
		} {
			l := s.Latencies[kind]
			require.EqualValues(t, 250, l.Count, result.Kinds()[kind].Name)
			require.Equal(t, want.Microseconds(), l.Max, result.Kinds()[kind].Name)
		}
		require.Nil(t, s.Latencies[result.Attach], "there is no destination")
		require.EqualValues(t, 250, *s.Live)
		require.Equal(t, result.LimitNone, s.Limit.Kind)
		var live, opened []uint64
		for _, row := range rep.snapshots {
			live, opened = append(live, row.Live), append(opened, row.Get(result.Opened))
		}
		require.Equal(t, []uint64{250, 250, 250, 250}, live[2:6])
		require.InDelta(t, 100, live[0], 1, "one may be due at the moment of the cut")
		require.InDelta(t, 100, opened[1], 1)
		require.InDelta(t, 6.5, lasted(s).Seconds(), 0.1, "2.49 s of openings, 4 s together")
	})
}

// TestConnectionsOfDestinations: producers and consumers are attached, and messages counted.
func TestConnectionsOfDestinations(t *testing.T) {
	for attach, want := range map[string]struct{ sent, received uint64 }{"": {60, 60}, "producer": {60, 0}} {
		openings(t, mem.Options{Attach: 5 * time.Millisecond}, func(p *flat) {
			p.Rate, p.Connections, p.Hold, p.Messages, p.Attach = rate("10"), 20, time.Second, 3, attach
			p.Destinations = []driver.Destination{{Name: "A"}, {Name: "B"}}
		}, func(t *testing.T, b *mem.Broker, s *stats.Summary, rep *recorder) {
			require.True(t, s.Outcome.Success, s.Problems())
			n := s.Total.Values()
			require.Equal(t, want.sent, n[result.Sent])
			require.Equal(t, want.sent, n[result.Completed])
			require.Equal(t, want.received, n[result.Received])
			require.EqualValues(t, want.sent, b.Stats().Stored)
			require.EqualValues(t, 20, n[result.Opened])
			require.EqualValues(t, want.sent, s.Latencies[result.Ack].Count)
			require.EqualValues(t, 5000, s.Latencies[result.Attach].Max)
			require.EqualValues(t, 20, s.Latencies[result.Connect].Count, "the connection of before the load is closed")
			require.Equal(t, "mem", rep.run.Protocol)
			require.Equal(t, attach == "", rep.run.Consuming)
			require.Equal(t, rep.run.Consuming, rep.run.ConsumerProtocol == "mem", "the connections' own")
		})
	}
}

// TestConnectionsRefused: each connection that does not open is counted as what it is.
func TestConnectionsRefused(t *testing.T) {
	// One connection is opened beforehand: it is the first of the broker's count.
	openings(t, mem.Options{RefuseOpen: 5, SilentOpen: 7}, func(p *flat) {
		p.Rate, p.Connections, p.Hold = rate("10"), 69, time.Second
	}, func(t *testing.T, _ *mem.Broker, s *stats.Summary, _ *recorder) {
		require.Equal(t, &result.Connections{
			Opened: 47, Refused: 14, TimedOut: 10 - 2, Closed: 47, // the 35th and the 70th are refused
			Failures: map[string]uint64{"connect": 14, "timeout": 8},
		}, s.Total.Connections)
		require.False(t, s.Outcome.Success)
		require.Contains(t, s.Problems()[0], "connections that did not open: 22 of 69; refused 14, timed out 8, unmade 0")
		require.Equal(t, result.LimitBroker, s.Limit.Kind)
	})
	openings(t, mem.Options{MostOpen: 30}, func(p *flat) {
		p.MaxPending, p.Connections, p.Hold = 4, 50, time.Second
	}, func(t *testing.T, _ *mem.Broker, s *stats.Summary, _ *recorder) {
		require.Equal(t, &result.Connections{Opened: 30, Refused: 20, Closed: 30, Failures: map[string]uint64{"full": 20}}, s.Total.Connections)
	})
}

// TestConnectionsChurn: connections come and go by the schedule, and no other.
func TestConnectionsChurn(t *testing.T) {
	openings(t, mem.Options{}, func(p *flat) {
		p.Rate, p.Hold, p.Churn, p.Duration = rate("50"), 1990*time.Millisecond, true, 10*time.Second
	}, func(t *testing.T, b *mem.Broker, s *stats.Summary, rep *recorder) {
		require.True(t, s.Outcome.Success, s.Problems())
		require.Equal(t, "duration reached", s.Outcome.Reason)
		require.Equal(t, &result.Connections{Opened: 500, Closed: 500}, s.Total.Connections)
		for _, row := range rep.snapshots[2:9] {
			// One may be due at the moment of the cut.
			require.InDelta(t, 100, row.Live, 1, "50 a second for 2 seconds, less 10 ms")
			require.InDelta(t, 50, row.Get(result.Opened), 1)
			require.InDelta(t, 50, row.Get(result.ConnectionsClosed), 1)
		}
	})
}

// TestConnectionsLate: an opening that waits for others keeps its due time.
func TestConnectionsLate(t *testing.T) {
	openings(t, mem.Options{Login: 100 * time.Millisecond}, func(p *flat) {
		p.Rate, p.Connections, p.MaxPending = rate("20"), 40, 1
	}, func(t *testing.T, _ *mem.Broker, s *stats.Summary, _ *recorder) {
		open := s.Latencies[result.Open]
		require.EqualValues(t, 40, open.Count)
		// The n-th is due after n * 50 ms and usable after (n+1) * 100 ms.
		require.Equal(t, (100*time.Millisecond + 39*50*time.Millisecond).Microseconds(), open.Max)
		require.Equal(t, result.LimitBroker, s.Limit.Kind)
		require.Contains(t, s.Limit.Text, "login")
	})
}

// TestConnectionsAbandoned: the end of the load cuts openings short, and each that was due is counted.
func TestConnectionsAbandoned(t *testing.T) {
	openings(t, mem.Options{Login: 300 * time.Millisecond}, func(p *flat) {
		p.Rate, p.Duration, p.MaxPending = rate("100"), 2*time.Second, 10
	}, func(t *testing.T, _ *mem.Broker, s *stats.Summary, _ *recorder) {
		c := s.Total.Connections
		require.EqualValues(t, 60, c.Opened, "10 in each 300 ms")
		require.EqualValues(t, 140, c.Abandoned, "of 200 that were due")
		require.True(t, s.Outcome.Success, s.Problems())
	})
}

// TestConnectionsLost: a killed broker ends connections, which are counted, and nothing hangs.
func TestConnectionsLost(t *testing.T) {
	for _, attach := range []string{"none", "producer", "consumer"} {
		synctest.Test(t, func(t *testing.T) {
			b := broker(t, func(*mem.Options) {})
			p := newPlan(b.Factory(), connecting(func(p *flat) {
				p.Rate, p.Connections, p.Hold = rate("100"), 300, 2*time.Second
				if attach != "none" {
					p.Attach, p.Destinations = attach, []driver.Destination{{Name: "A"}}
				}
			}))
			time.AfterFunc(2*time.Second+time.Millisecond, b.Disconnect)
			s, err := carryOut(t.Context(), nil, p, new(recorder))
			require.NoError(t, err)
			require.Equal(t, &result.Connections{Opened: 300, Closed: 99, Lost: 201, Failures: map[string]uint64{"connection-lost": 201}},
				s.Total.Connections, attach)
			requireIdentity(t, s)
			require.Contains(t, s.Problems()[0], "connections that were lost while they were open: 201 of 300")
		})
	}
}

// TestConnectionsInterrupted: an interrupted run keeps what it has measured, and closes all.
func TestConnectionsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Login = 500 * time.Millisecond })
		p := newPlan(b.Factory(), connecting(func(p *flat) { p.Rate, p.Connections, p.Hold = rate("100"), 1000, time.Minute }))
		stop := make(chan struct{})
		time.AfterFunc(3*time.Second+500*time.Millisecond+time.Millisecond, func() { close(stop) }) // half a second passes before the load
		s, err := carryOut(t.Context(), stop, p, new(recorder))
		require.NoError(t, err)
		require.True(t, s.Outcome.Interrupted)
		c := s.Total.Connections
		require.EqualValues(t, 251, c.Opened)
		require.EqualValues(t, 50, c.Abandoned, "they were being opened")
		require.Equal(t, result.LimitBroker, s.Limit.Kind, "a sixth of those that were due did not open: the rate was not reached")
		require.Equal(t, c.Opened, c.Closed)
		require.Less(t, lasted(s), 4*time.Second)
	})
}

// TestConnectionsUnreachable: a broker that cannot be reached, or refuses the login, ends the run before its load.
func TestConnectionsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(o *mem.Options) { o.Auth = "a:b" })
		p := newPlan(b.Factory(), connecting(func(p *flat) { p.Rate, p.Connections = rate("100"), 1000 }))
		_, err := carryOut(context.Background(), nil, p, new(recorder))
		require.Equal(t, driver.ClassAuth, driver.ClassOf(err))
	})
}

// TestConnectionsBeside: producers of the same step have figures of their own.
func TestConnectionsBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := broker(t, func(*mem.Options) {})
		p := newPlan(b.Factory(), func(p *flat) {
			p.Group.Name, p.Rate, p.Duration = "both", rate("100"), 5*time.Second
			crowd := *p.Group
			crowd.Name, crowd.Role, crowd.Rate, crowd.Hold, crowd.Churn, crowd.Messages = "crowd", plan.Connections, rate("20"), time.Second, true, 2
			crowd.Attach, crowd.Destinations = "both", []driver.Destination{{Name: "OTHER"}}
			crowd.SetAtOnce()
			p.Plan.Steps[0].Groups = append(p.Plan.Steps[0].Groups, &crowd)
		})
		s, err := carryOut(t.Context(), nil, p, new(recorder))
		require.NoError(t, err)
		require.True(t, s.Outcome.Success, s.Problems())
		require.EqualValues(t, 500+200, s.Total.Get(result.Sent))
		require.EqualValues(t, 500+200, s.Total.Get(result.Received))
		groups := map[string]*stats.Summary{}
		for i := range s.Groups {
			groups[s.Groups[i].Name] = &s.Groups[i]
		}
		require.EqualValues(t, 200, groups["crowd"].Total.Get(result.Sent))
		require.EqualValues(t, 200, groups["crowd"].Total.Get(result.Received))
		require.EqualValues(t, 100, groups["crowd"].Total.Get(result.Opened))
		require.EqualValues(t, 500, groups["both"].Total.Get(result.Sent))
		require.Nil(t, groups["both"].Total.Connections)
	})
}
