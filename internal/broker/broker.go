// Package broker is the broker in the binary: in memory, on loopback, for users without another broker and for tests
// that want to know the truth. It can be told to misbehave and counts exactly what it did.
//
// # Model
//
//	listener per protocol -> connection -> front-end (packages amqp, stomp, rocketmq) -> store
//	control: a little HTTP, to see the counts and to change the faults while it runs
//
// All front-ends share one store, so that what is sent over one protocol can be received over another. The package here
// only owns the listeners and the connections, because refusing and breaking those is one of the faults.
//
// Its figures show what perfmq itself can do on a machine. They say nothing about any product: it keeps no message on
// disk, has no security to speak of and one node.
package broker

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/listen"
)

// The protocols, by the names of their drivers.
const (
	AMQP     = "amqp"
	STOMP    = "stomp"
	RocketMQ = "rocketmq"
)

// Protocols returns all protocols that the broker speaks.
func Protocols() []string { return []string{AMQP, STOMP, RocketMQ} }

// Config are the settings of a broker.
type Config struct {
	// Listen has an address, host:port, for each protocol that is to be served. Port 0 takes a free one, and without
	// a host it is on loopback.
	Listen map[string]string
	// Limits of each queue; zero values mean the defaults of [store.Config].
	Limits store.Config
	// Faults from the start on.
	Faults store.Faults
	// User and Password, if not empty, are the login that clients must give.
	User, Password string
	// MaxMessage is the largest body in bytes; 0 for 64 MiB.
	MaxMessage int
}

// frontend speaks a protocol: Serve handles one connection until it ends or ctx is done, and closes it.
type frontend interface {
	Serve(ctx context.Context, conn net.Conn) error
}

// Broker is a running broker. It is safe for concurrent use.
type Broker struct {
	store     *store.Store
	listeners map[string]net.Listener
	stop      context.CancelFunc
	serving   sync.WaitGroup
	rocketmq  *rocketmq.Server                 // nil if it is not served
	login     func(user, password string) bool // nil accepts anyone
	last      atomic.Pointer[Stats]            // of a broker that was closed

	mu    sync.Mutex
	conns map[net.Conn]string // their protocols
	total map[string]uint64   // connections so far
}

// Start opens all listeners and serves until Close. It fails if one cannot be opened.
func Start(cfg Config) (*Broker, error) {
	b := &Broker{
		store: store.New(cfg.Limits), listeners: map[string]net.Listener{},
		conns: map[net.Conn]string{}, total: map[string]uint64{}, login: cfg.login(),
	}
	b.store.SetFaults(cfg.Faults)
	b.store.OnDrop(func() { b.breakConnections() })
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	for _, protocol := range Protocols() {
		addr, ok := cfg.Listen[protocol]
		if !ok {
			continue
		}
		l, err := listen.TCP(ctx, protocol, "--listen-"+protocol, addr)
		if err != nil {
			b.Close()
			return nil, err
		}
		b.listeners[protocol] = l
	}
	for protocol, l := range b.listeners {
		f := b.frontend(protocol, &cfg)
		b.serving.Go(func() { b.accept(ctx, protocol, l, f) })
	}
	return b, nil
}

// Addr returns where a protocol is served, as host:port; empty if it is not.
func (b *Broker) Addr(protocol string) string {
	if l := b.listeners[protocol]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// Store gives access to destinations, counts and faults.
func (b *Broker) Store() *store.Store { return b.store }

// acceptPause is how long to wait after a listener failed, say for lack of file descriptors.
const acceptPause = 50 * time.Millisecond

func (b *Broker) accept(ctx context.Context, protocol string, l net.Listener, f frontend) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		}
		if b.store.Refuse() || !b.store.Reserve(store.ConnectionSize) {
			_ = conn.Close() // refused: nothing was said, nothing is lost
			continue
		}
		if !b.enter(conn, protocol) {
			_ = conn.Close()
			b.store.Return(store.ConnectionSize)
			continue
		}
		b.serving.Go(func() {
			defer b.leave(conn)
			_ = f.Serve(ctx, conn) // the peer was told; nothing else needs the error
		})
	}
}

