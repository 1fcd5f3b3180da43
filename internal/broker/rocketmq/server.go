package rocketmq

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// Options are the settings of a front-end. Zero values mean the defaults.
type Options struct {
	// Secret returns the secret key of an access key, and whether there is such a key. With it, requests must be signed
	// (RocketMQ's ACL: HMAC-SHA1); nil accepts anyone.
	Secret func(accessKey string) (secret string, ok bool)
	// MaxMessage is the largest body, and the largest batch, in bytes; default 4 MiB.
	MaxMessage int
	// Queues is the number of queues of topics that come into being by their use; default 8.
	Queues int
	// TransactionCheckAfter is the age at which the producer of a half message is asked for the first time; default 6
	// s.
	TransactionCheckAfter time.Duration
	// TransactionCheckInterval is the time between two questions for one half message; default 6 s.
	TransactionCheckInterval time.Duration
	// GoneAfter is how long a group without members, for which no client has pulled or committed either, keeps its claim
	// to messages of a topic at its limit; default 2 min, after which brokers take a silent client for dead.
	GoneAfter time.Duration
}

// Stats are the true counts of a front-end that the store does not have.
type Stats struct {
	Delivered uint64 // messages given to consumers
	// from topics at their limit: messages that no group has seen, or that one without a claim was not done with
	Dropped      uint64
	GivenBack    uint64 // by consumers, for another try
	Dead         uint64 // part of GivenBack that went to a dead-letter topic
	Halves       uint64 // half messages
	Committed    uint64 // of them
	RolledBack   uint64 // of them
	Checks       uint64 // check-backs
	GivenUp      uint64 // half messages after maxChecks check-backs
	OpenHalves   int    // half messages that are neither committed nor rolled back
	Topics       int
	Groups       int
	HeldPulls    int64  // pulls that wait for messages
	BrokenFrames uint64 // connections that ended for a malformed frame
}

// limits of everything that grows at the request of clients.
const (
	maxQueues = 1024
	maxTopics = 1 << 19
	maxGroups = 1 << 17
)

// Server is name server and broker of RocketMQ for any number of connections. It is safe for concurrent use.
type Server struct {
	store  *store.Store
	o      Options
	limits store.Config
	tx     transactions
	ending sync.WaitGroup // bridges

	mu        sync.RWMutex
	topics    map[string]*topic
	byID      map[int64]*topic
	lastID    int64
	groups    map[string]*group
	producers map[string]map[*conn]bool
	closed    bool

	delivered, givenBack, dead, brokenFrames, droppedBefore atomic.Uint64
	held                                                    atomic.Int64
}

// New returns a front-end for a store. Its topics are the store's topics of the same name.
func New(s *store.Store, o Options) *Server {
	o.MaxMessage = cmp.Or(o.MaxMessage, 4<<20)
	o.Queues = cmp.Or(o.Queues, 8)
	o.TransactionCheckAfter = cmp.Or(o.TransactionCheckAfter, 6*time.Second)
	o.TransactionCheckInterval = cmp.Or(o.TransactionCheckInterval, 6*time.Second)
	o.GoneAfter = cmp.Or(o.GoneAfter, 2*time.Minute)
	o.Queues = min(o.Queues, maxQueues)
	srv := &Server{
		store: s, o: o, limits: s.Config(), topics: map[string]*topic{}, byID: map[int64]*topic{},
		groups: map[string]*group{}, producers: map[string]map[*conn]bool{},
	}
	srv.tx.s, srv.tx.open, srv.tx.next = srv, map[int64]*half{}, 1
	s.OnTight(srv.reclaim)
	s.OnMake(func(a store.Address) {
		if a.Kind == store.KindQueue {
			srv.join(a.Name)
		}
	})
	return srv
}

// Close ends timers and takes the topics, with their messages, off the store. Connections should have ended.
func (s *Server) Close() {
	s.tx.close()
	s.mu.Lock()
	s.closed = true
	topics := s.topics
	s.topics, s.byID = map[string]*topic{}, map[int64]*topic{}
	s.mu.Unlock()
	for _, t := range topics {
		t.end()
	}
	s.ending.Wait()
}

