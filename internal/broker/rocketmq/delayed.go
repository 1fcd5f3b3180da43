package rocketmq

import (
	"container/heap"
	"fmt"
	"strings"
	"sync"
	"time"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// delayed holds messages whose time has not come.
type delayed struct {
	mu      sync.Mutex
	heap    dueMessages
	seq     uint64
	timer   *time.Timer
	stopped bool
}

type due struct {
	m   *message
	at  int64  // nanoseconds since the Unix epoch
	seq uint64 // keeps the order of messages that are due at once
}

type dueMessages []due

func (h dueMessages) Len() int { return len(h) }
func (h dueMessages) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h dueMessages) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *dueMessages) Push(x any)   { *h = append(*h, x.(due)) }
func (h *dueMessages) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last] = due{}
	*h = (*h)[:last]
	return d
}

func (d *delayed) add(t *topic, m *message, at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.seq++
	heap.Push(&d.heap, due{m, at, d.seq})
	if d.heap[0].seq == d.seq {
		d.arm(t)
	}
}

func (d *delayed) arm(t *topic) {
	wait := max(0, time.Until(time.Unix(0, d.heap[0].at)))
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, func() { d.ripen(t) })
		return
	}
	d.timer.Reset(wait)
}

// ripen stores the messages that are due.
func (d *delayed) ripen(t *topic) {
	d.mu.Lock()
	defer d.mu.Unlock() // so that the messages stay in order
	if d.stopped {
		return
	}
	now := time.Now()
	for len(d.heap) > 0 && d.heap[0].at <= now.UnixNano() {
		t.append(heap.Pop(&d.heap).(due).m, now.UnixMilli())
	}
	if len(d.heap) > 0 {
		d.arm(t)
	}
}

func (d *delayed) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped, d.heap = true, nil
	if d.timer != nil {
		d.timer.Stop()
	}
}

// config answers GET_BROKER_CONFIG with the settings that clients look for.
func (c *conn) config(r *wire.Frame) error {
	var b strings.Builder
	b.WriteString("messageDelayLevel=")
	for i, level := range delayLevels() {
		if i > 0 {
			b.WriteByte(' ')
		}
		switch {
		case level >= time.Hour:
			fmt.Fprintf(&b, "%dh", level/time.Hour)
		case level >= time.Minute:
			fmt.Fprintf(&b, "%dm", level/time.Minute)
		default:
			fmt.Fprintf(&b, "%ds", level/time.Second)
		}
	}
	c.w.withBody(r, []byte(b.String()+"\n"))
	return nil
}

// delayLevels are those of the broker's setting messageDelayLevel, from level 1.
func delayLevels() []time.Duration {
	return []time.Duration{
		time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
		4 * time.Minute,
		5 * time.Minute, 6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute,
		20 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour,
	}
}

// delayOf returns how long a delay level is; 0 for none.
func delayOf(level int64) time.Duration {
	levels := delayLevels()
	if level <= 0 {
		return 0
	}
	return levels[min(level, int64(len(levels)))-1]
}
