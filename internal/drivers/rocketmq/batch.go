package rocketmq

import (
	"cmp"
	"context"
	"sync"
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

	// turn is held from taking a batch until it is sent, so that batches keep their order, and guards the producer's
	// head and its choice of queue. Answers never take it.
	turn turn
	life context.Context // of the timer's waits; ends with the closing
	end  context.CancelFunc

	free    sync.Pool // of batches
	mu      sync.Mutex
	filling *batch // nil if none is being filled
	timer   *time.Timer
}

// batch is one request with several messages, for one queue.
type batch struct {
	b     *batcher
	slots []driver.Slot
	body  []byte
	born  int64
	group string // of all messages
}

func newBatcher(p *producer, maxPending int) *batcher {
	b := &batcher{p: p, size: min(p.opts.BatchSize, maxPending), turn: newTurn()}
	b.life, b.end = context.WithCancel(context.Background())
	b.timer = time.AfterFunc(time.Hour, func() { b.sendIf(b.life, false, anyBatch) })
	b.timer.Stop()
	return b
}

func anyBatch(*batch) bool { return true }

// add adds a message to the batch and sends the batch if it is full. Without batch-linger, a batch ends when no more
// messages follow.
func (b *batcher) add(ctx context.Context, m *driver.Message) error {
	p := b.p
	k, linger := &p.kinds[m.Variant], p.opts.BatchLinger
	group := cmp.Or(m.Group, k.group)
	b.sendIf(ctx, true, func(t *batch) bool {
		return t.group != group || len(t.body)+len(k.body) > maxBatchBytes
	})
	if err := p.reachable(group); err != nil {
		p.flushHeld()
		return err
	}
	b.mu.Lock()
	if b.filling == nil {
		t, ok := b.free.Get().(*batch)
		if !ok {
			t = &batch{b: b}
		}
		t.slots, t.body, t.born, t.group = t.slots[:0], t.body[:0], m.Time, group
		b.filling = t
		if b.size > 1 && linger > 0 {
			b.timer.Reset(linger)
		}
	}
	t := b.filling
	t.slots = append(t.slots, m.Slot)
	body, at := wire.BeginBatched(t.body, 0, m.BodyOr(k.body))
	body = p.appendProperties(body, k, m)
	wire.EndBatched(body, at, len(k.body))
	t.body = body
	p.inFlight.Add(1)
	b.mu.Unlock()
	// From here on the batch reports the outcome of the message.
	b.sendIf(ctx, true, func(t *batch) bool { return len(t.slots) >= b.size || linger == 0 && !m.More })
	if !m.More {
		p.flushHeld()
	}
	return nil
}

// sendIf sends the batch that is being filled if condition holds. With more, the caller calls flushHeld. If ctx ends
// before there is room, the batch reports that for its messages, which were never sent.
func (b *batcher) sendIf(ctx context.Context, more bool, condition func(*batch) bool) {
	b.mu.Lock()
	due := b.filling != nil && condition(b.filling)
	b.mu.Unlock()
	if !due {
		return
	}
	err := b.turn.take(ctx, "")
	if err == nil {
		defer b.turn.give()
	}
	b.mu.Lock()
	t := b.filling
	if t == nil || !condition(t) { // Send or the timer was faster
		b.mu.Unlock()
		return
	}
	b.filling = nil
	b.timer.Stop()
	b.mu.Unlock()
	var to *sendBroker
	var queue int
	if err == nil {
		to, queue, err = b.p.queue(*b.p.brokers.Load(), &b.p.next, t.group)
	}
	if err == nil {
		head := b.p.header(to, queue, nil, nil, t.born, t.body)
		if more {
			b.p.hold(to.conn)
		}
		err = to.conn.submit(ctx, b.p.socket, head, t.body, more, call{to: t, limit: b.p.limit})
	}
	if err != nil {
		t.answer(0, &reply{err: err})
	}
}

// stop sends the last batch, and ends the timer's waits.
func (b *batcher) stop(ctx context.Context) {
	defer context.AfterFunc(ctx, b.end)()
	b.sendIf(ctx, true, anyBatch)
	b.end()
}

// answer processes the answer to a batch, which applies to each of its messages.
func (t *batch) answer(_ uint64, r *reply) {
	b, n := t.b, int64(len(t.slots))
	o := outcome(b.p.op, r)
	b.p.done.DoneAll(t.slots, o)
	b.free.Put(t)
	b.p.settled(n)
}
