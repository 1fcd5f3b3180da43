package stats_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

func collectorOf(now time.Time, p *stats.ProducerRecorder, c *stats.ConsumerRecorder) *stats.Collector {
	var ps []*stats.ProducerRecorder
	var cs []*stats.ConsumerRecorder
	if p != nil {
		ps = append(ps, p)
	}
	if c != nil {
		cs = append(cs, c)
	}
	return stats.NewCollector(ps, cs, now)
}

func TestRecorderCountsEachStateAndClass(t *testing.T) {
	now := time.Now()
	r := stats.NewProducerRecorder(true, nil)
	c := collectorOf(now, r, nil)
	refused := errors.New("refused")
	ends := []driver.Outcome{
		{},
		{State: driver.Rejected, Class: driver.ClassFull, Err: refused},
		{State: driver.Rejected, Class: driver.ClassFull, Err: errors.New("second")},
		{State: driver.Rejected, Class: driver.ClassTooLarge},
		{State: driver.Released, Class: driver.ClassOther},
		{State: driver.Failed, Class: driver.ClassTimeout},
		{State: driver.Unknown, Class: driver.ClassConnectionLost},
	}
	for _, o := range ends {
		r.Begun(stats.Measure)
		r.Handed(stats.Measure, time.Millisecond)
		done(r, o, 2*time.Millisecond, 3*time.Millisecond)
	}
	r.Begun(stats.Measure)
	r.Handed(stats.Measure, time.Millisecond)
	r.Begun(stats.Measure)
	r.TakenBack(stats.Measure)
	r.Blocked()
	r.Late()

	s := c.Collect(stats.Measure, now.Add(time.Second), false)
	n := s.Total
	require.Equal(t, [result.NumCounters]uint64{
		result.Sent: 8, result.Blocked: 1, result.LateSends: 1, result.Completed: 1, result.Rejected: 3, result.Released: 1, result.Failed: 1, result.Unconfirmed: 1,
	}, n.Values())
	require.Equal(t, n, s.Counts)
	require.EqualValues(t, 1, s.InFlight)
	require.EqualValues(t, 1, r.InFlight())
	require.EqualValues(t, 1, r.Completed())

	var want [driver.NumClasses]uint64
	want[driver.ClassFull], want[driver.ClassTooLarge], want[driver.ClassOther] = 2, 1, 1
	want[driver.ClassTimeout], want[driver.ClassConnectionLost] = 1, 1
	for class := range driver.NumClasses {
		require.Equal(t, want[class], n.OfClass(class.String()))
	}
	require.EqualValues(t, 2, n.Producers.Failures["rejected"]["full"])
	require.EqualValues(t, 1, n.Producers.Failures["unconfirmed"]["connection-lost"])
	require.NotContains(t, n.Producers.Failures, "accepted")
	require.Same(t, refused, r.FirstError(driver.ClassFull))
	require.NoError(t, r.FirstError(driver.ClassTooLarge))

	// Only accepted messages have an ack and response time; all sent ones have a delay.
	require.EqualValues(t, 1, s.Latencies[result.Ack].Count)
	require.EqualValues(t, 2000, s.Latencies[result.Ack].Max)
	require.EqualValues(t, 1, s.Latencies[result.Response].Count)
	require.EqualValues(t, 3000, s.Latencies[result.Response].Max)
	require.EqualValues(t, 8, s.Latencies[result.Delay].Count)
	require.Nil(t, s.Latencies[result.Transfer])
}

// TestInFlight: of a producer with one message in flight at a time, no snapshot shows more, however long the snapshot
// takes.
func TestInFlight(t *testing.T) {
	now := time.Now()
	r := stats.NewProducerRecorder(false, nil)
	c := collectorOf(now, r, nil)
	stop := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			r.Begun(stats.Measure)
			r.Handed(stats.Measure, 0)
			done(r, driver.Outcome{}, 0, 0)
		}
	})
	most := uint64(0)
	for i := range 2000 {
		s := c.Collect(stats.Measure, now.Add(time.Duration(i+1)*time.Millisecond), false)
		most = max(most, s.InFlight)
	}
	close(stop)
	sender.Wait()
	require.LessOrEqual(t, most, uint64(1))
}

