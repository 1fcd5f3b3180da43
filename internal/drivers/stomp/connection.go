package stomp

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// stompDriver is a [driver.Driver]: a set of connections by key.
type stompDriver struct {
	cfg config

	mu      sync.Mutex
	conns   map[string]*connection
	shared  map[string]int  // users of shared subscriptions, by name
	streams map[string]bool // of RabbitMQ: those with a consumer
	closed  bool

	// leaving is held by the consumer of a shared subscription that is ending it: the last one may remove it only when
	// the broker has said that the others are gone. It has room for one.
	leaving chan struct{}
}

// waits is what the goroutines of the connection have waited.
func (s *session) waits() driver.Waits {
	writer := driver.Idle{Known: true, Time: s.out.idle.Idle().Time + s.raw.Writing().Time}
	return driver.Waits{Reader: s.raw.Reading(), Writer: writer}
}

// connection is a STOMP connection and its users.
type connection struct {
	driver *stompDriver
	key    string
	users  int // guarded by driver.mu

	ready chan struct{} // closed when what follows is set
	err   error
	*session
	identity string // client-id

	mu        sync.Mutex
	lastID    uint64
	waiting   map[uint64]chan error
	cause     error // why the connection has ended
	producers atomic.Pointer[[]*producer]
	consumers atomic.Pointer[[]*consumer]
	topics    map[string]bool // see takeTopic

	acking  []*consumer   // of the reader: those with something to acknowledge
	failed  chan struct{} // closed with cause set
	running sync.WaitGroup
	heard   atomic.Uint32 // reads that returned
	reading atomic.Bool   // the reader waits for the network
	shared  atomic.Bool   // there was more than one user at a time

	endOnce sync.Once
	ended   chan struct{} // closed when all of the connection has ended
}

// session is what the handshake made.
type session struct {
	net       net.Conn
	raw       *transport.Metered // below TLS; the same as net without
	out       *outbox
	in        *scanner
	source    *source
	version   version
	dialect   dialect
	server    string
	sendEvery time.Duration // heart-beats that we owe; 0 for none
	hearEvery time.Duration // heart-beats that we are owed; 0 for none
}

// source is the network as the scanner reads it.
type source struct {
	net net.Conn
	c   *connection // nil during the handshake
}

// Read is called when all that was received has been dealt with: the moment to let out what was held back for company.
func (s *source) Read(b []byte) (int, error) {
	if s.c == nil {
		return s.net.Read(b)
	}
	s.c.acknowledge()
	s.c.reading.Store(true)
	n, err := s.net.Read(b)
	s.c.reading.Store(false)
	s.c.heard.Add(1)
	return n, err
}

// acquire returns the connection of that key and counts one more user. It opens the connection if there is none, or if
// the one that there is has died.
func (d *stompDriver) acquire(ctx context.Context, spec driver.Connection) (*connection, error) {
	for {
		d.mu.Lock()
		if d.closed {
			d.mu.Unlock()
			return nil, driver.Errorf(driver.ClassOther, "connect", "", "the driver is closed")
		}
		c := d.conns[spec.Key]
		opener := c == nil || c.dead()
		if opener {
			c = newConnection(d, spec)
			d.conns[spec.Key] = c
		}
		if c.users++; c.users > 1 {
			c.shared.Store(true)
		}
		d.mu.Unlock()
		if opener { // its error, and not that of ctx, says what the server did or did not do
			if c.session, c.err = d.cfg.dial(ctx, c.identity); c.err == nil {
				c.start()
			}
			close(c.ready)
		} else {
			select {
			case <-c.ready:
			case <-ctx.Done():
				c.release(ctx)
				return nil, driver.Errorf(driver.ClassTimeout, "connect", "", "%w", ctx.Err())
			}
		}
		if c.err == nil {
			return c, nil
		}
		c.release(ctx)
		if !opener && errors.Is(c.err, context.Canceled) && ctx.Err() == nil {
			continue // it was the opener that lost interest
		}
		return nil, c.err
	}
}

func newConnection(d *stompDriver, spec driver.Connection) *connection {
	c := &connection{
		driver: d, key: spec.Key, identity: spec.Name, waiting: map[uint64]chan error{},
		ready: make(chan struct{}), failed: make(chan struct{}), ended: make(chan struct{}),
	}
	if spec.ClientID != "" {
		c.identity = spec.ClientID
	}
	c.producers.Store(&[]*producer{})
	c.consumers.Store(&[]*consumer{})
	return c
}

func (c *connection) start() {
	c.source.c = c
	c.running.Go(c.read)
	c.running.Go(func() {
		if err := c.out.run(); err != nil {
			c.fail(err)
		}
	})
	if c.sendEvery > 0 || c.hearEvery > 0 {
		c.running.Go(c.beat)
	}
}

// dead reports whether the connection is open no more. One that is still being opened is not dead.
func (c *connection) dead() bool {
	select {
	case <-c.ready:
	default:
		return false
	}
	if c.err != nil {
		return true
	}
	select {
	case <-c.failed:
		return true
	default:
		return false
	}
}

