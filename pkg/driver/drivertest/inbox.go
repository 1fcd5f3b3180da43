package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// received is what came with one delivery.
type received struct {
	stamp       int64
	id          driver.ID
	body        []byte
	redelivered bool
}

// inbox is a consumer and what it received.
type inbox struct {
	e        *env
	consumer driver.Consumer
	cancel   context.CancelFunc
	result   chan error
	running  bool
	stopped  bool
	onMsg    func(n int) // called within deliver with the number of messages so far, without the lock

	mu      sync.Mutex
	got     []received
	busy    bool
	wrong   []string
	changed chan struct{}
}

// consumer subscribes; nothing is received before run.
func (e *env) consumer(d driver.Driver, spec driver.ConsumerSpec) *inbox {
	e.Helper()
	c, err := d.Consumer(e.soon(), spec)
	require.NoErrorf(e, err, "open a consumer on %s", spec.Destination)
	require.NotNil(e, c, "Consumer returned no error and no consumer")
	b := &inbox{e: e, consumer: c, result: make(chan error, 1), changed: make(chan struct{}, 1)}
	e.Cleanup(b.close)
	e.final = append(e.final, b.verify)
	return b
}

// receiver subscribes and receives.
func (e *env) receiver(d driver.Driver, spec driver.ConsumerSpec) *inbox {
	e.Helper()
	return e.consumer(d, spec).run()
}

func (b *inbox) run() *inbox {
	ctx, cancel := context.WithCancel(b.e.ctx)
	b.cancel, b.running = cancel, true
	go func() { b.result <- b.consumer.Run(ctx, b.deliver) }()
	return b
}

func (b *inbox) deliver(d *driver.Delivery) driver.Verdict {
	b.mu.Lock()
	switch {
	case b.busy:
		b.wrong = append(b.wrong, "deliver was called while another call had not returned")
	case b.stopped:
		b.wrong = append(b.wrong, "deliver was called after Run had returned")
	case !d.HasTime:
		b.wrong = append(b.wrong, "a message came without its time property")
	}
	b.busy = true
	b.got = append(b.got, received{stamp: d.Time, id: d.ID, body: bytes.Clone(d.Body), redelivered: d.Redelivered})
	n := len(b.got)
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	if b.onMsg != nil {
		b.onMsg(n)
	}
	b.mu.Lock()
	b.busy = false
	b.mu.Unlock()
	return driver.Accept
}

// messages returns what was received so far.
func (b *inbox) messages() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *inbox) stamps() []int64 { return stampsOf(b.messages()) }

func stampsOf(list []received) []int64 {
	stamps := make([]int64, 0, len(list))
	for _, m := range list {
		stamps = append(stamps, m.stamp)
	}
	return stamps
}

// count returns how many messages were received so far.
func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

// await waits until f holds; what says what is awaited.
func (e *env) await(what string, changed <-chan struct{}, f func() error) {
	e.Helper()
	deadline := time.NewTimer(e.cfg.Timeout)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline.C:
			require.FailNowf(e, "timeout", "%s: after %v %v", what, e.cfg.Timeout, err)
		}
	}
}

// expect waits for exactly the messages first, first+1, ..., n of them, in any order, each once.
func (b *inbox) expect(first int64, n int) {
	b.e.Helper()
	b.e.await("receive", b.changed, func() error {
		if b.count() >= n {
			return nil
		}
		return compare(b.stamps(), first, n)
	})
	require.NoError(b.e, compare(b.stamps(), first, n))
}

// compare tells how the stamps differ from first, first+1, ..., n of them.
func compare(stamps []int64, first int64, n int) error {
	times := map[int64]int{}
	var missing, twice, foreign []int64
	for _, s := range stamps {
		times[s]++
		if times[s] == 2 {
			twice = append(twice, s-first)
		}
		if s < first || s >= first+int64(n) {
			foreign = append(foreign, s)
		}
	}
	for i := range int64(n) {
		if times[first+i] == 0 {
			missing = append(missing, i)
		}
	}
	if len(missing)+len(twice)+len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("received %d messages instead of %d: %d missing %v, %d more than once %v, %d with an unknown time property %v",
		len(stamps), n, len(missing), few(missing), len(twice), few(twice), len(foreign), few(foreign))
}

func few(list []int64) []int64 { return list[:min(len(list), 5)] }

// nothing checks that no message comes beyond the n there are.
func (b *inbox) nothing(beyond int) {
	b.e.Helper()
	pause(b.e.cfg.Quiet)
	require.Lenf(b.e, b.stamps(), beyond, "more messages came than were due, after %d", beyond)
}

// stop ends Run, which must return nil, promptly.
func (b *inbox) stop() {
	b.e.Helper()
	if !b.running {
		return
	}
	b.running = false
	b.cancel()
	err := b.e.bounded(b.e.cfg.Timeout, "Consumer.Run, after the end of its context,", func() error { return <-b.result })
	require.NoError(b.e, err, "Consumer.Run after the end of its context")
	b.finished()
}

// fails waits for Run to return an error by itself.
func (b *inbox) fails() error {
	b.e.Helper()
	b.running = false
	err := b.e.bounded(b.e.cfg.Timeout, "Consumer.Run, on a broken connection,", func() error { return <-b.result })
	b.cancel()
	b.finished()
	return err
}

// finished says that deliver may not be called any more.
func (b *inbox) finished() {
	b.e.Helper()
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.verify()
}

// verify fails the test if deliver was called wrongly.
func (b *inbox) verify() {
	b.e.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.e, b.wrong[:min(len(b.wrong), 5)], "calls of deliver")
}

// close stops and closes the consumer, twice.
func (b *inbox) close() {
	b.e.Helper()
	if b.consumer == nil {
		return
	}
	b.stop()
	c := b.consumer
	b.consumer = nil
	for _, which := range []string{"Consumer.Close", "Consumer.Close, called again,"} {
		b.e.closes(b.e.closing(), which, c.Close)
	}
	b.verify()
}
