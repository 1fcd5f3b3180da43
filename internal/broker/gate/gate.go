// Package gate holds back the clients of a full broker. An answer to a message that was stored beyond a limit is
// withheld until there is room; meanwhile the connection is read on, so that acknowledgements behind the message can
// make the room, up to a limit of their own.
package gate

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

const (
	// limit is how many bytes may be withheld before a connection is not read on.
	limit = 1 << 20
	// lookEvery is how often a front-end that waits looks whether the peer has gone: as it does not read, it would not
	// learn that nobody waits with it.
	lookEvery = time.Second
)

// Gate belongs to a connection.
type Gate struct {
	Conn  net.Conn
	Done  <-chan struct{} // closed at the end of the connection
	Write func([]byte)    // hands frames to the writer; any goroutine calls it

	bytes atomic.Int64

	mu       sync.Mutex
	withheld map[*store.Destination]*answers
}

type answers struct {
	frames []byte
	bytes  int64
}

// Withhold keeps the answer to a message until d has room; size is what counts against the limit.
func (g *Gate) Withhold(d *store.Destination, answer []byte, size int) {
	g.mu.Lock()
	if g.withheld == nil {
		g.withheld = map[*store.Destination]*answers{}
	}
	a, waits := g.withheld[d]
	if !waits {
		a = &answers{}
		g.withheld[d] = a
	}
	a.frames = append(a.frames, answer...)
	a.bytes += int64(size)
	g.bytes.Add(int64(size))
	g.mu.Unlock()
	if !waits {
		g.retry(d)
	}
}

// Shut tells that too much is withheld.
func (g *Gate) Shut() bool { return g.bytes.Load() > limit }

// retry sends the answers if there is room, and else when there is.
func (g *Gate) retry(d *store.Destination) {
	select {
	case <-g.Done: // the client is gone
		return
	default:
	}
	if d.Room(func() { g.retry(d) }) {
		g.release(d)
	}
}

func (g *Gate) release(d *store.Destination) {
	g.mu.Lock()
	a := g.withheld[d]
	delete(g.withheld, d)
	g.mu.Unlock()
	if a != nil {
		g.bytes.Add(-a.bytes)
		g.Write(a.frames)
	}
}

// Flush sends all answers.
func (g *Gate) Flush() {
	g.mu.Lock()
	var list []*store.Destination
	for d := range g.withheld {
		list = append(list, d)
	}
	g.mu.Unlock()
	for _, d := range list {
		g.release(d)
	}
}

// Linger reads and drops what the peer still sends, for a while: closing with input unread would have the peer's
// system throw away our last frame.
func Linger(conn net.Conn, d time.Duration) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if it fails the reads below do as well
	}
	if conn.SetReadDeadline(time.Now().Add(d)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, lingerBytes))
	}
}

// lingerBytes bounds what Linger reads from a peer that never stops.
const lingerBytes = 64 << 20

// Await returns when d has room, or after a while. It fails at the end of the connection: with [io.ErrUnexpectedEOF]
// if that is the peer's doing, else with [net.ErrClosed].
func (g *Gate) Await(d *store.Destination, enough <-chan time.Time) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	room := make(chan struct{}, 1)
	ask := func() {
		select {
		case room <- struct{}{}:
		default:
		}
	}
	for !d.Room(ask) {
		for told := false; !told; {
			select {
			case <-room:
				told = true
			case <-look.C:
				if Left(g.Conn) {
					return io.ErrUnexpectedEOF
				}
			case <-enough:
				return nil
			case <-g.Done:
				return net.ErrClosed
			}
		}
	}
	return nil
}
