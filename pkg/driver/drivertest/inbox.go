package drivertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// received is one delivery.
type received struct {
	stamp       int64
	id          driver.ID
	body        []byte
	redelivered bool
	// of a request or reply
	replyTo, replyID, correlation string
}

// inbox is a consumer with the messages that it received.
type inbox struct {
	e        *env
	consumer driver.Consumer
	cancel   context.CancelFunc
	result   chan error
	running  bool
	stopped  bool
	// called within deliver with the number of messages so far, without the lock
	onMsg   func(n int)
	verdict func(m received, before bool) driver.Verdict // before: the message came before; nil accepts

	mu      sync.Mutex
	got     []received
	busy    int // calls of deliver that have not returned
	wrong   []string
	changed chan struct{}
}

// consumer subscribes; nothing is received before run.
func (e *env) consumer(d driver.Driver, spec driver.ConsumerSpec) *inbox {
	e.Helper()
	c, err := d.Consumer(e.soon(), spec)
	require.NoErrorf(e, err, "open a consumer on %s", spec.Destination)
	require.NotNil(e, c, "Consumer returned no error and no consumer")
	return e.inbox(c, spec)
}

func (e *env) inbox(c driver.Consumer, spec driver.ConsumerSpec) *inbox {
	b := &inbox{
		e: e, consumer: c, result: make(chan error, 1), changed: make(chan struct{}, 1),
	}
	e.Cleanup(b.close)
	e.final = append(e.final, b.verify)
	return b
}

// receiver subscribes and receives.
func (e *env) receiver(d driver.Driver, spec driver.ConsumerSpec) *inbox {
	e.Helper()
	return e.consumer(d, spec).run()
}

// again subscribes once more and receives, as soon as the broker permits: it may not have noticed yet that the earlier
// consumer has gone.
func (e *env) again(d driver.Driver, spec driver.ConsumerSpec) *inbox {
	e.Helper()
	var in *inbox
	e.await("subscribe again", nil, func() error {
		c, err := d.Consumer(e.soon(), spec)
		if err == nil {
			in = e.inbox(c, spec).run()
		}
		return err
	})
	return in
}

func (b *inbox) run() *inbox {
	ctx, cancel := context.WithCancel(b.e.ctx)
	b.cancel, b.running = cancel, true
	c := b.consumer
	go func() { b.result <- c.Run(ctx, b.deliver) }()
	return b
}

func (b *inbox) deliver(d *driver.Delivery) driver.Verdict {
	now := received{stamp: d.Time, id: d.ID, body: bytes.Clone(d.Body), redelivered: d.Redelivered}
	now.replyTo, now.replyID, now.correlation = string(d.ReplyTo), string(d.ReplyID()), string(d.Correlation)
	b.mu.Lock()
	switch {
	case b.busy > 0:
		b.complain("deliver was called while another call had not returned")
	case b.stopped:
		b.complain("deliver was called after Run had returned")
	case !d.HasTime:
		b.complain("a message came without its time property")
	}
	b.busy++
	before := slices.ContainsFunc(b.got, func(m received) bool { return m.stamp == now.stamp })
	b.got = append(b.got, now)
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
	defer b.mu.Unlock()
	if string(d.ReplyTo) != now.replyTo || string(d.ReplyID()) != now.replyID ||
		d.Time != now.stamp || d.ID != now.id || !bytes.Equal(d.Body, now.body) {
		b.complain("a message changed while deliver was running")
	}
	b.busy--
	if b.verdict != nil {
		return b.verdict(now, before)
	}
	return driver.Accept
}

func (b *inbox) complain(fault string) {
	if len(b.wrong) < 5 {
		b.wrong = append(b.wrong, fault)
	}
}

// messages returns the messages received so far.
func (b *inbox) messages() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

func (b *inbox) stamps() []int64 {
	list := b.messages()
	stamps := make([]int64, 0, len(list))
	for _, m := range list {
		stamps = append(stamps, m.stamp)
	}
	return stamps
}

// count returns the number of messages received so far.
func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.got)
}

