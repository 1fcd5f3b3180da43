package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

type teller struct {
	mu     sync.Mutex
	asked  int
	answer func(asked int) (driver.DestinationCount, error)
}

func (s *teller) Inspect(ctx context.Context, dests []driver.Destination) (list []driver.DestinationCount, err error) {
	s.mu.Lock()
	s.asked++
	n, err := s.answer(s.asked)
	s.mu.Unlock()
	if errors.Is(err, context.DeadlineExceeded) {
		<-ctx.Done()
	}
	for range dests {
		list = append(list, n)
	}
	return list, err
}

func tells(depth, added, acknowledged uint64) driver.DestinationCount {
	return driver.DestinationCount{
		Depth: driver.Counted(depth), Added: driver.Counted(added), Acknowledged: driver.Counted(acknowledged), Consumers: driver.Counted(1),
	}
}

// counts carries out a run of 100 messages at a broker that counts by t.
func counts(t *testing.T, answer func(asked int) (driver.DestinationCount, error), edit func(*flat)) (*stats.Summary, *teller) {
	t.Helper()
	told := &teller{answer: answer}
	s, _ := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) {
		p.Count, p.BrokerCount = 100, true
		p.Producer.Inspector, p.Consumer.Inspector = told, told
	}, edit), nil)
	require.True(t, s.Outcome.Success, "%q", s.Problems())
	return s, told
}

func TestBrokerCount(t *testing.T) {
	t.Parallel()
	s, _ := counts(t, func(asked int) (driver.DestinationCount, error) {
		if asked == 1 {
			return tells(7, 1000, 993), nil
		}
		return tells(10, 1103, 1093), nil
	}, nil)
	require.Equal(t, []result.DestinationCount{{
		Destination: "queue://TEST", Sent: 100, Received: 100, Depth: new(uint64(10)),
		Added: &result.Compared{Count: 103, Least: 100, Most: 100}, Acknowledged: &result.Compared{Count: 100, Least: 100, Most: 100},
	}}, s.BrokerCount.Destinations)
	require.EqualValues(t, 3, s.BrokerCount.Destinations[0].Added.Differs())
	require.Empty(t, s.BrokerCount.Unknown())
}

// A count that is late is waited for, but not for long.
func TestLateBrokerCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counts(t, func(asked int) (driver.DestinationCount, error) {
			return tells(0, min(uint64(asked-1)*20, 100), min(uint64(asked-1)*20, 100)), nil
		}, nil) //nolint:gosec // small
		require.Zero(t, s.BrokerCount.Destinations[0].Added.Differs())
		begin := time.Now()
		s, _ = counts(t, func(int) (driver.DestinationCount, error) { return tells(0, 0, 0), nil }, nil)
		require.EqualValues(t, -100, s.BrokerCount.Destinations[0].Added.Differs())
		require.Less(t, time.Since(begin), time.Minute, "a run of a moment, with the last counts")
	})
}

// lagging is a teller with old counters.
type lagging struct {
	teller
	lag time.Duration
}

func (l *lagging) Lag() time.Duration { return l.lag }

// perfmq asks a broker with lagging counters again while the counts differ, at most for its lag.
func TestLaggingBrokerCount(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration // from the begin of the run to the count of all messages
		took    time.Duration
		differs int64
	}{
		"in time": {9 * time.Second, 12 * time.Second, 0},
		"late":    {18 * time.Second, 19 * time.Second, 0},
		"never":   {time.Hour, 23 * time.Second, -100},
	} {
		inBubble(t, name, func(t *testing.T) {
			begin := time.Now()
			told := &lagging{lag: 10 * time.Second}
			told.answer = func(int) (driver.DestinationCount, error) {
				if time.Since(begin) < c.after {
					return tells(0, 0, 0), nil
				}
				return tells(0, 100, 100), nil
			}
			s, _ := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) {
				p.Count, p.BrokerCount = 100, true
				p.Producer.Inspector, p.Consumer.Inspector = told, told
			}), nil)
			d := &s.BrokerCount.Destinations[0]
			require.Equal(t, c.differs, d.Added.Differs())
			require.Equal(t, c.differs, d.Acknowledged.Differs())
			require.InDelta(t, c.took.Seconds(), time.Since(begin).Seconds(), 1.5)
		})
	}
}

// TestRemovedBrokerCount: a queue that a broker lost in a restart, or removed, has taken messages since the last
// answer. It may not have had more than were sent.
func TestRemovedBrokerCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		added   uint64
		known   bool
		differs int64
	}{"all were counted": {100, true, 0}, "some were not": {40, false, 0}, "more": {103, true, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := counts(t, func(asked int) (driver.DestinationCount, error) {
				if asked == 2 {
					return tells(c.added, c.added, 0), nil
				}
				return tells(0, 0, 0), nil
			}, nil)
			d := &s.BrokerCount.Destinations[0]
			require.Equal(t, c.known, d.Added != nil)
			require.Equal(t, c.differs, d.Added.Differs())
			require.Contains(t, d.Why, "the broker removed queue://TEST with its count")
		})
	}
}

// Whatever the broker does when it is asked, the run is as it would be.
func TestBrokerCountFails(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		after int
		asked int
		notes []string
	}{
		{"refused", driver.Errorf(driver.ClassAuth, "", "", "you may not"), 0, 1, []string{"you may not"}},
		{"cannot be asked", driver.Errorf(driver.ClassUnsupported, "", "", "no"), 0, 1, nil},
		{"fails later", errors.New("broken"), 1, 0, []string{"broken"}},
		{"hangs", context.DeadlineExceeded, 1, 0, []string{"context deadline exceeded"}},
	} {
		inBubble(t, test.name, func(t *testing.T) {
			s, told := counts(t, func(asked int) (driver.DestinationCount, error) {
				if asked > test.after {
					return driver.DestinationCount{}, test.err
				}
				return tells(0, 0, 0), nil
			}, nil)
			require.Nil(t, s.BrokerCount.Destinations[0].Added)
			require.Equal(t, test.notes, s.BrokerCount.Unknown())
			if test.asked > 0 {
				require.Equal(t, test.asked, told.asked)
			}
		})
	}
	s, _ := run(t, newPlan(broker(t, nil).Factory(), func(p *flat) { p.Count = 10 }), nil)
	require.Nil(t, s.BrokerCount, "nobody was to be asked")
}

// Two brokers' counts are not mixed.
func TestBrokerCountOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := counts(t, func(int) (driver.DestinationCount, error) { return tells(0, 0, 0), nil }, func(p *flat) {
			p.Consumer.Inspector = &teller{answer: func(int) (driver.DestinationCount, error) { return tells(0, 0, 0), nil }}
			p.Consumer.Name = "other"
		})
		require.NotNil(t, s.BrokerCount.Destinations[0].Added)
		require.Nil(t, s.BrokerCount.Destinations[0].Acknowledged)
	})
}
