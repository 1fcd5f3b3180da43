package amqp

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/xdg-go/scram"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// amqpDriver is a [driver.Driver]: a set of connections by key.
type amqpDriver struct {
	transport.Identity
	cfg    config
	pool   transport.Pool[*connection]
	mem    transport.Buffers
	large  largeBuffers
	keeper keeper

	inspector inspector

	mu      sync.Mutex
	streams map[string]bool          // of RabbitMQ: those with a consumer
	scram   map[string]*scram.Client // by mechanism
}

func newDriver(cfg config) *amqpDriver {
	d := &amqpDriver{cfg: cfg, streams: map[string]bool{}, scram: map[string]*scram.Client{}}
	d.pool.Open = d.dial
	return d
}

// Close implements [driver.Driver].
func (d *amqpDriver) Close(ctx context.Context) error {
	d.pool.Close(ctx)
	return nil
}

var (
	_ driver.Driver     = (*amqpDriver)(nil)
	_ driver.Identified = (*amqpDriver)(nil)
	_ driver.Inspector  = (*amqpDriver)(nil)
)

// largeBuffers are buffers for messages of several frames, which connections lend each other.
type largeBuffers struct{ pool sync.Pool }

// get returns an empty buffer for n bytes.
func (l *largeBuffers) get(n int) []byte {
	if b, ok := l.pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}

func (l *largeBuffers) put(b []byte) { l.pool.Put(&b) }

// keeper keeps connections alive that have nothing to say, and ends those whose broker is silent (Transport, section
// 2.4.5): one goroutine for all connections of a driver, as long as there are some.
type keeper struct {
	mu    sync.Mutex
	conns map[*connection]*pulse
	every time.Duration
	quit  chan struct{} // ends the goroutine; nil if there is none
	done  chan struct{} // closed when it has ended
}

// pulse is the state of a connection at the keeper's last look.
type pulse struct {
	writes, heard uint32
	waited        time.Duration // by the reader, for bytes
	wrote         time.Time
	silent        time.Duration
}

// leastBeat bounds how often the keeper looks.
const leastBeat = time.Millisecond

// watch takes a connection on, unless it needs none.
func (k *keeper) watch(c *connection) {
	every := time.Duration(0)
	for _, d := range []time.Duration{c.owed, c.patience} {
		if d > 0 && (every == 0 || d < every) {
			every = d
		}
	}
	if every == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conns == nil {
		k.conns = map[*connection]*pulse{}
	}
	k.conns[c] = &pulse{wrote: time.Now(), waited: c.raw.Reading().Time}
	if every = max(every/4, leastBeat); k.every == 0 || every < k.every {
		k.every = every
	}
	if k.quit == nil {
		k.quit, k.done = make(chan struct{}), make(chan struct{})
		go k.run(k.quit, k.done)
	}
}

// forget lets a connection go. With the last one the keeper's goroutine ends.
func (k *keeper) forget(c *connection) {
	k.mu.Lock()
	delete(k.conns, c)
	var done chan struct{}
	if len(k.conns) == 0 && k.quit != nil {
		close(k.quit)
		done = k.done
		k.quit, k.done, k.every = nil, nil, 0
	}
	k.mu.Unlock()
	if done != nil {
		<-done
	}
}

// run looks after the connections until quit is closed.
func (k *keeper) run(quit, done chan struct{}) {
	defer close(done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-quit:
			return
		case <-timer.C:
		}
		k.mu.Lock()
		every := k.every
		looks := make(map[*connection]*pulse, len(k.conns))
		maps.Copy(looks, k.conns)
		k.mu.Unlock()
		now := time.Now()
		for c, p := range looks {
			p.look(c, now, every)
		}
		timer.Reset(max(every, leastBeat))
	}
}

// look sends a heartbeat on a connection, or ends the connection, if that is due.
func (p *pulse) look(c *connection, now time.Time, every time.Duration) {
	if n := c.out.Writes(); n != p.writes {
		p.writes, p.wrote = n, now
	} else if c.owed > 0 && now.Sub(p.wrote) >= c.owed/2 {
		_ = c.put(wire.AppendHeartbeat) // fails only when the connection has ended
	}
	// A reader that delivers does not listen, and a machine that stops us stops the reader, too: only the time that the
	// reader has waited counts as silence, and a late look counts no more of it than a look in time.
	waited := c.raw.Reading().Time
	p.silent += min(waited-p.waited, 2*every)
	p.waited = waited
	if n := c.heard.Load(); n != p.heard {
		p.heard, p.silent = n, 0
	} else if c.patience > 0 && p.silent >= c.patience {
		c.fail(driver.Errorf(driver.ClassConnectionLost, "", "is the broker paused or the network down? See -o idle-timeout",
			"nothing was heard from the broker for %s", c.patience))
	}
}
