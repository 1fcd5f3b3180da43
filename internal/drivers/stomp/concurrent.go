package stomp

import (
	"context"
	"sync"
)

// workers deliver several messages of a consumer at once, and acknowledge each by itself.
type workers struct {
	k       *consumer
	work    chan heldMessage
	running sync.WaitGroup
}

func newWorkers(k *consumer) *workers {
	w := &workers{k: k, work: make(chan heldMessage)}
	for range k.workers {
		w.running.Go(w.run)
	}
	return w
}

func (w *workers) run() {
	k := w.k
	for m := range w.work {
		verdict := k.deliver(&m.delivery)
		if k.mode == ackIndividual {
			k.answer(verdict, m.ack())
			k.conn.out.Flush()
		}
		k.mu.Lock()
		k.bytes -= len(m.text) + heldSize
		k.mu.Unlock()
		notify(k.unheld)
	}
}

// deliver hands out the messages held so far. The lock of the consumer is held when it begins and ends, and not in
// between.
func (w *workers) deliver(ctx context.Context) {
	k := w.k
	list := k.held
	k.held = nil // its memory is with the workers
	k.mu.Unlock()
	defer k.mu.Lock()
	for i := range list {
		select {
		case <-ctx.Done():
			k.left = list[i:]
			return
		case <-k.conn.Over():
			return
		default:
		}
		select {
		case w.work <- list[i]:
		case <-ctx.Done():
			k.left = list[i:]
			return
		case <-k.conn.Over():
			return
		}
	}
}

// end returns when all have ended.
func (w *workers) end() {
	close(w.work)
	w.running.Wait()
}
