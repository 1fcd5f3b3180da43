// Package broker is the embedded broker: in memory, on loopback, for users without another broker and for tests. It
// injects faults on request and counts their exact effects.
//
// # Model
//
//	listener per protocol -> connection -> front-end (packages amqp, stomp, rocketmq) -> store
//	control: HTTP, for the counts and for changes of the faults
//
// All front-ends share one store, so that a message sent over one protocol can be received over another. This package
// owns the listeners and connections, as refused and broken connections are faults.
//
// Its throughput is the limit of perfmq on a machine. It says nothing about any product: the broker has one node, no
// disk and only simple authentication.
package broker

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/stomp"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The protocols, by the names of their drivers.
const (
	AMQP     = "amqp"
	STOMP    = "stomp"
	RocketMQ = "rocketmq"
)

// Protocols returns all protocols of the broker.
func Protocols() []string { return []string{AMQP, STOMP, RocketMQ} }

// Config are the settings of a broker.
type Config struct {
	// Listen maps protocols to addresses, host:port. Port 0 is a free port; the default host is loopback.
	Listen map[string]string
	// Limits of each queue; zero values mean the defaults of [store.Config].
	Limits store.Config
	// Faults are the initial faults.
	Faults store.Faults
	// User and Password, if not empty, are required of clients.
	User, Password string
	// MaxMessage is the largest body in bytes; 0 for [LargestBody].
	MaxMessage int
}

// LargestBody returns the size of the largest body that a broker takes by default over a protocol, in bytes. RocketMQ's
// own brokers have the same limit.
func LargestBody(protocol string) int {
	if protocol == RocketMQ {
		return 4 << 20
	}
	return 64 << 20
}

// Broker is a running broker. It is safe for concurrent use.
type Broker struct {
	store     *store.Store
	listeners map[string]net.Listener
	serving   sync.WaitGroup
	rocketmq  *rocketmq.Server                 // nil if it is not served
	login     func(user, password string) bool // nil accepts every client

	mu    sync.Mutex
	conns map[net.Conn]string // their protocols
	total map[string]uint64   // connections so far
}

// Start opens all listeners and serves until Close.
func Start(cfg Config) (*Broker, error) {
	b := &Broker{
		store: store.New(cfg.Limits), listeners: map[string]net.Listener{},
		conns: map[net.Conn]string{}, total: map[string]uint64{}, login: cfg.login(),
	}
	b.store.SetFaults(cfg.Faults)
	b.store.OnDrop(func() { b.breakConnections() })
	for _, protocol := range Protocols() {
		addr, ok := cfg.Listen[protocol]
		if !ok {
			continue
		}
		l, err := listen.TCP(context.Background(), protocol, "--listen-"+protocol, addr)
		if err != nil {
			b.Close()
			return nil, err
		}
		b.listeners[protocol] = l
	}
	for protocol, l := range b.listeners {
		serve := b.frontend(protocol, &cfg)
		b.serving.Go(func() { b.accept(protocol, l, serve) })
	}
	return b, nil
}

// Addr returns the address of a protocol, host:port; empty if it is not served.
func (b *Broker) Addr(protocol string) string {
	if l := b.listeners[protocol]; l != nil {
		return l.Addr().String()
	}
	return ""
}

// Store gives access to destinations, counts and faults.
func (b *Broker) Store() *store.Store { return b.store }

// acceptPause is the pause after a failure to accept, such as a lack of file descriptors.
const acceptPause = 50 * time.Millisecond

func (b *Broker) accept(protocol string, l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			<-time.After(acceptPause)
			continue
		}
		if b.store.Refuse() || !b.enter(conn, protocol) {
			_ = conn.Close() // refused before any data
			continue
		}
		b.serving.Go(func() {
			defer b.leave(conn)
			serve(conn)
		})
	}
}

func (b *Broker) enter(conn net.Conn, protocol string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conns == nil || !b.store.Reserve(store.ConnectionSize) {
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

// DropConnections breaks all connections without a close frame, and returns their number. It ends a stall, in which
// connections could not end and would keep their messages.
func (b *Broker) DropConnections() int {
	n := b.breakConnections()
	b.store.Stall(0)
	return n
}

// breakConnections is DropConnections without the end of a stall, for [store.Faults.DropEvery].
func (b *Broker) breakConnections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for conn := range b.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, as from a dead host; at worst the connection just ends
		}
		if conn.Close() == nil {
			n++
		}
	}
	b.store.CountDropped(n)
	return n
}

