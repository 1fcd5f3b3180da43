package drivertest

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// relay sends messages named base, base+1, ... one after the other, by TrySend where possible: from within Done, or
// from the goroutine of run.
type relay struct {
	*sender
	try   driver.TrySender
	n     int
	again chan struct{} // run must send the next message

	mu   sync.Mutex
	next int
}

// testTrySend: a message is sent exactly if TrySend returns true.
func testTrySend(e *env) {
	const n = 200
	out, in := e.pair(e.open(), func(s *driver.ProducerSpec) { s.MaxPending = 1 })
	try, ok := out.producer.(driver.TrySender)
	require.True(e, ok, "a producer is a driver.TrySender, and another of the same factory is not")
	r := &relay{sender: out, try: try, n: n, again: make(chan struct{}, 1)}
	out.ending = r.ended
	require.NoError(e, e.bounded(e.cfg.Timeout+grace, "sending by TrySend", r.run))
	out.accepted()
	in.expect(base, n)
	require.NoError(e, out.verify())
}

// run sends the messages that were not sent from within Done.
func (r *relay) run() error {
	ctx := r.e.soon()
	for {
		slot, err := r.begin(ctx)
		if err != nil {
			return err
		}
		r.mu.Lock()
		over := r.next == r.n
		if over {
			r.undo(slot)
		} else if m := (driver.Message{Slot: slot, Time: base + int64(r.next)}); !r.try.TrySend(&m) {
			err = r.producer.Send(ctx, &m)
		}
		r.next++
		r.mu.Unlock()
		if err != nil || over {
			return err
		}
		select {
		case <-r.again:
		case <-ctx.Done():
			return fmt.Errorf("no message has ended: Done was called for %s: %w", r.ledger, ctx.Err())
		}
	}
}

// ended runs within Done.
func (r *relay) ended() {
	if !r.mu.TryLock() || !r.relayed() { // locked: Send or TrySend is running
		select {
		case r.again <- struct{}{}:
		default:
		}
	}
}

// relayed sends the next message, and returns whether TrySend did. It unlocks mu.
func (r *relay) relayed() bool {
	defer r.mu.Unlock()
	if r.next >= r.n {
		return false
	}
	select {
	case slot := <-r.free:
		r.claim(slot)
		if !r.try.TrySend(&driver.Message{Slot: slot, Time: base + int64(r.next)}) {
			r.undo(slot)
			return false
		}
		r.next++
		return true
	default: // run has taken it
		return false
	}
}
