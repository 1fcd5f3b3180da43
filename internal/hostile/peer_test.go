//go:build unix

package hostile

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perfmq/perfmq/internal/musttest"
)

// peer is a scripted broker: it serves all connections by one function.
type peer struct {
	listener net.Listener
	play     func(*wire)
	wg       sync.WaitGroup
	stopped  chan struct{}

	// The truth: answers that confirm one message each, and messages sent to consumers.
	confirmed, delivered atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
}

func startPeer(t *testing.T, play func(*wire)) *peer {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	p := &peer{listener: l, play: play, stopped: make(chan struct{})}
	p.wg.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

func (p *peer) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, conn)
		p.mu.Unlock()
		p.wg.Go(func() {
			defer conn.Close()
			p.play(&wire{Conn: conn, r: bufio.NewReader(conn), peer: p})
		})
	}
}

// stop ends all connections, and waits until none is served any more.
func (p *peer) stop() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	select {
	case <-p.stopped:
	default:
		close(p.stopped)
	}
	p.wg.Wait()
}

// wire is a connection to a peer. Writing fails when the driver has closed it: a case then runs to its end.
type wire struct {
	net.Conn
	r    *bufio.Reader
	peer *peer
}

func (w *wire) say(b string) bool {
	_, err := io.WriteString(w, b)
	return err == nil
}

// slowly says something byte by byte.
func (w *wire) slowly(b string) {
	for i := range len(b) {
		if !w.say(b[i : i+1]) {
			return
		}
	}
}

// endless repeats a text without end.
func (w *wire) endless(b string) {
	const much = 64 << 10
	for b = strings.Repeat(b, max(1, much/len(b))); w.say(b); {
	}
}

// much says the same until n bytes were said.
func (w *wire) much(b string, n int) {
	const chunk = 64 << 10
	repeated := strings.Repeat(b, max(1, chunk/len(b)))
	for said := 0; said < n && w.say(repeated); said += len(repeated) {
	}
}

// hear discards the bytes from the driver, until it closes the connection.
func (w *wire) hear() { _, _ = io.Copy(io.Discard, w.r) }

// deaf neither reads nor writes until the case is over.
func (w *wire) deaf() { <-w.peer.stopped }

// reset ends the connection without a word, and with an error at the other end.
func (w *wire) reset() {
	if tcp, ok := w.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = w.Close()
}
