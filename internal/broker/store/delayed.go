package store

import (
	"container/heap"
	"sync"
	"time"
)

// Delayed holds items until they are due. It is safe for concurrent use.
type Delayed[T any] struct {
	mu      sync.Mutex
	heap    dueItems[T]
	seq     uint64
	timer   *time.Timer
	firing  bool // due items are being handed over
	stopped bool
}

type dueItem[T any] struct {
	item T
	at   int64  // nanoseconds since the Unix epoch
	seq  uint64 // keeps items of one time in order
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

// Add schedules a call of due with the item. It returns false after Stop.
func (d *Delayed[T]) Add(at int64, item T, due func(T)) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return false
	}
	d.seq++
	heap.Push(&d.heap, dueItem[T]{item, at, d.seq})
	if d.heap[0].seq == d.seq && !d.firing {
		d.arm(due)
	}
	return true
}

func (d *Delayed[T]) arm(due func(T)) {
	if d.timer != nil {
		d.timer.Stop()
	}
	wait := max(0, time.Until(time.Unix(0, d.heap[0].at)))
	d.timer = time.AfterFunc(wait, func() { d.fire(due) })
}

// fire hands over the due items, in order.
func (d *Delayed[T]) fire(due func(T)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.firing { // a timer fired while it was replaced
		return
	}
	d.firing = true
	for now := time.Now().UnixNano(); len(d.heap) > 0 && d.heap[0].at <= now; {
		item := heap.Pop(&d.heap).(dueItem[T]).item
		d.mu.Unlock()
		due(item)
		d.mu.Lock()
	}
	if d.firing = false; len(d.heap) > 0 {
		d.arm(due)
	}
}

// Stop stops the timer and calls f for each remaining item.
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