// Close stops listening, breaks all connections and waits for their end.
func (b *Broker) Close() {
	b.store.Stall(0)
	for _, l := range b.listeners {
		_ = l.Close() // no use for the error
	}
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.conns = nil
	b.mu.Unlock()
	b.serving.Wait()
	if b.rocketmq != nil {
		b.rocketmq.Close()
	}
}

// Stats are the exact counts of the broker.
type Stats struct {
	Connections  []ConnectionStats        `json:"connections"`
	Destinations []store.DestinationStats `json:"destinations"`
	More         int                      `json:"more,omitempty"` // number of destinations after these
	Total        store.Totals             `json:"total"`          // of all destinations
	Memory       struct {                 // held for clients, in bytes
		Used  int64 `json:"used"`
		Limit int64 `json:"limit"`
	} `json:"memory"`
	Faults   string            `json:"faults"` // the current faults, in the syntax of [ParseFaults]
	Done     store.FaultCounts `json:"done"`   // effects of faults so far
	RocketMQ *rocketmq.Stats   `json:"rocketmq,omitempty"`
}

// ConnectionStats count the connections of a protocol.
type ConnectionStats struct {
	Protocol string `json:"protocol"`
	Address  string `json:"address"`
	Open     int    `json:"open"`
	Total    uint64 `json:"total"`
}

// Stats returns the current counts of all destinations. They are exact on an idle broker.
func (b *Broker) Stats() Stats {
	return b.StatsOf(math.MaxInt)
}

// StatsOf is Stats with at most limit destinations.
func (b *Broker) StatsOf(limit int) Stats {
	s := Stats{Faults: FormatFaults(b.store.Faults()), Done: b.store.FaultCounts()}
	s.Destinations, s.Total, s.More = b.store.Page(limit)
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

// frontend returns the function that serves one connection of a protocol until it ends, and closes it.
func (b *Broker) frontend(protocol string, cfg *Config) func(net.Conn) {
	const headers = 1 << 20 // of a message over AMQP, with its properties
	largest := cmp.Or(cfg.MaxMessage, LargestBody(protocol))
	switch protocol {
	case AMQP:
		return amqp.Server{Store: b.store, Authenticate: b.login, MaxMessage: largest + headers}.Serve
	case STOMP:
		return stomp.Server{Store: b.store, Authenticate: b.login, MaxMessage: largest}.Serve
	default:
		o := rocketmq.Options{MaxMessage: largest}
		if cfg.User != "" {
			o.AccessKey, o.SecretKey = cfg.User, cfg.Password
		}
		b.rocketmq = rocketmq.New(b.store, o)
		return b.rocketmq.Serve
	}
}

// login returns the check of a user and a password; nil accepts every client.
func (c *Config) login() func(user, password string) bool {
	if c.User == "" {
		return nil
	}
	return func(user, password string) bool {
		return subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(c.User+"\x00"+c.Password)) == 1
	}
}

// Inspect implements [driver.Inspector] with the exact counts of the store. For a topic, messages added are all
// accepted messages, whatever the subscriptions: these take their counts with them.
func (b *Broker) Inspect(
	_ context.Context, destinations []driver.Destination,
) (list []driver.DestinationCount, err error) {
	for _, dest := range destinations {
		n := driver.NoDestination()
		if d := b.store.Find(dest); d != nil {
			s := d.Stats()
			for i := range s.Queues {
				q := &s.Queues[i]
				n.Depth.N += uint64(max(0, q.Depth)) //nolint:gosec // not below 0
				n.Added.N += q.Stored
				n.Acknowledged.N += q.Settled
				n.Consumers.N += uint64(max(0, q.Consumers)) //nolint:gosec // not below 0
			}
			if dest.Kind == driver.Topic {
				n.Added, n.Acknowledged = driver.Counted(s.Sent), driver.Count{}
			}
		}
		list = append(list, n)
	}
	return list, nil
}

var _ driver.Inspector = (*Broker)(nil)
