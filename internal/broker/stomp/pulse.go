package stomp

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// pulse sends heart-beats, and ends a connection from which nothing is heard. It is a timer, not a goroutine.
type pulse struct {
	mu     sync.Mutex
	conn   *conn
	timer  *time.Timer
	period time.Duration
	send   bool
	limit  time.Duration // of silence; 0 for none

	wrote, heard uint64
	silence      time.Duration
}

var errSilent = errors.New("the client is silent")

// start begins: send is how often we beat, limit how long the client may be silent; 0 for never.
func (p *pulse) start(c *conn, send, limit time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.period = send / 3; send == 0 || limit > 0 && limit < 2*send {
		p.period = limit / 6 // a third of the client's own interval
	}
	p.conn, p.send, p.limit, p.period = c, send > 0, limit, max(p.period, time.Millisecond)
	p.wrote, p.heard, p.silence = c.wrote.Load(), c.heard.Load(), 0
	if send > 0 || limit > 0 {
		p.timer = time.AfterFunc(p.period, p.tick)
	}
}

// stop ends it; afterwards nothing of it is running.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

func (p *pulse) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return
	}
	c := p.conn
	if n := c.wrote.Load(); n != p.wrote {
		p.wrote = n
	} else if p.send {
		c.mu.Lock()
		c.beat = true
		c.mu.Unlock()
		c.signal()
	}
	if n := c.heard.Load(); n != p.heard || !c.quiet.Load() { // a client whose bytes are not read cannot be heard
		p.heard, p.silence = n, 0
	} else if p.silence += p.period; p.limit > 0 && p.silence > p.limit {
		c.breakOff(fmt.Errorf("%w: nothing was heard for %s", errSilent, p.limit))
		return
	}
	p.timer.Reset(p.period)
}
