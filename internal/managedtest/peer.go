//go:build unix

package managedtest

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// Told is what a peer is told to do beside serving.
type Told struct {
	User, Password string
	Token          string   // that $cbs takes
	Subscriptions  []string // TOPIC/NAME, that exist

	// Attach are the links to refuse, by their numbers from 1 on, over all connections.
	Attach map[int]*wire.Error
	// Sent are the faults at messages of producers, Delivered those at deliveries to consumers, by their numbers from 1
	// on, over all connections. Messages that a producer sent behind a fault that ends its link are not read.
	Sent, Delivered map[int]Fault
}

// Fault is what happens at a message.
type Fault struct {
	Reject *wire.Error // a message of a producer is refused with it
	Store  bool        // a message of a producer is stored, although it is not answered
	Detach *wire.Error // the link ends with it, and the message has no answer
	Lose   bool        // a message of a producer is confirmed, and not stored
	HangUp bool        // the connection ends without a word, and the message has no answer

	FailOver bool // the same for all connections, and the standby becomes active
}

func (f *Fault) ends() bool { return f.Detach != nil || f.HangUp || f.FailOver }

// Truth is what a peer has done.
type Truth struct {
	Connections int
	Sent        int // messages of producers that it has read
	Stored      int // of these, those that it keeps
	Refused     int // of these, those that it rejects
	Delivered   int // to consumers, again or not
	Accepted    int // deliveries, of which it keeps no message
	Returned    int // deliveries that went back to their queues, by the consumer or the end of its link
	Detached    int // links
	Violations  []string
	Attached    []Attached
	Audiences   []string // of tokens
}

// Attached is a link that a client has asked for.
type Attached struct {
	Receiver     bool // the client receives
	Address      string
	Capabilities []string
	Kind, Name   string // of the node
	Refused      bool
}

// Peer is a told peer, with one address or two, of which one is active.
type Peer struct {
	CAFile string
	vendor Vendor
	told   Told
	tls    *tls.Config

	addresses [2]string
	listeners [2]net.Listener
	serving   sync.WaitGroup

	mu     sync.Mutex
	active int
	truth  Truth
	queues map[string][]*message
	topics map[string]map[string]bool // the queues of a topic's subscriptions
	conns  map[*conn]bool
}

type message struct {
	sections []byte // without the header
	durable  bool
	tries    uint32
}

// Start starts a peer that speaks AMQP over TLS on two addresses of loopback.
func Start(t testing.TB, vendor Vendor, told Told) *Peer {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	certs := musttest.Get(brokertest.NewCerts(dir))(t)
	pair := musttest.Get(tls.LoadX509KeyPair(certs.ServerCertFile, certs.ServerKeyFile))(t)
	p := &Peer{
		CAFile: certs.CAFile, vendor: vendor, told: told,
		tls:    &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		queues: map[string][]*message{}, topics: map[string]map[string]bool{}, conns: map[*conn]bool{},
	}
	for _, name := range told.Subscriptions {
		topic, _, _ := strings.Cut(name, "/")
		p.topics[key(Topic, topic)] = map[string]bool{name: true}
	}
	for i := range p.listeners {
		l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		p.addresses[i] = l.Addr().String()
		p.listeners[i] = tls.NewListener(l, p.tls)
		p.serving.Go(func() { p.accept(i) })
	}
	t.Cleanup(p.stop)
	return p
}

// URL is the URL of the active address of a new peer.
func (p *Peer) URL() string { return "amqps://" + p.addresses[0] }

// Standby is the address that is not active, of a new peer.
func (p *Peer) Standby() string { return p.addresses[1] }

// Failover is a failover URL of both addresses, as Amazon MQ's console shows them, with the standby first.
func (p *Peer) Failover() string {
	return "failover:(amqp+ssl://" + p.addresses[1] + ",amqp+ssl://" + p.addresses[0] + ")?randomize=false"
}

// Truth returns what the peer has done.
func (p *Peer) Truth() Truth {
	p.mu.Lock()
	defer p.mu.Unlock()
	truth := p.truth
	truth.Attached = slices.Clone(truth.Attached)
	return truth
}

// Kept returns the number of messages in a queue.
func (p *Peer) Kept(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queues[name])
}

// failOver makes the standby active, with all messages, and ends the connections.
func (p *Peer) failOver() {
	p.active = 1 - p.active
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *Peer) accept(i int) {
	for {
		nc, err := p.listeners[i].Accept()
		if err != nil {
			return
		}
		c := &conn{Conn: nc, p: p, sessions: map[uint16]*session{}, authorized: map[string]bool{}}
		p.mu.Lock()
		if p.active == i {
			p.conns[c] = true
			p.serving.Go(c.serve)
			p.truth.Connections++
		} else {
			_ = nc.Close()
		}
		p.mu.Unlock()
	}
}

func (p *Peer) stop() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.serving.Wait()
}

// NoViolations fails the test if a client has broken a rule of the vendor.
func (p *Peer) NoViolations(t testing.TB) {
	t.Helper()
	require.Empty(t, p.Truth().Violations)
}

// Front is a TLS listener before a broker without TLS, as Amazon MQ has one for each protocol. It returns its address.
func (p *Peer) Front(t testing.TB, backend string) string {
	t.Helper()
	l := musttest.Get((&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	secure := tls.NewListener(l, p.tls)
	var serving sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	serving.Go(func() {
		for {
			client, err := secure.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", backend) //nolint:noctx // loopback
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, ends := range [][2]net.Conn{{client, broker}, {broker, client}} {
				serving.Go(func() {
					_, _ = io.Copy(ends[0], ends[1])
					_, _ = ends[0].Close(), ends[1].Close()
				})
			}
		}
	})
	return l.Addr().String()
}
