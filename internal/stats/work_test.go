package stats

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// waits is a worker that reports the waits it is given.
type waits driver.Waits

func (w *waits) Waits() driver.Waits { return driver.Waits(*w) }

// Waits for credit are waits for the broker, as those for a slot are.
func TestBlockedCountsWaitsForLeave(t *testing.T) {
	t.Parallel()
	start := time.Now()
	p := NewProducerRecorder(false, nil)
	w := &waits{}
	c := NewCollector([]*ProducerRecorder{p}, nil, start)
	c.SetWorkers([]Worker{{Name: "producer-0", Waits: w}})
	p.Blocked()
	w.Credit.Times = 3
	s := c.Collect(Measure, start.Add(time.Second), false)
	require.EqualValues(t, 4, s.Get(result.Blocked))
	require.EqualValues(t, 3, s.Get(result.NoLeave))
	w.Credit.Times = 5
	p.Blocked()
	s = c.Collect(Measure, start.Add(2*time.Second), false)
	require.EqualValues(t, 3, s.Get(result.Blocked))
	require.EqualValues(t, 2, s.Get(result.NoLeave))
	require.EqualValues(t, 7, s.Total.Get(result.Blocked))
}

// Waits for the network are counted beside those, also of connections that are closed.
func TestSocketWaitsAreCounted(t *testing.T) {
	t.Parallel()
	start := time.Now()
	w := &waits{}
	c := NewCollector([]*ProducerRecorder{NewProducerRecorder(false, nil)}, nil, start)
	c.SetWorkers([]Worker{{Name: "producer-0", Waits: w, Openings: 1}})
	w.Socket.Times = 3
	s := c.Collect(Measure, start.Add(time.Second), false)
	require.EqualValues(t, 3, s.Get(result.SocketWaits))
	require.Zero(t, s.Total.Get(result.Blocked))
	c.SetWorkers([]Worker{{Name: "producer-0", Closed: true, Openings: 1, SocketWaits: 5}})
	s = c.Collect(Measure, start.Add(2*time.Second), false)
	require.EqualValues(t, 2, s.Get(result.SocketWaits))
	c.SetWorkers([]Worker{{Name: "producer-0", Waits: &waits{Socket: driver.Wait{Times: 1}}, Openings: 2, SocketWaits: 5}})
	s = c.Collect(Measure, start.Add(3*time.Second), false)
	require.EqualValues(t, 1, s.Get(result.SocketWaits))
	require.EqualValues(t, 6, s.Total.Get(result.SocketWaits))
	require.EqualValues(t, 6, c.WorkerTotals()[0].Producers.SocketWaits)
}

// A wait in progress counts, and counts once.
func TestWaitInProgress(t *testing.T) {
	t.Parallel()
	p := NewProducerRecorder(false, nil)
	require.Zero(t, p.waitedUntil(time.Second))
	p.Wait(WaitSlot, 0)
	p.Wait(WaitEnded, time.Millisecond) // that of the slot goes on
	require.Equal(t, [numWaitKinds]time.Duration{WaitSlot: time.Second}, p.waitedUntil(time.Second))
	p.Waited(1500 * time.Millisecond)
	require.Equal(t, [numWaitKinds]time.Duration{WaitSlot: 1500 * time.Millisecond}, p.waitedUntil(2*time.Second))
	p.AddSendWait(time.Second)
	p.Wait(WaitDue, 1800*time.Millisecond)
	require.Equal(t, [numWaitKinds]time.Duration{
		WaitDue: 200 * time.Millisecond, WaitSlot: 1500 * time.Millisecond, WaitSend: time.Second,
	}, p.waitedUntil(2*time.Second))
}

// A Send in progress counts as a wait if the driver does not report its own, from the first look at it on, and once.
func TestSendInProgress(t *testing.T) {
	t.Parallel()
	for _, blind := range []bool{false, true} {
		p := NewProducerRecorder(false, nil)
		want := time.Duration(0)
		if blind {
			p.SetBlind()
			want = time.Second
		}
		send := func(now time.Duration) time.Duration { return p.waitedUntil(now)[WaitSend] }
		require.Zero(t, send(time.Second))
		p.Begun(Measure)
		require.Zero(t, send(2*time.Second), "the first look")
		require.Equal(t, want, send(3*time.Second))
		p.Handed(Measure, 0)
		p.AddSendWait(1500 * time.Millisecond)
		require.Equal(t, 1500*time.Millisecond, send(4*time.Second))
		p.Begun(Measure)
		require.Equal(t, 1500*time.Millisecond, send(5*time.Second))
		p.Handed(Measure, 0)
		p.Begun(Measure)
		require.Equal(t, 1500*time.Millisecond, send(6*time.Second), "another one")
		p.TakenBack(Measure)
		require.Equal(t, 1500*time.Millisecond, send(7*time.Second))
	}
}

// Work in progress counts, and counts once. Time in which only a rate held the consumer back is separate.
func TestWorkInProgress(t *testing.T) {
	t.Parallel()
	r := NewConsumerRecorder()
	now := func(d time.Duration) [2]time.Duration {
		worked, paced := r.workedUntil(d)
		return [2]time.Duration{worked, paced}
	}
	require.Zero(t, now(time.Second))
	r.Work(time.Second)
	require.Equal(t, [2]time.Duration{500 * time.Millisecond, 0}, now(1500*time.Millisecond))
	r.Worked(2*time.Second, 300*time.Millisecond)
	require.Equal(t, [2]time.Duration{700 * time.Millisecond, 300 * time.Millisecond}, now(3*time.Second))
}
