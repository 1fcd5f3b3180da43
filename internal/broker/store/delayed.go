package store

import (
	"container/heap"
	"time"
)

// delayed holds messages whose time has not come. It is part of a queue and used with its lock held.
type delayed struct {
	heap  entries
	timer *time.Timer
}

type entries []entry

func (h entries) Len() int { return len(h) }
func (h entries) Less(i, j int) bool {
	if h[i].m.NotBefore != h[j].m.NotBefore {
		return h[i].m.NotBefore < h[j].m.NotBefore
	}
	return h[i].seq < h[j].seq
}
func (h entries) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(x any)   { *h = append(*h, x.(entry)) }
func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = entry{}
	*h = (*h)[:last]
	return e
}

func (d *delayed) add(q *Queue, e entry) {
	heap.Push(&d.heap, e)
	if d.heap[0].seq == e.seq {
		d.arm(q, time.Now())
	}
}

func (d *delayed) arm(q *Queue, now time.Time) {
	wait := max(0, time.Duration(d.heap[0].m.NotBefore-now.UnixNano()))
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, q.ripen)
		return
	}
	d.timer.Reset(wait)
}

func (d *delayed) clear() entries {
	all := d.heap
	d.heap = nil
	if d.timer != nil {
		d.timer.Stop()
	}
	return all
}

// ripen makes the messages available that are due.
func (q *Queue) ripen() {
	var wakes []func()
	q.mu.Lock()
	now := time.Now()
	for h := &q.delayed.heap; len(*h) > 0 && (*h)[0].m.NotBefore <= now.UnixNano(); {
		if wake := q.offer(heap.Pop(h).(entry)); wake != nil {
			wakes = append(wakes, wake)
		}
	}
	if len(q.delayed.heap) > 0 {
		q.delayed.arm(q, now)
	}
	q.mu.Unlock()
	for _, wake := range wakes {
		wake()
	}
}
