package transport

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Shared is a connection that several users may have at once.
type Shared interface {
	// Dead reports whether the connection has ended, for any reason. It does not wait.
	Dead() bool
	// End closes the connection with the protocol's closing handshake and returns when it is closed; when ctx ends first,
	// it closes the connection without the handshake. It is called once.
	End(ctx context.Context)
}

// Pool holds the connections of a driver by key ([driver.Connection.Key]). It is safe for concurrent use.
type Pool[C Shared] struct {
	// Open opens a connection. Its error, rather than the context's, names the step that the broker reached.
	Open func(ctx context.Context, spec driver.Connection) (C, error)

	mu     sync.Mutex
	conns  map[string]*Lease[C]
	closed bool
}

// Lease is a connection in use. Each use must be released.
type Lease[C Shared] struct {
	Conn C

	pool  *Pool[C]
	key   string
	users int           // guarded by Pool.mu
	ready chan struct{} // closed when Conn and err are set
	err   error
	end   sync.Once
	ended chan struct{} // closed when it has ended
}

// Acquire returns the connection with that key and adds a user. It opens the connection if it is missing or has died.
func (p *Pool[C]) Acquire(ctx context.Context, spec driver.Connection) (*Lease[C], error) {
	for {
		c, opener, err := p.find(spec.Key)
		if err != nil {
			return nil, err
		}
		if opener {
			c.Conn, c.err = p.Open(ctx, spec)
			close(c.ready)
		} else {
			select { // the opener has the outcome, which is more precise than a time-out
			case <-c.ready:
			case <-ctx.Done():
				c.Release(ctx)
				return nil, driver.Errorf(driver.ClassTimeout, "connect", hintSlow,
					"the connection is still being opened: %w", ctx.Err())
			}
		}
		if c.err == nil {
			return c, nil
		}
		c.Release(ctx)
		if !opener && errors.Is(c.err, context.Canceled) && ctx.Err() == nil {
			continue // the opener's context had ended
		}
		return nil, c.err
	}
}

// Connect implements [driver.Connector] for drivers that embed the pool.
func (p *Pool[C]) Connect(ctx context.Context, spec driver.Connection) (driver.Held, error) {
	l, err := p.Acquire(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &held[C]{Lease: l, stages: spec.Stages}, nil
}

// held is a connection of a user that neither sends nor receives.
type held[C Shared] struct {
	*Lease[C]
	stages driver.Stages
	closed atomic.Bool
}

// OnEnd implements [driver.Watched].
func (h *held[C]) OnEnd(call func(why error)) {
	if w, ok := any(h.Conn).(driver.Watched); ok { // all but those of clients that open connections later
		w.OnEnd(func(why error) { call(Explain("hold the connection", why)) })
	}
}

// Close implements [driver.Held].
func (h *held[C]) Close(ctx context.Context) error {
	if !h.closed.Swap(true) {
		h.ReleaseOnly(ctx, h.stages)
	}
	return nil
}

// find returns the connection of a key and adds a user. opener tells the caller to open it.
func (p *Pool[C]) find(key string) (c *Lease[C], opener bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, driver.Errorf(driver.ClassOther, "connect", "", "the driver is closed")
	}
	c = p.conns[key]
	if c == nil || c.dead() {
		opener = true
		c = &Lease[C]{pool: p, key: key, ready: make(chan struct{}), ended: make(chan struct{})}
		if p.conns == nil {
			p.conns = map[string]*Lease[C]{}
		}
		p.conns[key] = c
	}
	c.users++
	return c, opener, nil
}

// dead reports whether the connection is no longer open. A connection that is being opened is not dead.
func (c *Lease[C]) dead() bool {
	select {
	case <-c.ready:
		return c.err != nil || c.Conn.Dead()
	default:
		return false
	}
}

// Users returns the present number of users of the connection.
func (c *Lease[C]) Users() int {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return c.users
}

// ReleaseOnly is Leave for a worker of which the broker knows only the connection.
func (c *Lease[C]) ReleaseOnly(ctx context.Context, stages driver.Stages) {
	began, lost := time.Now(), c.Conn.Dead()
	if c.Release(ctx) && !lost && ctx.Err() == nil {
		stages.Ended(driver.StageClose, began)
	}
}

// Release ends the use. The last use ends the connection, see [Shared.End].
func (c *Lease[C]) Release(ctx context.Context) (last bool) {
	p := c.pool
	p.mu.Lock()
	c.users--
	last = c.users == 0
	if last && p.conns[c.key] == c {
		delete(p.conns, c.key)
	}
	p.mu.Unlock()
	if last {
		c.close(ctx)
	}
	return last
}

// Leave calls leave, as a stage. A lost connection is not closed, nor is one from which ctx cuts us off.
func (c *Lease[C]) Leave(ctx context.Context, stages driver.Stages, leave func(context.Context)) {
	began, lost := time.Now(), c.Conn.Dead()
	leave(ctx)
	if !lost && ctx.Err() == nil {
		stages.Ended(driver.StageClose, began)
	}
}

// close ends the connection, once it is open, and waits for its end.
func (c *Lease[C]) close(ctx context.Context) {
	c.end.Do(func() {
		go func() {
			defer close(c.ended)
			<-c.ready // opening ends by its own time-out
			if c.err == nil {
				c.Conn.End(ctx)
			}
		}()
	})
	select {
	case <-c.ended:
	case <-ctx.Done():
		select {
		case <-c.ready:
			<-c.ended // ctx has ended for it, too
		default:
		}
	}
}

// Close closes all connections, also used ones. No other can be opened afterwards. It implements [driver.Driver] for
// drivers that embed the pool.
func (p *Pool[C]) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	left := slices.Collect(maps.Values(p.conns))
	clear(p.conns)
	p.mu.Unlock()
	for _, c := range left {
		c.close(ctx)
	}
	return nil
}