func (b *Broker) enter(conn net.Conn, protocol string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns == nil {
		return false
	}
	b.conns[conn] = protocol
	b.total[protocol]++
	return true
}

func (b *Broker) leave(conn net.Conn) {
	_ = conn.Close() // as a rule the front-end has
	b.store.Return(store.ConnectionSize)
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, conn)
}

// DropConnections breaks all connections, without a word to the peers, and returns how many there were. It ends a
// stall: what waits in one could not end before it, and would withhold its messages until then.
func (b *Broker) DropConnections() int {
	n := b.breakConnections()
	b.store.Stall(0)
	return n
}

// breakConnections is DropConnections without an end to a stall, for the fault that breaks connections by itself.
func (b *Broker) breakConnections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for conn := range b.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as when a host dies; if it cannot be had, an end
		}
		if conn.Close() == nil {
			n++
		}
	}
	b.store.CountDropped(n)
	return n
}

// Close stops listening, breaks all connections and waits until nothing is left of them.
func (b *Broker) Close() {
	b.stop()
	b.store.Stall(0)
	for _, l := range b.listeners {
		_ = l.Close() // it is of no more use in any case
	}
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.conns = nil
	b.mu.Unlock()
	b.serving.Wait()
	last := b.StatsPage("", math.MaxInt)
	b.last.Store(&last)
	if b.rocketmq != nil {
		b.rocketmq.Close()
	}
}

// Stats are the true counts of the broker.
type Stats struct {
	Connections  []ConnectionStats        `json:"connections"`
	Destinations []store.DestinationStats `json:"destinations"`
	More         int                      `json:"more,omitempty"` // destinations after these
	Next         string                   `json:"next,omitempty"` // where these are: the path and query of the next page
	Total        store.Totals             `json:"total"`          // of all destinations
	Memory       MemoryStats              `json:"memory"`
	Faults       string                   `json:"faults"` // those at work, as [ParseFaults] reads them
	Done         store.FaultCounts        `json:"done"`   // what faults have done so far
	RocketMQ     *rocketmq.Stats          `json:"rocketmq,omitempty"`
}

// MemoryStats is the memory that clients use at the broker, in bytes.
type MemoryStats struct {
	Used  int64 `json:"used"`
	Limit int64 `json:"limit"`
}

// ConnectionStats count the connections of a protocol.
type ConnectionStats struct {
	Protocol string `json:"protocol"`
	Address  string `json:"address"`
	Open     int    `json:"open"`
	Total    uint64 `json:"total"`
}

// Stats returns the counts up to now, of all destinations, and after Close those of the end of the last connection.
// They are exact when nothing is going on.
func (b *Broker) Stats() Stats {
	if last := b.last.Load(); last != nil {
		return *last
	}
	return b.StatsPage("", math.MaxInt)
}

// StatsPage is Stats with no more than limit destinations, those after the given address.
func (b *Broker) StatsPage(after string, limit int) Stats {
	s := Stats{Faults: FormatFaults(b.store.Faults()), Done: b.store.FaultCounts()}
	s.Destinations, s.Total, s.More = b.store.Page(after, limit)
	s.Memory.Used, s.Memory.Limit = b.store.Memory()
	if b.rocketmq != nil {
		r := b.rocketmq.Stats()
		s.RocketMQ = &r
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for protocol, l := range b.listeners {
		c := ConnectionStats{Protocol: protocol, Address: l.Addr().String(), Total: b.total[protocol]}
		for _, p := range b.conns {
			if p == protocol {
				c.Open++
			}
		}
		s.Connections = append(s.Connections, c)
	}
	slices.SortFunc(s.Connections, func(a, b ConnectionStats) int { return strings.Compare(a.Protocol, b.Protocol) })
	return s
}