func TestSentWhileHandingOver(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name                 string
		ended, received      int
		redelivered          int
		last                 bool
		wantSent, wantFlight int
	}{
		{"neither ended nor received", 0, 0, 0, false, 2, 2},
		{"all but it received", 0, 2, 0, false, 2, 2},
		{"received before the driver returned", 0, 3, 0, false, 3, 3},
		{"ended before the driver returned", 3, 0, 0, false, 3, 0},
		{"a redelivery is not a third message", 0, 3, 1, false, 2, 2},
		{"several subscriptions", 0, 4, 0, false, 2, 2},
		{"stuck at the end", 0, 0, 0, true, 3, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, k := stats.NewProducerRecorder(false, nil), stats.NewConsumerRecorder()
			c := collectorOf(now, p, k)
			for range 2 {
				p.Begun(stats.Measure)
				p.Handed(stats.Measure, 0)
			}
			p.Begun(stats.Measure)
			for range tt.ended {
				done(p, driver.Outcome{}, 0, 0)
			}
			for i := range tt.received {
				receive(k, 0, i < tt.redelivered)
			}
			s := c.Collect(stats.Measure, now.Add(time.Second), tt.last)
			require.EqualValues(t, tt.wantSent, s.Total.Get(result.Sent))
			require.EqualValues(t, tt.wantFlight, s.InFlight)
		})
	}
}

func TestConsumerRecorder(t *testing.T) {
	now := time.Now()
	r := stats.NewConsumerRecorder()
	c := collectorOf(now, nil, r)
	receive(r, 5*time.Millisecond, false)
	receive(r, -3*time.Millisecond, true)
	receive(r, 2*stats.MaxLatency, false)
	r.Received(stats.Receipt{Due: stats.Measure, Redelivered: false})
	r.Received(stats.Receipt{Due: stats.Measure, Redelivered: true})
	r.Foreign(0)
	s := c.Collect(stats.Measure, now.Add(time.Second), false)
	require.Equal(t, [result.NumCounters]uint64{
		result.Received: 5, result.Redelivered: 2, result.Unstamped: 2, result.Foreign: 1, result.NegativeTransfers: 1, result.OutOfRange: 1,
	}, s.Total.Values())
	require.EqualValues(t, 5, r.Total())
	l := s.Latencies[result.Transfer]
	require.EqualValues(t, 2, l.Count, "negative ones are left out, those out of range count as the largest")
	require.EqualValues(t, stats.MaxLatency.Microseconds(), l.Max)
	require.EqualValues(t, stats.MaxLatency.Microseconds()+5000, l.Sum)
	require.EqualValues(t, 5000, l.Percentile(1)/40*40)
}

// All recorders are written while the collector cuts: nothing may be lost, and no snapshot may show a message as
// completed or received before it shows it as sent.
func TestCollectorUnderLoad(t *testing.T) {
	const workers, each = 4, 20_000
	now := time.Now()
	var ps []*stats.ProducerRecorder
	var cs []*stats.ConsumerRecorder
	for range workers {
		ps = append(ps, stats.NewProducerRecorder(true, nil))
		cs = append(cs, stats.NewConsumerRecorder())
	}
	c := stats.NewCollector(ps, cs, now)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			for n := range each {
				ps[i].Begun(stats.Measure)
				if n%100 == 99 {
					ps[i].TakenBack(stats.Measure)
					continue
				}
				receive(cs[i], time.Microsecond, false)
				done(ps[i], driver.Outcome{}, time.Microsecond, time.Microsecond)
				ps[i].Handed(stats.Measure, time.Microsecond)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	var sum, before [result.NumCounters]uint64
	var delay, ack, resp, transfer int64
	cut := func(last bool) {
		now = now.Add(time.Second)
		s := c.Collect(stats.Measure, now, last)
		require.LessOrEqual(t, s.Total.Get(result.Received), s.Total.Get(result.Sent))
		require.LessOrEqual(t, s.Total.Get(result.Completed), s.Total.Get(result.Sent))
		require.GreaterOrEqual(t, s.Total.Get(result.Sent), before[result.Sent])
		require.Equal(t, before, sum)
		before = s.Total.Values()
		sum[result.Sent] += s.Get(result.Sent)
		sum[result.Completed] += s.Get(result.Completed)
		sum[result.Received] += s.Get(result.Received)
		delay += s.Latencies[result.Delay].Count
		ack += s.Latencies[result.Ack].Count
		resp += s.Latencies[result.Response].Count
		transfer += s.Latencies[result.Transfer].Count
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		cut(false)
	}
	cut(true)
	const want = workers * each / 100 * 99
	run := c.SumRun()
	require.EqualValues(t, want, run.Total.Get(result.Sent))
	require.EqualValues(t, want, run.Total.Get(result.Completed))
	require.EqualValues(t, want, run.Total.Get(result.Received))
	require.Equal(t, []int64{want, want, want, want}, []int64{delay, ack, resp, transfer})
	l := c.SumRun().Latencies
	require.Equal(t, []int64{want, want, want, want},
		[]int64{l[result.Delay].Count, l[result.Ack].Count, l[result.Response].Count, l[result.Transfer].Count})
}

func TestRecordersAllocateNothing(t *testing.T) {
	p, k := stats.NewProducerRecorder(true, nil), stats.NewConsumerRecorder()
	o := driver.Outcome{}
	bad := driver.Outcome{State: driver.Rejected, Class: driver.ClassFull}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		p.Begun(stats.Measure)
		p.Handed(stats.Measure, time.Millisecond)
		p.Blocked()
		p.Late()
		done(p, o, time.Millisecond, time.Second)
		done(p, bad, time.Millisecond, time.Second)
		receive(k, time.Millisecond, true)
		k.Received(stats.Receipt{Due: stats.Measure, Redelivered: true})
		k.Foreign(0)
	}))
}

