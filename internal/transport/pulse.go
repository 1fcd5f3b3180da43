package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

// Pulse keeps an idle connection alive with heartbeats, and ends a connection with a silent peer. It has a timer and no
// goroutine. The fields are set before [Pulse.Start].
type Pulse struct {
	Ending   *Ending
	Out      *Output
	In       *Metered
	Heard    *atomic.Uint32 // changes with every frame of the peer
	Owed     time.Duration  // heartbeat interval that the peer requires; 0 for none
	Patience time.Duration  // silence of the peer after which the connection ends; 0 for no limit
	Beat     func()         // sends a heartbeat; it must not wait
	Silent   func()         // ends the connection

	mu    sync.Mutex
	timer *time.Timer // nil: not started, or stopped
	every time.Duration

	// As of the last check.
	writes, heard  uint32
	wrote          time.Time
	waited, silent time.Duration // by the reader, for bytes
}

// Start begins to check the connection, if it needs that: four times in the shorter of the two times.
func (p *Pulse) Start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := p.Owed
	if every == 0 || p.Patience > 0 && p.Patience < every {
		every = p.Patience
	}
	if every > 0 {
		p.every = max(every/4, time.Millisecond)
		p.wrote, p.waited = time.Now(), p.In.Reading().Time
		p.timer = time.AfterFunc(p.every, p.look)
	}
}

// Stop ends the checks, and returns when they have ended.
func (p *Pulse) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
}

// look sends a heartbeat, or ends the connection, if that is due.
func (p *Pulse) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil || p.Ending.Dead() {
		return
	}
	now := time.Now()
	if n := p.Out.Writes(); n != p.writes {
		p.writes, p.wrote = n, now
	} else if p.Owed > 0 && now.Sub(p.wrote) >= p.Owed/2 {
		p.Beat()
	}
	// A reader that delivers does not read, and a stopped process stops the reader, too: only time that the reader has
	// waited counts as silence, and a late check counts no more of it than a timely one.
	waited := p.In.Reading().Time
	p.silent += min(waited-p.waited, 2*p.every)
	p.waited = waited
	if n := p.Heard.Load(); n != p.heard {
		p.heard, p.silent = n, 0
	} else if p.Patience > 0 && p.silent >= p.Patience {
		p.Silent()
	}
	p.timer.Reset(p.every)
}
