package transport

import (
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// pulse keeps an idle connection alive with heartbeats, and ends a connection with a silent peer. It has a timer and no
// goroutine.
type pulse struct {
	owed     time.Duration // heartbeat interval that the peer requires; 0 for none
	patience time.Duration // silence of the peer after which the connection ends; 0 for no limit
	beat     func([]byte) []byte
	setting  string // that ends a silent connection

	mu    sync.Mutex
	timer *time.Timer // nil: not started, or stopped
	every time.Duration
	// As of the last check.
	writes, heard  uint32
	wrote          time.Time
	waited, silent time.Duration // by the reader, for bytes
}

// startPulse begins to check the connection, if it needs that: four times in the shorter of the two times.
func (c *Conn) startPulse() {
	p := &c.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	every := p.owed
	if every == 0 || p.patience > 0 && p.patience < every {
		every = p.patience
	}
	if every > 0 {
		p.every = max(every/4, time.Millisecond)
		p.wrote, p.waited = time.Now(), c.Raw.Reading().Time
		p.timer = time.AfterFunc(p.every, c.checkPulse)
	}
}

// stopPulse ends the checks, and returns when they have ended.
func (c *Conn) stopPulse() {
	c.pulse.mu.Lock()
	defer c.pulse.mu.Unlock()
	if c.pulse.timer != nil {
		c.pulse.timer.Stop()
		c.pulse.timer = nil
	}
}

// checkPulse sends a heartbeat, or ends the connection, if that is due.
func (c *Conn) checkPulse() {
	p := &c.pulse
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil || c.Dead() {
		return
	}
	now := time.Now()
	if n := c.Out.Writes(); n != p.writes {
		p.writes, p.wrote = n, now
	} else if p.owed > 0 && now.Sub(p.wrote) >= p.owed/2 {
		_ = c.Put(p.beat)
	}
	// A reader that delivers does not read, and a stopped process stops the reader, too: only time that the reader has
	// waited counts as silence, and a late check counts no more of it than a timely one.
	waited := c.Raw.Reading().Time
	p.silent += min(waited-p.waited, 2*p.every)
	p.waited = waited
	if n := c.Heard.Load(); n != p.heard {
		p.heard, p.silent = n, 0
	} else if p.patience > 0 && p.silent >= p.patience {
		c.Fail(driver.Errorf(driver.ClassConnectionLost, "", "is the broker paused or the network down? See "+p.setting,
			"nothing was heard from the broker for %s", p.patience))
	}
	p.timer.Reset(p.every)
}