// done ends a message that was due after the warm-up, with these latencies.
func done(r *stats.ProducerRecorder, o driver.Outcome, ack, response time.Duration) {
	r.Done(stats.End{Due: stats.Measure, Intended: -response, Actual: -ack}, o, 0)
}

// receive counts a message that was due after the warm-up.
func receive(r *stats.ConsumerRecorder, transfer time.Duration, redelivered bool) {
	r.Received(stats.Receipt{Due: stats.Measure, Stamped: true, Transfer: transfer, Redelivered: redelivered})
}

// A message that has ended before its driver says that it took it counts as sent; its delay becomes known in the next
// interval, which is not empty.
func TestDelayBehindTheEnd(t *testing.T) {
	start := time.Now()
	r := stats.NewProducerRecorder(true, nil)
	c := collectorOf(start, r, nil)
	r.Begun(stats.Measure)
	r.Done(stats.End{Due: stats.Measure}, driver.Outcome{}, time.Millisecond)
	s := c.Collect(stats.Measure, start.Add(time.Second), false)
	require.EqualValues(t, 1, s.Get(result.Sent))
	require.False(t, s.Empty())
	r.Handed(stats.Measure, 0)
	s = c.Collect(stats.Drain, start.Add(1001*time.Millisecond), false)
	require.Equal(t, [result.NumCounters]uint64{}, s.Values())
	require.EqualValues(t, 1, s.Latencies[result.Delay].Count)
	require.False(t, s.Empty())
	s = c.Collect(stats.Drain, start.Add(1002*time.Millisecond), true)
	require.True(t, s.Empty())
}

// Messages without an answer are overcome by an accepted one that was sent later, whenever it ends; outages count
// theirs.
func TestOvercome(t *testing.T) {
	t.Parallel()
	p := stats.NewProducerRecorder(false, nil)
	end := func(sent time.Duration, o driver.Outcome, outage bool) {
		p.Done(stats.End{Due: stats.Measure, Actual: sent, Outage: outage}, o, sent+time.Minute)
	}
	late := driver.Outcome{State: driver.Unknown, Class: driver.ClassTimeout}
	cut := driver.Outcome{State: driver.Unknown, Class: driver.ClassConnectionLost}
	steps := []struct {
		sent   time.Duration
		o      driver.Outcome
		outage bool
		want   uint64
	}{
		{1, late, false, 0},
		{2, driver.Outcome{}, false, 1}, // sent after it
		{5, late, false, 1},
		{4, late, false, 1},             // ended together, in the order of their places
		{3, driver.Outcome{}, false, 1}, // sent before both
		{6, driver.Outcome{}, false, 3},
		{5, late, false, 4}, // sent before a message that has been accepted
		{7, late, false, 4},
		{8, cut, true, 4}, // counted by its outage
		{8, late, true, 4},
		{8, driver.Outcome{State: driver.Unknown, Class: driver.ClassProtocol}, false, 4},
		{9, driver.Outcome{State: driver.Rejected}, false, 4},
		{10, driver.Outcome{}, false, 5},
		{11, cut, false, 5},
		{12, driver.Outcome{}, false, 6},
	}
	for i, step := range steps {
		end(step.sent*time.Second, step.o, step.outage)
		require.Equal(t, step.want, p.Overcome(), "step %d", i)
	}
}
