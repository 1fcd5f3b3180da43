package brokerside

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// scripted is an inspector of one destination with scripted answers.
type scripted struct {
	mu    sync.Mutex
	now   driver.DestinationCount
	err   error
	hangs bool
	lag   time.Duration
	asked int
}

func (s *scripted) Lag() time.Duration { return s.lag }

func (s *scripted) Inspect(ctx context.Context, _ []driver.Destination) ([]driver.DestinationCount, error) {
	s.mu.Lock()
	s.asked++
	hangs := s.hangs
	s.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return []driver.DestinationCount{s.now}, s.err
}

func (s *scripted) set(depth, added, acknowledged uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hangs = nil, false
	s.now = driver.DestinationCount{
		Depth: driver.Counted(depth), Added: driver.Counted(added), Acknowledged: driver.Counted(acknowledged), Consumers: driver.Counted(1),
	}
}

func (s *scripted) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hangs = err, err == nil
}

func destination() []driver.Destination { return []driver.Destination{{Name: "Q"}} }

// begun returns a watch of one destination.
func begun(t *testing.T, s *scripted) *Counts {
	t.Helper()
	w := NewCounts()
	t.Cleanup(w.Close)
	w.Add(t.Context(), "", s, destination())
	return w
}

func TestGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.set(5, 105, 100)
		w := begun(t, s)
		require.Equal(t, []Depth{{"queue://Q", 5}}, w.Depths())
		s.set(7, 110, 103)
		time.Sleep(interval + time.Millisecond) //nolint:forbidigo // of the bubble
		require.Equal(t, []Depth{{"queue://Q", 7}}, w.Depths(), "after a second")
		require.Equal(t, Growth{Depth: driver.Counted(7), Added: driver.Counted(5), Acknowledged: driver.Counted(3)}, w.Growth(0, 0))
		s.set(0, 120, 120)
		w.Ask(t.Context())
		require.Equal(t, Growth{Depth: driver.Counted(0), Added: driver.Counted(15), Acknowledged: driver.Counted(20)}, w.Growth(0, 0))
		require.Empty(t, w.Notes())
	})
}

// A removed destination keeps its last counts. A destination that was made again, or whose broker was restarted, begins
// to count at 0.
func TestCountsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{now: driver.NoDestination()}
		w := begun(t, s)
		s.set(3, 10, 7)
		w.Ask(t.Context())
		s.now = driver.NoDestination()
		w.Ask(t.Context())
		require.Equal(t, Growth{Depth: driver.Counted(0), Added: driver.Counted(10), Acknowledged: driver.Counted(7), Gone: true}, w.Growth(0, 0))
		w.Ask(t.Context())
		require.Equal(t, driver.Counted(10), w.Growth(0, 0).Added)
		s.set(1, 20, 19)
		w.Ask(t.Context())
		require.Equal(t, "the broker has begun to count anew", w.Growth(0, 0).Why, "whatever it counts now")
		require.False(t, w.Growth(0, 0).Added.Known)
	})
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.set(0, 100, 100)
		w := begun(t, s)
		s.set(20, 30, 10)
		w.Ask(t.Context())
		require.Equal(t, "the broker has begun to count anew", w.Growth(0, 0).Why)
	})
}

// A broker that could not be reached may have been restarted, even if its counters have passed the last answer by then. A
// slow broker was not restarted.
func TestBroke(t *testing.T) {
	for class, broke := range map[driver.Class]bool{
		driver.ClassConnect: true, driver.ClassConnectionLost: true, driver.ClassTimeout: false, driver.ClassOther: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{}
			s.set(0, 100, 100)
			w := begun(t, s)
			require.False(t, w.Growth(0, 0).Broke)
			s.fail(driver.Errorf(class, "", "", "no"))
			w.Ask(t.Context())
			s.set(0, 150, 150)
			w.Ask(t.Context())
			require.Equal(t, Growth{
				Depth: driver.Counted(0), Added: driver.Counted(50), Acknowledged: driver.Counted(50), Broke: broke,
			}, w.Growth(0, 0), class)
		})
	}
}

// A broker without an answer gets one note and delays nothing. A broker that refuses all questions is not asked again.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		s.set(0, 100, 100)
		w := begun(t, s)
		s.fail(errors.New("broken"))
		time.Sleep(10 * interval) //nolint:forbidigo // of the bubble
		require.Empty(t, w.Depths(), "too old")
		require.Equal(t, Growth{Depth: driver.Counted(0), Why: "broken"}, w.Growth(0, 0))
		require.Equal(t, []string{"broken"}, w.Notes())
		s.set(1, 101, 100)
		time.Sleep(interval + time.Millisecond) //nolint:forbidigo // of the bubble
		require.Equal(t, driver.Counted(1), w.Growth(0, 0).Added, "it answers again")
		require.Len(t, w.Depths(), 1)
		s.fail(nil)
		before := time.Now()
		w.Ask(t.Context())
		require.LessOrEqual(t, time.Since(before), 2*patience, "the end of a run")
		require.False(t, w.Growth(0, 0).Added.Known, "the last count is missing")
	})
	for _, class := range []driver.Class{driver.ClassUnsupported, driver.ClassAuth} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{err: driver.Errorf(class, "", "", "no")}
			w := begun(t, s)
			time.Sleep(5 * interval) //nolint:forbidigo // of the bubble
			w.Ask(t.Context())
			require.Equal(t, 1, s.asked)
			require.Empty(t, w.Depths())
			require.False(t, w.Growth(0, 0).Added.Known)
			require.Len(t, w.Notes(), map[driver.Class]int{driver.ClassAuth: 1}[class], "a broker that cannot be asked is no news")
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{hangs: true}
		before := time.Now()
		w := begun(t, s)
		require.Equal(t, patience, time.Since(before), "the begin of a load")
		s.set(0, 1, 1)
		w.Ask(t.Context())
		require.False(t, w.Growth(0, 0).Added.Known, "there is no beginning")
	})
}

// Counters that lag are read when they include the messages of before the run.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lag: 6 * time.Second}
		s.set(0, 100, 0)
		time.AfterFunc(3*time.Second, func() { s.set(0, 120, 0) })
		w := begun(t, s)
		require.Equal(t, 6*time.Second, w.Lag())
		s.set(0, 130, 0)
		w.Ask(t.Context())
		require.Equal(t, driver.Counted(10), w.Growth(0, 0).Added)
	})
	synctest.Test(t, func(t *testing.T) {
		before := time.Now()
		begun(t, &scripted{lag: 6 * time.Second, now: driver.NoDestination()})
		require.Zero(t, time.Since(before), "nothing was there")
	})
}

// TestNotCounted: a broker that counted nothing at first, and reports no count later, has not counted.
func TestNotCounted(t *testing.T) {
	s := &scripted{}
	s.set(0, 0, 0)
	w := begun(t, s)
	s.mu.Lock()
	s.now = driver.DestinationCount{Depth: driver.Counted(3)}
	s.mu.Unlock()
	w.Ask(t.Context())
	require.Equal(t, Growth{Depth: driver.Counted(3), Why: "the broker has not counted messages of these destinations"}, w.Growth(0, 0))
	s.set(0, 7, 7)
	w.Ask(t.Context())
	require.Equal(t, Growth{Depth: driver.Counted(0), Added: driver.Counted(7), Acknowledged: driver.Counted(7)}, w.Growth(0, 0))
}
