package store

import (
	"container/heap"
	"sync"
	"time"
)

// Delayed holds items until their time has come. It is safe for concurrent use.
type Delayed[T any] struct {
	mu      sync.Mutex
	heap    dueItems[T]
	seq     uint64
	timer   *time.Timer
	ripe    bool // items are being handed over
	stopped bool
}

type dueItem[T any] struct {
	item T
	at   int64  // nanoseconds since the Unix epoch
	seq  uint64 // keeps the order of items that are due at once
}

type dueItems[T any] []dueItem[T]

func (h dueItems[T]) Len() int { return len(h) }
func (h dueItems[T]) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h dueItems[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueItems[T]) Push(x any)   { *h = append(*h, x.(dueItem[T])) }
func (h *dueItems[T]) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = dueItem[T]{}
	*h = (*h)[:last]
	return d
}

// Add has ripe called with the item at its time. It returns false after Stop.
func (d *Delayed[T]) Add(at int64, item T, ripe func(T)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.seq++
	heap.Push(&d.heap, dueItem[T]{item, at, d.seq})
	if d.heap[0].seq == d.seq && !d.ripe {
		d.arm(ripe)
	}
	return true
}

func (d *Delayed[T]) arm(ripe func(T)) {
	if d.timer != nil {
		d.timer.Stop()
	}
	wait := max(0, time.Until(time.Unix(0, d.heap[0].at)))
	d.timer = time.AfterFunc(wait, func() { d.ripen(ripe) })
}

// ripen hands over the items that are due, in order.
func (d *Delayed[T]) ripen(ripe func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ripe { // the timer has gone off while it was set anew
		return
	}
	d.ripe = true
	for now := time.Now().UnixNano(); len(d.heap) > 0 && d.heap[0].at <= now; {
		item := heap.Pop(&d.heap).(dueItem[T]).item
		d.mu.Unlock()
		ripe(item)
		d.mu.Lock()
	}
	if d.ripe = false; len(d.heap) > 0 {
		d.arm(ripe)
	}
}

// Stop ends it; f is called for each item that is left.
func (d *Delayed[T]) Stop(f func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.heap {
		f(x.item)
	}
	d.stopped, d.heap = true, nil
	if d.timer != nil {
		d.timer.Stop()
	}
}
