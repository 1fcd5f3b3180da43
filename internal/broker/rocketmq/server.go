package rocketmq

import (
	"cmp"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the settings of a front-end. Zero values mean the defaults.
type Options struct {
	// Requests must be signed with these keys (RocketMQ's ACL: HMAC-SHA1); empty ones accept everyone.
	AccessKey, SecretKey string
	// MaxMessage is the largest body, and the largest batch, in bytes; default 4 MiB.
	MaxMessage int
	// Queues is the number of queues of implicitly created topics; default 8.
	Queues int
	// TransactionCheck is the time before each check-back of a half message; default 6 s.
	TransactionCheck time.Duration
}

// Stats are the exact counts of a front-end, in addition to the store's.
type Stats struct {
	Delivered  uint64 // messages
	Dropped    uint64 // messages dropped at the limit of a topic before all groups with an offset had read them
	GivenBack  uint64 // by consumers, for a retry
	Dead       uint64 // part of GivenBack sent to a dead-letter topic
	Halves     uint64 // half messages
	Committed  uint64 // half messages
	RolledBack uint64 // half messages
	Checks     uint64 // check-backs
	OpenHalves int    // half messages neither committed nor rolled back
	HeldPulls  int    // pulls that wait for messages

	Replies        uint64 // pushed to requesters
	DroppedReplies uint64 // their requesters had gone, or did not read
}

// Bounds of what clients can create.
const (
	maxQueues = 1024
	maxTopics = 1 << 19
	maxGroups = 1 << 17
)

// Server is a RocketMQ name server and broker. It is safe for concurrent use.
type Server struct {
	store     *store.Store
	o         Options
	limits    store.Config
	tx        transactions
	mu        sync.RWMutex
	topics    map[string]*topic
	byID      map[int64]*topic
	lastID    int64
	groups    map[string]*group
	producers map[string]map[*conn]bool
	clients   map[string]*conn // with producers, by client ID

	countMu sync.Mutex
	counts  Stats // without OpenHalves
}

// New returns a front-end for s. A topic is attached to the store's topic of the same name.
func New(s *store.Store, o Options) *Server {
	o.MaxMessage = cmp.Or(o.MaxMessage, 4<<20)
	o.Queues = min(cmp.Or(o.Queues, 8), maxQueues)
	o.TransactionCheck = cmp.Or(o.TransactionCheck, 6*time.Second)
	srv := &Server{
		store: s, o: o, limits: s.Config(), topics: map[string]*topic{}, byID: map[int64]*topic{},
		groups: map[string]*group{}, producers: map[string]map[*conn]bool{}, clients: map[string]*conn{},
	}
	srv.tx.s, srv.tx.open, srv.tx.next = srv, map[int64]*half{}, 1
	s.OnTight(srv.reclaim)
	return srv
}

// Close stops timers and detaches the topics from the store. All connections must have ended.
func (s *Server) Close() {
	s.tx.close()
	for _, t := range s.allTopics() {
		t.end()
	}
}

func (s *Server) allTopics() []*topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.topics))
}

// reclaim drops messages without a claim.
func (s *Server) reclaim() {
	for _, t := range s.allTopics() {
		t.trim()
	}
}

// Stats returns the current counts. They are exact on an idle broker.
func (s *Server) Stats() Stats {
	s.tx.mu.Lock()
	open := len(s.tx.open)
	s.tx.mu.Unlock()
	s.countMu.Lock()
	defer s.countMu.Unlock()
	st := s.counts
	st.OpenHalves = open
	return st
}

// count changes the counts.
func (s *Server) count(change func(*Stats)) {
	s.countMu.Lock()
	defer s.countMu.Unlock()
	change(&s.counts)
}

// Serve serves one connection until it ends, and closes it. No goroutine is left when it returns.
func (s *Server) Serve(nc net.Conn) {
	c := newConn(s, nc)
	var writer sync.WaitGroup
	writer.Go(c.write)
	_ = c.read() // the client was sent the reason
	c.close()
	writer.Wait()
	c.release()
}

// hostOf encodes an address for stored messages; only IPv4 has an encoding.
func hostOf(a net.Addr) (h [8]byte) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return h
	}
	if ip := tcp.IP.To4(); ip != nil {
		copy(h[:4], ip)
	}
	binary.BigEndian.PutUint32(h[4:], uint32(tcp.Port))
	return h
}

// findTopic returns a topic, or nil. It does not retain the name.
func (s *Server) findTopic(name []byte) *topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.topics[string(name)]
}

// makeTopic finds or creates a topic; nil for an illegal name, too many topics or a lack of memory.
func (s *Server) makeTopic(name string, queues int) *topic {
	if t := s.findTopic([]byte(name)); t != nil {
		return t
	}
	if !legalName(name) || s.store.Tight() && !ofGroup(name) { // consumers make room
		return nil
	}
	return s.addTopic(name, queues)
}

// ofGroup reports whether a topic holds a group's retries or dead letters.
func ofGroup(topic string) bool {
	return strings.HasPrefix(topic, wire.RetryPrefix) || strings.HasPrefix(topic, wire.DeadPrefix)
}

func (s *Server) addTopic(name string, queues int) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name]; t != nil || len(s.topics) == maxTopics-1 {
		return t
	}
	for taken := true; taken; _, taken = s.byID[s.lastID] {
		s.lastID = s.lastID%(maxTopics-1) + 1 // 0 is for half messages
	}
	t := &topic{s: s, name: name, id: s.lastID}
	s.byID[t.id] = t
	t.own.Store(topicSize)
	s.store.Charge(topicSize)
	t.queues.Store(&[]*queue{})
	t.addQueues(min(max(queues, 1), maxQueues))
	t.dest = s.store.Destination(driver.Destination{Kind: driver.Topic, Name: name})
	t.detach = t.dest.Attach(t)
	s.topics[name] = t
	return t
}

// deleteTopic handles DELETE_TOPIC_IN_BROKER: it deletes a topic with its messages. Subscriptions of other protocols
// stay.
func (c *conn) deleteTopic(r *wire.Frame) error {
	s, name := c.s, string(r.Get("topic"))
	s.mu.Lock()
	t := s.topics[name]
	if t != nil {
		delete(s.topics, name)
		delete(s.byID, t.id)
	}
	s.mu.Unlock()
	if t != nil {
		t.end()
	}
	return c.ok(r)
}

// legalName reports whether the name of a topic or group is legal (TopicValidator, Validators).
func legalName(name string) bool {
	const longest = 127
	const legal = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-%|"
	return name != "" && len(name) <= longest && strings.Trim(name, legal) == ""
}

// A message is identified by an offset in a virtual commit log: 19 bits for the topic, 10 for the queue, 34 for
// the queue offset.
const (
	queueBits  = 10
	offsetBits = 34
)

func logOffset(topic int64, queue int, offset int64) int64 {
	return topic<<(queueBits+offsetBits) | int64(queue)<<offsetBits | offset&(1<<offsetBits-1)
}

// messageAt returns the message at an offset in the virtual commit log, or nil.
func (s *Server) messageAt(log int64) *message {
	s.mu.RLock()
	t := s.byID[log>>(queueBits+offsetBits)]
	s.mu.RUnlock()
	if t == nil {
		return nil
	}
	q := t.queue(log >> offsetBits & (1<<queueBits - 1))
	if q == nil {
		return nil
	}
	var found [1]entry
	q.read(found[:], log&(1<<offsetBits-1), nil)
	return found[0].m
}
