package goamqp

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
)

const (
	// gatherLimit is how many bytes may wait to be written before Write blocks. It is large enough for a full window
	// of small messages and small enough that a stalled broker is felt by the sender soon.
	gatherLimit = 256 << 10
	// maxFirst is how much of the beginning is kept: a login fits.
	maxFirst = 512
	// gatherLinger is how long Close may take to write what is left.
	gatherLinger = time.Second
)

// gatherConn is a net.Conn that gathers writes. Write copies and returns; one goroutine writes out what has been
// copied so far, so that while one system call is under way the frames of the next gather. Nothing is held back: a
// lone Write is passed on at once. After a failed write each Write returns that error.
//
// Write may be called by one goroutine at a time, as the library does; all else is safe for concurrent use.
type gatherConn struct {
	net.Conn
	raw *transport.Metered // below TLS; the same as Conn without

	mu       sync.Mutex
	pending  []byte    // copied, not yet taken by the flusher
	copied   uint64    // bytes ever copied
	flushed  uint64    // bytes ever passed to the operating system
	deadline time.Time // of a Write that has to wait for room
	closing  bool
	err      error // the first error of a write
	readErr  error // the first error of a read

	wake     chan struct{} // to the flusher: there is something to write or the end has come
	room     chan struct{} // to Write: the flusher has taken what was there
	progress *sync.Cond    // to barriers: flushed or err has changed
	done     chan struct{} // closed when the flusher has ended
	first    []byte        // the first bytes received, to say why no connection was opened
	closeErr error
	once     sync.Once
}

// newGatherConn returns conn with gathered writes. Abandoning it closes raw, which carries conn or is conn.
func newGatherConn(conn net.Conn, raw *transport.Metered) *gatherConn {
	g := &gatherConn{
		Conn: conn, raw: raw, wake: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{}),
	}
	g.progress = sync.NewCond(&g.mu)
	go g.flush()
	return g
}

// Write copies b. It waits only while gatherLimit bytes or more are pending, up to the write deadline.
func (g *gatherConn) Write(b []byte) (int, error) {
	for {
		g.mu.Lock()
		switch {
		case g.err != nil:
			err := g.err
			g.mu.Unlock()
			return 0, err
		case g.closing:
			g.mu.Unlock()
			return 0, net.ErrClosed
		case len(g.pending) < gatherLimit:
			g.pending = append(g.pending, b...)
			g.copied += uint64(len(b))
			g.mu.Unlock()
			notify(g.wake)
			return len(b), nil
		}
		deadline := g.deadline
		g.mu.Unlock()
		if err := g.waitForRoom(deadline); err != nil {
			return 0, err
		}
	}
}

func (g *gatherConn) waitForRoom(deadline time.Time) error {
	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-g.room:
	case <-g.done:
	case <-timeout:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// flush writes out what Write has copied until the connection closes or a write fails.
func (g *gatherConn) flush() {
	defer close(g.done)
	var out []byte
	for {
		g.mu.Lock()
		out, g.pending = g.pending, out[:0]
		closing, failed := g.closing, g.err != nil
		g.mu.Unlock()
		if failed || closing && len(out) == 0 {
			return
		}
		if len(out) == 0 {
			<-g.wake
			// Let those who are about to write do so first; on an idle machine this returns at once.
			runtime.Gosched()
			continue
		}
		notify(g.room)
		_, err := g.Conn.Write(out)
		g.mu.Lock()
		if err != nil {
			if g.err == nil {
				g.err = err
			}
			g.pending = nil
		} else {
			g.flushed += uint64(len(out))
		}
		g.progress.Broadcast()
		g.mu.Unlock()
	}
}

// barrier waits until all that has been written so far was passed to the operating system.
func (g *gatherConn) barrier() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for mark := g.copied; g.flushed < mark; g.progress.Wait() {
		if g.err != nil {
			return g.err
		}
	}
	return nil
}

// Read reads from the connection and remembers how it began and failed.
func (g *gatherConn) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if err != nil || len(g.first) < maxFirst { // its length is of the only reader
		g.mu.Lock()
		g.first = append(g.first, b[:min(n, maxFirst-len(g.first))]...)
		if err != nil && g.readErr == nil && !g.closing {
			g.readErr = err
		}
		g.mu.Unlock()
	}
	return n, err
}

// cause returns why the connection failed by itself; nil if it did not, or was closed from here.
func (g *gatherConn) cause() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.readErr != nil:
		return g.readErr
	case errors.Is(g.err, net.ErrClosed):
		return nil
	}
	return g.err
}

// handshake returns what the peer has said so far. It must be called before the connection is closed from here.
func (g *gatherConn) handshake() handshake {
	g.mu.Lock()
	defer g.mu.Unlock()
	return newHandshake(g.first, g.readErr)
}

// SetDeadline sets the deadline of reads, and of a Write that has to wait for room.
func (g *gatherConn) SetDeadline(t time.Time) error {
	_ = g.SetWriteDeadline(t)
	return g.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of a Write that has to wait for room. It does not touch the write under way: that
// may hold frames of others, and cutting it short would cost the whole connection.
func (g *gatherConn) SetWriteDeadline(t time.Time) error {
	g.mu.Lock()
	g.deadline = t
	g.mu.Unlock()
	return nil
}

// Close writes what is left, for gatherLinger at most, and closes the connection.
func (g *gatherConn) Close() error {
	g.once.Do(func() {
		g.mu.Lock()
		g.closing = true
		g.mu.Unlock()
		_ = g.Conn.SetWriteDeadline(time.Now().Add(gatherLinger))
		notify(g.wake)
		<-g.done
		g.closeErr = g.Conn.Close()
		g.mu.Lock()
		g.fail(net.ErrClosed)
		g.mu.Unlock()
	})
	return g.closeErr
}

// abort closes the connection at once; what is pending is lost. It does not wait.
func (g *gatherConn) abort() {
	g.mu.Lock()
	g.closing = true
	g.fail(errors.New("the connection was abandoned"))
	g.pending = nil
	g.mu.Unlock()
	_ = g.raw.Close() // not that of TLS, which would first take leave of a peer that does not listen
	notify(g.wake)
}

// fail ends all waiting; g.mu must be held.
func (g *gatherConn) fail(err error) {
	if g.err == nil {
		g.err = err
	}
	g.progress.Broadcast()
}

// notify leaves a signal in a channel of capacity one.
func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
