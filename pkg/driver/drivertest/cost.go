package drivertest

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// meterLoad sends and receives without allocating itself.
type meterLoad struct {
	free     chan driver.Slot
	producer driver.Producer
	received atomic.Int64
}

// Done implements [driver.Completions].
func (l *meterLoad) Done(slot driver.Slot, _ driver.Outcome) {
	l.free <- driver.NewSlot(slot.Index(), slot.Generation()+1)
}

// DoneAll implements [driver.Completions].
func (l *meterLoad) DoneAll(slots []driver.Slot, o driver.Outcome) {
	for _, slot := range slots {
		l.Done(slot, o)
	}
}

func (l *meterLoad) deliver(*driver.Delivery) driver.Verdict {
	l.received.Add(1)
	return driver.Accept
}

// run sends n messages and waits until they have been received and all sends have ended.
func (l *meterLoad) run(ctx context.Context, n int64) error {
	want := l.received.Load() + n
	m := driver.Message{Time: base}
	for range n {
		select {
		case m.Slot = <-l.free:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := l.producer.Send(ctx, &m); err != nil {
			return err
		}
	}
	tick := time.NewTicker(time.Millisecond) // a timer for each wait would allocate
	defer tick.Stop()
	for (l.received.Load() < want || len(l.free) < cap(l.free)) && ctx.Err() == nil {
		<-tick.C
	}
	return ctx.Err()
}

// testAllocations counts the allocations of the whole process while messages are sent and received. Some are not caused
// by messages, so the best of several rounds counts.
func testAllocations(e *env) {
	const slots, warmUp, n, rounds, slack = 100, 3000, 5000, 5, 0.05
	d, dest := e.open(), e.dest()
	l := &meterLoad{free: make(chan driver.Slot, slots)}
	for i := range uint32(slots) {
		l.free <- driver.NewSlot(i, 1)
	}
	consumer, err := d.Consumer(e.soon(), consumerSpec(dest))
	require.NoError(e, err, "open a consumer")
	e.Cleanup(func() { e.closes(e.closing(), "Consumer.Close", consumer.Close) })
	l.producer, err = d.Producer(e.soon(), producerSpec(dest), l)
	require.NoError(e, err, "open a producer")
	e.Cleanup(func() { e.closes(e.closing(), "Producer.Close", l.producer.Close) })
	ctx, cancel := context.WithCancel(e.ctx)
	result := make(chan error, 1)
	go func() { result <- consumer.Run(ctx, l.deliver) }()
	e.Cleanup(func() {
		cancel()
		require.NoError(e, e.bounded(e.cfg.Timeout, "Consumer.Run", func() error { return <-result }))
	})

	sending, stop := context.WithTimeout(e.ctx, 3*e.cfg.Timeout)
	defer stop()
	require.NoError(e, l.run(sending, warmUp))
	best := -1.0
	limit := e.cfg.Allocations + slack
	if raceDetector { // the race detector makes pools drop items
		limit += 2
	}
	for round := 0; round < rounds && (best < 0 || best > limit); round++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := l.run(sending, n)
		runtime.ReadMemStats(&after)
		require.NoError(e, err)
		if perMessage := float64(after.Mallocs-before.Mallocs) / n; best < 0 || perMessage < best {
			best = perMessage
		}
	}
	e.Logf("%.3f allocations per message", best)
	require.LessOrEqualf(e, best, limit, "allocations of memory per message that is sent and received")
}
