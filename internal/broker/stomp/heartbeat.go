package stomp

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// heartbeat sends heart-beats and ends silent connections. It is a timer, not a goroutine.
type heartbeat struct {
	mu     sync.Mutex
	conn   *conn
	timer  *time.Timer
	period time.Duration
	send   bool
	limit  time.Duration // of silence; 0 for none

	writes, reads uint64
	silence       time.Duration
}

var errSilent = errors.New("the client is silent")

// start starts the timer: send is the interval of our heart-beats, limit the longest silence of the client; 0 for none.
func (h *heartbeat) start(c *conn, send, limit time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.period = send / 3; send == 0 || limit > 0 && limit < 2*send {
		h.period = limit / 6 // a third of the client's interval
	}
	h.conn, h.send, h.limit, h.period = c, send > 0, limit, max(h.period, time.Millisecond)
	h.writes, h.reads, h.silence = c.writes.Load(), c.reads.Load(), 0
	if send > 0 || limit > 0 {
		h.timer = time.AfterFunc(h.period, h.tick)
	}
}

// stop stops the timer, and waits for a running tick.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer != nil {
		h.timer.Stop()
		h.timer = nil
	}
}

func (h *heartbeat) tick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer == nil {
		return
	}
	c := h.conn
	if n := c.writes.Load(); n != h.writes {
		h.writes = n
	} else if h.send {
		c.mu.Lock()
		c.beat = true
		c.mu.Unlock()
		c.wakeWriter()
	}
	if n := c.reads.Load(); n != h.reads || !c.reading.Load() { // silence counts only while the reader waits for input
		h.reads, h.silence = n, 0
	} else if h.silence += h.period; h.limit > 0 && h.silence > h.limit {
		c.close(fmt.Errorf("%w: nothing was heard for %s", errSilent, h.limit))
		return
	}
	h.timer.Reset(h.period)
}
