package rocketmq

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// maxBatchBytes bounds the body of a batch of smaller messages, so that it stays below the usual maxMessageSize of
// brokers, 4 MiB.
const maxBatchBytes = 3 << 20

// batcher gathers messages of a producer into requests with several messages each.
type batcher struct {
	p    *producer
	size int // messages per batch

	mu      sync.Mutex
	filling *batch   // nil if none is being filled
	ready   []*batch // detached and not sent yet, in their order
	free    []*batch
	timer   *time.Timer
	stopped bool

	requests, failed atomic.Uint64 // of requests that have ended

	// sending is held from taking a batch out of ready until it is sent, and guards the producer's head and its choice of
	// queue. Answers never take it.
	sending sync.Mutex
}

// batch is one request with several messages, for one queue.
type batch struct {
	b     *batcher
	slots []driver.Slot
	body  []byte
	born  int64
	kind  *kind // of the first message; all share its group
}

func newBatcher(p *producer, maxPending int) *batcher {
	b := &batcher{p: p, size: min(p.opts.BatchSize, maxPending)}
	b.timer = time.AfterFunc(time.Hour, b.linger)
	b.timer.Stop()
	return b
}

// add adds a message to the batch and sends the batch if it is full. Without batch-linger, a batch ends when no more
// messages follow.
func (b *batcher) add(ctx context.Context, m *driver.Message) error {
	p := b.p
	k, linger := &p.kinds[m.Variant], p.opts.BatchLinger
	if b.detachIf(func(t *batch) bool { return t.kind.group != k.group || len(t.body)+len(k.body) > maxBatchBytes }) {
		b.sendReady(ctx, true)
	}
	if err := p.reachable(k); err != nil {
		p.flushHeld()
		return err
	}
	b.mu.Lock()
	if b.filling == nil {
		b.filling = b.take()
		b.filling.born, b.filling.kind = m.Time, k
		if b.size > 1 && linger > 0 {
			b.timer.Reset(linger)
		}
	}
	t := b.filling
	t.slots = append(t.slots, m.Slot)
	body, at := wire.BeginBatched(t.body, 0, k.body)
	body = p.appendProperties(body, k, m)
	wire.EndBatched(body, at, len(k.body))
	t.body = body
	p.inFlight.Add(1)
	b.mu.Unlock()
	// From here on the batch reports the outcome of the message.
	if b.detachIf(func(t *batch) bool { return len(t.slots) >= b.size || linger == 0 && !m.More }) {
		b.sendReady(ctx, true)
	}
	if !m.More {
		p.flushHeld()
	}
	return nil
}

// detachIf makes the batch that is being filled ready to be sent if condition holds.
func (b *batcher) detachIf(condition func(*batch) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.filling == nil || !condition(b.filling) {
		return false
	}
	b.ready = append(b.ready, b.filling)
	b.filling = nil
	b.timer.Stop()
	return true
}

// take returns a batch that is not in use.
func (b *batcher) take() *batch {
	n := len(b.free)
	if n == 0 {
		return &batch{b: b}
	}
	t := b.free[n-1]
	b.free = b.free[:n-1]
	t.slots, t.body = t.slots[:0], t.body[:0]
	return t
}

// sendReady sends the batches that are ready. Send and the timer may come at the same time, with a batch each: the
// first to come sends the batch that was detached first. The timer waits neither for room, which would keep Send from
// ending with its context, nor for Send, but comes again; batches that Send sends are to be let go.
func (b *batcher) sendReady(ctx context.Context, send bool) {
	for {
		if send {
			b.sending.Lock()
		} else if !b.sending.TryLock() {
			b.comeAgain()
			return
		}
		t := b.nextReady()
		if t == nil {
			b.sending.Unlock()
			return
		}
		next := b.p.next
		q, err := b.p.queue(t.kind)
		sent := true
		if err == nil {
			head := b.p.header(q, t.kind, nil, t.born, t.body)
			e := call{to: t, limit: b.p.limit}
			if send {
				b.p.hold(q.conn)
				err = q.conn.submit(ctx, b.p.socket, head, t.body, true, e)
			} else {
				sent, err = q.conn.trySubmit(head, t.body, e)
			}
		}
		if !sent && err == nil {
			b.p.next = next
			b.putBack(t)
			b.sending.Unlock()
			return
		}
		b.sending.Unlock()
		if err != nil { // its messages were never sent, but the batch reports them
			t.answer(0, &reply{err: err})
		}
	}
}

// nextReady removes and returns the first ready batch; nil if there is none.
func (b *batcher) nextReady() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return nil
	}
	t := b.ready[0]
	b.ready = b.ready[:copy(b.ready, b.ready[1:])]
	return t
}

// putBack returns a batch to the front of the ready batches. The next Send, or the timer, sends it.
func (b *batcher) putBack(t *batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready = slices.Insert(b.ready, 0, t)
	b.timer.Reset(max(b.p.opts.BatchLinger, time.Millisecond))
}

// comeAgain lets the timer look again soon, if a batch is left.
func (b *batcher) comeAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.filling != nil || len(b.ready) > 0 {
		b.timer.Reset(max(b.p.opts.BatchLinger, time.Millisecond))
	}
}

// linger sends a batch that did not get full in time, after those for which there was no room before.
func (b *batcher) linger() {
	b.sendReady(context.Background(), false)
	if b.detachIf(func(*batch) bool { return !b.stopped && len(b.ready) == 0 }) {
		b.sendReady(context.Background(), false)
	}
}

// flush sends the remaining batches. The caller calls flushHeld.
func (b *batcher) flush(ctx context.Context) {
	b.detachIf(func(*batch) bool { return true })
	b.sendReady(ctx, true)
}

// stop is the last flush: it ends the timer.
func (b *batcher) stop(ctx context.Context) {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.flush(ctx)
}

// answer processes the answer to a batch, which applies to each of its messages.
func (t *batch) answer(_ uint64, r *reply) {
	b, n := t.b, int64(len(t.slots))
	o := outcome(b.p.op, r)
	b.requests.Add(1)
	if o.State != driver.Accepted {
		b.failed.Add(1)
	}
	b.p.done.DoneAll(t.slots, o)
	b.mu.Lock()
	b.free = append(b.free, t)
	b.mu.Unlock()
	b.p.settled(n)
}