func (c *connection) release(ctx context.Context) {
	d := c.driver
	d.mu.Lock()
	c.users--
	last := c.users == 0
	if last && d.conns[c.key] == c {
		delete(d.conns, c.key)
	}
	d.mu.Unlock()
	if last {
		c.end(ctx)
	}
}

// leaveTime is how long to wait for the broker's answer to DISCONNECT.
const leaveTime = time.Second

// errClosed is why a connection ended that we closed.
var errClosed = errors.New("the connection was closed")

// end takes leave of the broker and closes the connection. It returns when it is closed; when ctx ends first, it does
// so without taking leave.
func (c *connection) end(ctx context.Context) {
	c.endOnce.Do(func() {
		go func() {
			defer close(c.ended)
			<-c.ready
			if c.err == nil {
				leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
				_ = c.request(leave, frame.New(frame.DISCONNECT))
				cancel()
				c.fail(errClosed)
				c.running.Wait()
			}
		}()
	})
	select {
	case <-c.ended:
	case <-ctx.Done():
		select {
		case <-c.ready:
			if c.err == nil {
				c.fail(errClosed)
			}
			<-c.ended
		default: // still being opened, which ends by its own time-out
		}
	}
}

// Close implements [driver.Driver].
func (d *stompDriver) Close(ctx context.Context) error {
	d.mu.Lock()
	d.closed = true
	left := make([]*connection, 0, len(d.conns))
	for _, c := range d.conns {
		left = append(left, c)
	}
	clear(d.conns)
	d.mu.Unlock()
	for _, c := range left {
		c.end(ctx)
	}
	return nil
}

// fail ends the connection. The first cause counts.
func (c *connection) fail(cause error) {
	c.mu.Lock()
	first := c.cause == nil
	if first {
		c.cause = cause
		close(c.failed)
	}
	c.mu.Unlock()
	if first {
		c.out.fail(cause)
		_ = c.raw.Close() // not that of TLS, which would first take leave of a peer that may not listen
	}
}

// request sends f with a receipt and waits for it.
func (c *connection) request(ctx context.Context, f *frame.Frame) error {
	answer := make(chan error, 1)
	c.mu.Lock()
	c.lastID++
	r := receipt{kind: receiptOfRequest, seq: c.lastID}
	c.waiting[r.seq] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, r.seq)
		c.mu.Unlock()
	}()
	f.Header.Add(frame.Receipt, r.String())
	if err := c.out.put(func(b []byte) []byte { return c.version.appendFrame(b, f) }); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-c.failed:
		select {
		case err := <-answer: // came just before
			return err
		default:
			return c.whyEnded()
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whyEnded returns why the connection has ended; nil if it has not.
func (c *connection) whyEnded() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

func (c *connection) addProducer(p *producer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	old := *c.producers.Load()
	p.index = uint64(len(old))
	list := append(append(make([]*producer, 0, len(old)+1), old...), p)
	c.producers.Store(&list)
	return nil
}

func (c *connection) removeProducer(p *producer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append([]*producer(nil), *c.producers.Load()...)
	list[p.index] = nil
	c.producers.Store(&list)
}

func (c *connection) addConsumer(k *consumer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return c.cause
	}
	old := *c.consumers.Load()
	k.id = uint64(len(old))
	list := append(append(make([]*consumer, 0, len(old)+1), old...), k)
	c.consumers.Store(&list)
	return nil
}

func (c *connection) removeConsumer(k *consumer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := append([]*consumer(nil), *c.consumers.Load()...)
	list[k.id] = nil
	c.consumers.Store(&list)
}

// beat sends heart-beats when nothing else is sent, and ends the connection when nothing is heard (STOMP 1.2,
// "Heart-beating"). It looks three times per interval, which keeps our gaps below it.
func (c *connection) beat() {
	every := c.sendEvery
	if every == 0 || c.hearEvery > 0 && c.hearEvery < every {
		every = c.hearEvery
	}
	ticker := time.NewTicker(max(every/3, time.Millisecond))
	defer ticker.Stop()
	writes, heard := c.out.writes.Load(), c.heard.Load()
	wrote, looked := time.Now(), time.Now()
	var silent time.Duration
	for {
		select {
		case <-c.failed:
			return
		case <-ticker.C:
		}
		now := time.Now()
		if n := c.out.writes.Load(); n != writes {
			writes, wrote = n, now
		} else if c.sendEvery > 0 && now.Sub(wrote) >= c.sendEvery/2 {
			_ = c.out.put(func(b []byte) []byte { return append(b, '\n') }) // fails only when the connection has ended
		}
		// A machine that stops us stops the reader, too: what came meanwhile waits to be read, and is no silence.
		silent += min(now.Sub(looked), every)
		looked = now
		if n := c.heard.Load(); n != heard || !c.reading.Load() { // who delivers does not listen
			heard, silent = n, 0
		} else if c.hearEvery > 0 && silent > 2*c.hearEvery {
			c.fail(silentError(2 * c.hearEvery))
			return
		}
	}
}
