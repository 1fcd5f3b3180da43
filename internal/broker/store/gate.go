package store

import (
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// highWater is the number of withheld bytes above which a connection is not read.
const highWater = 1 << 20

// Gate applies back-pressure to a client of a full broker: it withholds the answers to messages stored beyond a limit
// until there is room. Meanwhile the connection is read on, up to a high-water mark, as acknowledgements behind the
// messages make room.
type Gate struct {
	Conn  net.Conn
	Done  <-chan struct{} // closed at the end of the connection
	Write func([]byte)    // hands frames to the writer; any goroutine calls it

	bytes atomic.Int64

	mu       sync.Mutex
	withheld map[*Destination]*answers
}

type answers struct {
	frames []byte
	bytes  int64
}

// Withhold keeps the answer to a message until d has room; size counts against the high-water mark.
func (g *Gate) Withhold(d *Destination, answer []byte, size int) {
	g.mu.Lock()
	if g.withheld == nil {
		g.withheld = map[*Destination]*answers{}
	}
	a, waiting := g.withheld[d]
	if !waiting {
		a = &answers{}
		g.withheld[d] = a
	}
	a.frames = append(a.frames, answer...)
	a.bytes += int64(size)
	g.bytes.Add(int64(size))
	g.mu.Unlock()
	if !waiting {
		time.AfterFunc(RoomPause, func() { g.retry(d) })
	}
}

// Shut reports that the high-water mark is exceeded: the connection is not to be read.
func (g *Gate) Shut() bool { return g.bytes.Load() > highWater }

// retry sends the answers when there is room.
func (g *Gate) retry(d *Destination) {
	select {
	case <-g.Done:
		return
	default:
	}
	if d.store.Stalled() || !d.Room() {
		time.AfterFunc(RoomPause, func() { g.retry(d) })
		return
	}
	g.release(d)
}

func (g *Gate) release(d *Destination) {
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
	list := slices.Collect(maps.Keys(g.withheld))
	g.mu.Unlock()
	for _, d := range list {
		g.release(d)
	}
}

// Signal puts a token into a channel for one token, unless it holds one.
func Signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// AwaitWriter waits while more than most bytes of the output, which mu guards, are not written. It fails with
// [net.ErrClosed] at the end of the connection, when done is closed.
func AwaitWriter(mu *sync.Mutex, out *[]byte, most int, drained, done <-chan struct{}) error {
	for {
		mu.Lock()
		behind := len(*out) > most
		mu.Unlock()
		if !behind {
			return nil
		}
		select {
		case <-drained:
		case <-done:
			return net.ErrClosed
		}
	}
}

// Linger discards input for a while before a close: a close with unread input resets the connection, and the peer would
// lose our last frame.
func Linger(conn net.Conn, d time.Duration) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // if it fails, the reads below fail as well
	}
	if conn.SetReadDeadline(time.Now().Add(d)) == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, lingerBytes))
	}
}

// lingerBytes bounds the input discarded by Linger.
const lingerBytes = 64 << 20

// Await waits for room in d until timeout, and returns nil in both cases, and soon after the broker or the client has
// closed the connection, where the system reports that behind unread input: the little that it still sent is to be
// stored. Await fails with [net.ErrClosed] at the end of the connection.
func (g *Gate) Await(d *Destination, timeout <-chan time.Time) error {
	check := time.NewTicker(RoomPause)
	defer check.Stop()
	for !d.Room() && !peerClosed(g.Conn) {
		select {
		case <-check.C:
		case <-timeout:
			return nil
		case <-g.Done:
			return net.ErrClosed
		}
	}
	return nil
}
