package rocketmq

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// maxBatchBytes bounds the body of a batch, so that it stays below the usual maxMessageSize of brokers, 4 MiB, if its
// messages are smaller than that themselves.
const maxBatchBytes = 3 << 20

// batcher gathers messages of a producer into requests of several.
type batcher struct {
	p    *producer
	size int // messages per batch

	mu      sync.Mutex
	filling int // index in batches, -1 if none is being filled
	batches []*batch
	free    []uint32
	ready   []uint32 // detached and not sent yet, in their order
	timer   *time.Timer
	stopped bool

	requests, failed atomic.Uint64 // that have ended

	// sending is held from taking a batch out of ready until it is sent, and guards head and the producer's choice of
	// queue. Answers never take it.
	sending sync.Mutex
	head    []byte
}

// batch is some messages of one request, for one queue.
type batch struct {
	slots []driver.Slot
	body  []byte
	born  int64
	kind  *kind // of the first, whose group all have
}

func newBatcher(p *producer, maxPending int) *batcher {
	b := &batcher{p: p, size: min(p.opts.BatchSize, maxPending), filling: -1}
	b.timer = time.AfterFunc(time.Hour, b.linger)
	b.timer.Stop()
	return b
}

// add puts a message into the batch and sends it if it is full. Without a time to linger, a batch ends when no more
// follows.
func (b *batcher) add(ctx context.Context, m *driver.Message) error {
	p := b.p
	k, linger := &p.kinds[m.Variant], p.opts.BatchLinger
	if b.detachIf(func(t *batch) bool { return t.kind.group != k.group || len(t.body)+len(k.body) > maxBatchBytes }) {
		b.sendReady(ctx, true)
	}
	if err := p.reachable(k); err != nil {
		p.letGo()
		return err
	}
	b.mu.Lock()
	if b.filling < 0 {
		b.filling = b.take()
		b.batches[b.filling].born, b.batches[b.filling].kind = m.Time, k
		if b.size > 1 && linger > 0 {
			b.timer.Reset(linger)
		}
	}
	t := b.batches[b.filling]
	t.slots = append(t.slots, m.Slot)
	t.body = p.appendMessage(t.body, k, m)
	p.inFlight.Add(1)
	b.mu.Unlock()
	// From here on the message is the batch's, whatever becomes of that.
	if b.detachIf(func(t *batch) bool { return len(t.slots) >= b.size || linger == 0 && !m.More }) {
		b.sendReady(ctx, true)
	}
	if !m.More {
		p.letGo()
	}
	return nil
}

// detachIf makes the batch that is being filled ready to be sent if the condition holds.
func (b *batcher) detachIf(condition func(*batch) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.filling < 0 || !condition(b.batches[b.filling]) {
		return false
	}
	b.ready = append(b.ready, uint32(b.filling))
	b.filling = -1
	b.timer.Stop()
	return true
}

// appendMessage appends a message as batches hold it.
func (p *producer) appendMessage(b []byte, k *kind, m *driver.Message) []byte {
	b, at := wire.BeginBatched(b, 0, k.body)
	b = p.appendProperties(b, k, m)
	wire.EndBatched(b, at, len(k.body))
	return b
}

// take returns a batch that is not in use.
func (b *batcher) take() int {
	if n := len(b.free); n > 0 {
		i := b.free[n-1]
		b.free = b.free[:n-1]
		t := b.batches[i]
		t.slots, t.body = t.slots[:0], t.body[:0]
		return int(i)
	}
	b.batches = append(b.batches, &batch{})
	return len(b.batches) - 1
}

// sendReady sends the batches that are ready. Send and the timer may come at the same time, with a batch each: the
// first to come sends the batch that was detached first. The timer does not wait for room, which would keep Send from
// ending with its context; batches that Send sends are to be let go.
func (b *batcher) sendReady(ctx context.Context, send bool) {
	for {
		b.sending.Lock()
		i, t := b.nextReady()
		if t == nil {
			b.sending.Unlock()
			return
		}
		q, err := b.p.queue(t.kind)
		if err == nil {
			b.header(q, t)
			e := call{to: b, arg: uint64(i), limit: b.p.limit}
			if send {
				b.p.hold(q.conn)
				err = q.conn.submit(ctx, b.p.socket, b.head, t.body, true, e)
			} else if err = q.conn.post(b.head, t.body, e); err == nil {
				q.conn.out.Flush()
			}
		}
		b.sending.Unlock()
		if err != nil {
			b.end(i, outcomeUnsent(b.p.op, err))
		}
	}
}

// nextReady takes the first of the batches that are ready; nil if there is none.
func (b *batcher) nextReady() (uint32, *batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.ready) == 0 {
		return 0, nil
	}
	i := b.ready[0]
	b.ready = b.ready[:copy(b.ready, b.ready[1:])]
	return i, b.batches[i]
}

func (b *batcher) batch(i uint32) *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.batches[i]
}

// outcomeUnsent is the outcome of messages that were never handed over.
func outcomeUnsent(op string, err error) driver.Outcome {
	return driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: wrap(op, err)}
}

func (b *batcher) header(q *sendQueue, t *batch) {
	h := append(b.head[:0], q.prefix...)
	h = wire.AppendInt(h, "g", t.born/1000)
	h = wire.AppendField(h, "h", "0")
	h, at := wire.OpenField(h, "i") // it must not be empty: the broker would sign "null" in its place
	h = wire.AppendProperty(h, wire.PropWait, "true")
	wire.CloseField(h, at)
	h = append(h, q.suffix...)
	h = b.p.sign.Sign(h, t.body)
	wire.EndFrame(h, len(t.body))
	b.head = h
}

// linger sends a batch that did not get full in time.
func (b *batcher) linger() {
	if b.detachIf(func(*batch) bool { return !b.stopped }) {
		b.sendReady(context.Background(), false)
	}
}

// flush sends the batches that are left. They are to be let go.
func (b *batcher) flush(ctx context.Context) {
	b.detachIf(func(*batch) bool { return true })
	b.sendReady(ctx, true)
}

// stop is flush for the last time: it ends the timer.
func (b *batcher) stop(ctx context.Context) {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	b.flush(ctx)
}

// answer takes the answer to a batch: it is that of each of its messages.
func (b *batcher) answer(arg uint64, r *reply) {
	b.end(uint32(arg), b.p.outcome(r))
} //nolint:gosec // it was made of one

// end reports the end of a batch's messages.
func (b *batcher) end(i uint32, o driver.Outcome) {
	t := b.batch(i)
	n := int64(len(t.slots))
	b.requests.Add(1)
	if o.State != driver.Accepted {
		b.failed.Add(1)
	}
	b.p.done.DoneAll(t.slots, o)
	b.mu.Lock()
	b.free = append(b.free, i)
	b.mu.Unlock()
	b.p.settled(n)
}