// reclaim has topics give up messages kept only for a later request.
func (s *Server) reclaim() {
	s.mu.RLock()
	topics := slices.Collect(maps.Values(s.topics))
	s.mu.RUnlock()
	for _, t := range topics {
		t.trim()
	}
}

// Stats returns the counts up to now. They are exact when nothing is going on.
func (s *Server) Stats() Stats {
	x := &s.tx
	st := Stats{
		Delivered: s.delivered.Load(), Dropped: s.droppedBefore.Load(), GivenBack: s.givenBack.Load(), Dead: s.dead.Load(),
		Halves: x.halves.Load(), Committed: x.committed.Load(), RolledBack: x.rolledBack.Load(), Checks: x.checks.Load(),
		GivenUp: x.givenUp.Load(), HeldPulls: s.held.Load(), BrokenFrames: s.brokenFrames.Load(),
	}
	x.mu.Lock()
	st.OpenHalves = len(x.open)
	x.mu.Unlock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	st.Topics, st.Groups = len(s.topics), len(s.groups)
	for _, t := range s.topics {
		st.Dropped += t.dropped.Load()
	}
	return st
}

// Serve serves one connection until it ends or ctx is done, and closes it. It returns nil for an orderly end, and
// leaves no goroutine.
func (s *Server) Serve(ctx context.Context, nc net.Conn) error {
	c := newConn(s, nc)
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	var writer sync.WaitGroup
	writer.Go(c.write)
	err := c.read()
	c.close()
	writer.Wait()
	c.leave()
	return err
}

// hostOf is an address as stored messages have it. Those of IPv6 and of other networks cannot be had.
func hostOf(a net.Addr) (h host) {
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

// findTopic returns a topic, nil if there is none. The name is not retained.
func (s *Server) findTopic(name []byte) *topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.topics[string(name)]
}

// makeTopic returns a topic, which it makes if need be; nil if its name is not legal, there are too many or no memory
// is left.
func (s *Server) makeTopic(name string, queues int) *topic {
	if t := s.findTopic([]byte(name)); t != nil {
		return t
	}
	// those of consumers, which make room
	given := strings.HasPrefix(name, wire.RetryPrefix) || strings.HasPrefix(name, wire.DeadPrefix)
	if !legalName(name) || s.store.Tight() && !given {
		return nil
	}
	t := s.addTopic(name, queues)
	s.join(name)
	return t
}

func (s *Server) addTopic(name string, queues int) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.topics[name]; t != nil || s.closed || len(s.topics) == maxTopics-1 {
		return t
	}
	for taken := true; taken; _, taken = s.byID[s.lastID] {
		s.lastID = s.lastID%(maxTopics-1) + 1 // 0 is that of half messages
	}
	t := &topic{s: s, name: name, id: s.lastID}
	s.byID[t.id] = t
	t.own.Store(topicSize)
	s.store.Charge(topicSize)
	t.queues.Store(&[]*queue{})
	queues = min(max(queues, 1), maxQueues)
	t.setQueues(queues)
	t.dest = s.store.Destination(store.Address{Kind: store.KindTopic, Name: name})
	t.detach = t.dest.Attach(t)
	s.topics[name] = t
	return t
}

// deleteTopic deletes a topic with its messages. What other protocols have subscribed to under that name stays.
func (s *Server) deleteTopic(name string) {
	s.mu.Lock()
	t := s.topics[name]
	if t != nil {
		delete(s.topics, name)
		delete(s.byID, t.id)
	}
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.end()
	s.droppedBefore.Add(t.dropped.Load())
	if len(t.dest.Stats().Queues) == 0 {
		s.store.Delete(t.dest.Address())
	}
}

// legalName tells whether a topic or group may have that name (TopicValidator, Validators).
func legalName(name string) bool {
	const longest = 127
	const legal = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-%|"
	return name != "" && len(name) <= longest && strings.Trim(name, legal) == ""
}

// A position in what would be the broker's log names a message: 19 bits for the topic, 10 for the queue, 34 for the
// offset.
const (
	queueBits  = 10
	offsetBits = 34
)

func logOffset(topic int64, queue int, offset int64) int64 {
	return topic<<(queueBits+offsetBits) | int64(queue)<<offsetBits | offset&(1<<offsetBits-1)
}

// lookUp returns the message at a position in the log, nil if there is none.
func (s *Server) lookUp(log int64) *message {
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