// awaitCount waits until at least n messages have come.
func (b *inbox) awaitCount(n int, what string) {
	b.e.Helper()
	b.e.await(what, b.changed, func() error {
		if got := b.count(); got < n {
			return fmt.Errorf("%d of %d came", got, n)
		}
		return nil
	})
}

// includes waits until the n messages first, first+1, ... have come, perhaps among others.
func (b *inbox) includes(first int64, n int, what string) {
	b.e.Helper()
	b.e.await(what, b.changed, func() error {
		stamps := slices.DeleteFunc(b.stamps(), func(s int64) bool { return s < first || s >= first+int64(n) })
		return compare(stamps, first, n)
	})
}

// expect waits for exactly the n messages first, first+1, ..., in any order, each once.
func (b *inbox) expect(first int64, n int) {
	b.e.Helper()
	b.e.expectTogether(first, n, b)
}

// expectTogether waits until the inboxes have received the n messages first, first+1, ..., each in one inbox only.
func (e *env) expectTogether(first int64, n int, inboxes ...*inbox) {
	e.Helper()
	all := func() (stamps []int64) {
		for _, in := range inboxes {
			stamps = append(stamps, in.stamps()...)
		}
		return stamps
	}
	what := "receive"
	if len(inboxes) > 1 {
		what = "receive on " + strconv.Itoa(len(inboxes)) + " consumers together"
	}
	e.await(what, inboxes[0].changed, func() error {
		got := 0
		for _, in := range inboxes {
			got += in.count()
		}
		if got < n { // comparing at each message would dominate the test
			return difference{all, first, n}
		}
		return nil
	})
	require.NoError(e, compare(all(), first, n))
}

// expectAtRest is expectTogether, after which nothing more may come: a copy may come late, to an inbox that had been
// slow when the others had received all.
func (e *env) expectAtRest(first int64, n int, inboxes ...*inbox) {
	e.Helper()
	e.expectTogether(first, n, inboxes...)
	e.quiet()
	e.expectTogether(first, n, inboxes...)
}

// difference is the error of compare, computed when it is printed.
type difference struct {
	stamps func() []int64
	first  int64
	n      int
}

func (d difference) Error() string { return fmt.Sprint(compare(d.stamps(), d.first, d.n)) }

// compare returns how the stamps differ from the n stamps first, first+1, ....
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
	return fmt.Errorf("received %d messages instead of %d: %d missing %v, %d more than once %v, %d with an unknown time "+
		"property %v",
		len(stamps), n, len(missing), few(missing), len(twice), few(twice), len(foreign), few(foreign))
}

func few[T any](list []T) []T { return list[:min(len(list), 5)] }

// compareSome checks that sent is true for each stamp, and that each occurs at most once.
func compareSome(stamps []int64, sent func(int64) bool) error {
	seen := map[int64]bool{}
	for _, s := range stamps {
		if !sent(s) || seen[s] {
			return fmt.Errorf("message %d was not sent, or came twice", s-base)
		}
		seen[s] = true
	}
	return nil
}

// nothing checks that no further message comes after the given number.
func (b *inbox) nothing(beyond int) {
	b.e.Helper()
	b.e.quiet()
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
	defer b.cancel()
	err := b.e.bounded(b.e.cfg.Timeout, "Consumer.Run, which has to fail,", func() error { return <-b.result })
	b.finished()
	return err
}

// lost waits for Run to return because the connection was lost.
func (b *inbox) lost() {
	b.e.Helper()
	err := b.fails()
	require.Error(b.e, err, "Run returned nil although the connection had ended and its context had not")
	require.Equalf(b.e, driver.ClassConnectionLost, driver.ClassOf(err), "class of the error of Run: %v", err)
}

// finished forbids further calls of deliver.
func (b *inbox) finished() {
	b.e.Helper()
	b.mu.Lock()
	b.stopped = true
	if b.busy > 0 {
		b.complain("Run returned before deliver had")
	}
	b.mu.Unlock()
	require.NoError(b.e, b.verify())
}

// verify returns the mistakes in the calls of deliver.
func (b *inbox) verify() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("calls of deliver: %q", b.wrong)
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
	require.NoError(b.e, b.verify())
}
