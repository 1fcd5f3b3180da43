package stats_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// seconds feeds outages with full seconds of a load, from 1000 s of the Unix epoch on.
type seconds struct {
	outages *stats.Outages
	now     time.Time
	step    string
}

func (s *seconds) pass(completed, received uint64, times int) (last *stats.Snapshot) {
	for range times {
		delta := stats.Counters{result.Completed: completed, result.Received: received}
		row := result.Row{Step: s.step, Phase: result.Measure, Counts: delta.Counts(true, true)}
		last = &stats.Snapshot{Row: row, From: s.now, To: s.now.Add(time.Second)}
		s.now = last.To
		s.outages.AddInterval(last)
	}
	return last
}

// down begins an outage in the second that follows, and up ends it there.
func (s *seconds) down() {
	s.outages.Lost("p", true, false, errors.New("gone"), s.now.Add(200*time.Millisecond))
}

func (s *seconds) up() {
	at := s.now.Add(400 * time.Millisecond)
	s.outages.Connected("p", at)
	s.outages.RecordArrival(true, at, at.Add(time.Millisecond))
}

func (s *seconds) blink() { s.down(); s.up() }

func newSeconds() *seconds {
	return &seconds{outages: stats.NewOutages(), now: time.Unix(1000, 0), step: "load"}
}

// TestRecoveryRates: which rates an outage is held against, and from when on they are there again.
func TestRecoveryRates(t *testing.T) {
	t.Parallel()
	of := func(name string, check func(*testing.T, *seconds)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, newSeconds())
		})
	}
	of("the last ten seconds, without silence", func(t *testing.T, s *seconds) {
		s.pass(500, 500, 20)
		s.pass(100, 200, 6)
		s.pass(0, 0, 30)
		s.pass(100, 200, 4)
		s.down()
		s.pass(20, 20, 1)
		s.pass(0, 0, 4)
		s.up()
		s.pass(40, 120, 1)
		s.pass(100, 179, 2) // receipts are below 90%
		s.pass(90, 180, 2)
		s.pass(89, 300, 1)
		s.pass(90, 180, 3)
		s.pass(1, 1, 10)
		o := s.outages.List(time.Unix(1000, 0))[0]
		require.EqualValues(t, 10800000, o.Recovered)
		require.EqualValues(t, 9000000, o.Watched)
	})
	of("two outages without recovery between them", func(t *testing.T, s *seconds) {
		s.pass(100, 200, 10)
		s.blink()
		s.pass(50, 100, 20)
		s.blink()
		s.pass(50, 100, 5)
		s.pass(100, 200, 3)
		list := s.outages.List(time.Unix(1000, 0))
		require.EqualValues(t, 24800000, list[0].Recovered)
		require.EqualValues(t, 4800000, list[1].Recovered)
		require.EqualValues(t, 28000000, list[0].Watched)
		require.EqualValues(t, 8000000, list[1].Watched)
	})
	of("an outage that no rate shows", func(t *testing.T, s *seconds) {
		s.pass(100, 200, 10)
		for range 3 {
			s.blink()
			s.pass(95, 190, 1)
		}
		for _, o := range s.outages.List(time.Unix(1000, 0)) {
			require.Equal(t, o.Length, o.Recovered)
		}
	})
	of("another step", func(t *testing.T, s *seconds) {
		s.pass(100, 200, 10)
		s.blink()
		s.pass(50, 100, 2)
		s.step = "half"
		s.pass(50, 100, 20)
		s.blink()
		s.pass(50, 100, 3)
		list := s.outages.List(time.Unix(1000, 0))
		require.Zero(t, list[0].Recovered)
		require.EqualValues(t, 2000000, list[0].Watched)
		require.Positive(t, list[1].Recovered)
	})
	of("a second outage before the load has recovered", func(t *testing.T, s *seconds) {
		s.pass(100, 200, 10)
		s.blink()
		s.pass(80, 160, 2)
		s.down()
		s.pass(0, 0, 40)
		s.up()
		s.pass(80, 160, 2)
		list := s.outages.List(time.Unix(1000, 0))
		require.EqualValues(t, 4000000, list[0].Watched)
		require.EqualValues(t, 2000000, list[1].Watched)
	})
	of("one after the other", func(t *testing.T, s *seconds) {
		s.pass(100, 200, 10)
		for range 3 {
			s.down()
			s.pass(1, 1, 1)
			s.up()
			s.pass(100, 200, 3)
		}
		for _, o := range s.outages.List(time.Unix(1000, 0)) {
			require.EqualValues(t, 1201000, o.Recovered)
		}
	})
	of("catching up is not a rate of before", func(t *testing.T, s *seconds) {
		s.outages.Watch(nil, nil, 100)
		s.pass(100, 200, 5)
		s.pass(1000, 2000, 20)
		s.blink()
		s.pass(100, 200, 3)
		o := s.outages.List(time.Unix(1000, 0))[0]
		require.Positive(t, o.Recovered)
	})
	of("nothing before", func(t *testing.T, s *seconds) {
		s.down()
		s.pass(0, 0, 3)
		s.up()
		s.pass(100, 200, 10)
		require.Zero(t, s.outages.List(time.Unix(1000, 0))[0].Watched)
	})
}

// TestOutageProgress: how things stand at the end of each second.
func TestOutageProgress(t *testing.T) {
	t.Parallel()
	s := newSeconds()
	require.Equal(t, &stats.OutageProgress{}, s.pass(10, 10, 1).Outage)
	s.down()
	s.outages.Attempt(errors.New("x"), time.Now())
	s.outages.InDoubt(1, 3)
	p := s.pass(0, 0, 2).Outage
	require.Equal(t, 1800*time.Millisecond, p.Since)
	require.Equal(t, 1800*time.Millisecond, p.Length)
	require.Equal(t, []int{1, 1}, []int{p.Count, p.Down})
	require.EqualValues(t, 3, p.InDoubt)
	s.up()
	p = s.pass(10, 10, 1).Outage
	require.Equal(t, []int{1, 0}, []int{p.Count, p.Down})
	require.Zero(t, p.Since)
	require.Equal(t, 2201*time.Millisecond, p.Length)
	require.EqualValues(t, 1, p.Reconnects)
	var attempts uint64
	for _, n := range p.Attempts {
		attempts += n
	}
	require.EqualValues(t, 1, attempts)
}
