package stomp

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/internal/broker/selector"
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The ack modes of subscriptions.
const (
	modeAuto = iota
	modeClient
	modeIndividual
)

const (
	// defaultPrefetch is the default limit of unacknowledged messages.
	defaultPrefetch  = 1000
	maxPrefetch      = 1 << 20
	maxSubscriptions = 10_000
)

// subscription is a subscription of the client. The writer delivers, the reader settles and closes.
type subscription struct {
	conn     *conn
	id       string
	serial   uint64
	mode     int
	limit    int // of unacknowledged messages; 0: none
	consumer *store.Consumer

	head   []byte      // of a MESSAGE frame up to the message ID
	name   []byte      // the message ID up to the number of the delivery
	ready  atomic.Bool // in conn.ready
	active bool        // in conn.active
	size   int         // of the last body, in bytes

	sent atomic.Uint64 // deliveries

	mu     sync.Mutex // held while messages are taken
	closed bool       // set by the reader
}

// firstSize is the assumed size of the first body, in bytes.
const firstSize = 16 << 10

// subscribe handles SUBSCRIBE.
func (c *conn) subscribe(f *wire.Received) error {
	s := &subscription{conn: c, serial: c.serial, size: firstSize, id: c.text(f, "id")}
	destination := c.text(f, "destination")
	a, err := address(destination)
	if err != nil {
		return err
	}
	if own, err := c.temporary(destination); err != nil {
		return err
	} else if own != nil {
		a = own.Address()
	}
	switch {
	case f.Get("id") == nil:
		return missing("id")
	case c.byID[s.id] != nil:
		return refuse("invalid frame: there is a subscription with that id already")
	case len(c.subs) >= maxSubscriptions:
		return refuse("limit reached: %d subscriptions", maxSubscriptions)
	}
	if err := s.configure(f); err != nil {
		return err
	}
	s.prepare(destination, f.Get("id"))
	if s.consumer, err = s.attach(f, a); err != nil {
		return err
	}
	s.consumer.Limit = s.limit
	c.serial++
	c.subs[s.serial], c.byID[s.id] = s, s
	c.reply(f.Get("receipt")) // before the first message
	if err := c.flush(); err != nil {
		return err
	}
	s.notify()
	return nil
}

// configure sets the ack mode and the limit of unacknowledged messages.
func (s *subscription) configure(f *wire.Received) error {
	ack := f.Get("ack")
	if s.mode = slices.Index([]string{"auto", "client", "client-individual"}, cmp.Or(string(ack), "auto")); s.mode < 0 {
		return invalid("ack", ack)
	}
	s.limit = defaultPrefetch
	if b := f.Get("prefetch-count"); b != nil {
		n, ok := wire.ParseNumber(b)
		if !ok {
			return invalid("prefetch-count", b)
		}
		s.limit = int(min(max(n, 1), maxPrefetch)) //nolint:gosec // bounded
	}
	if s.mode == modeAuto {
		s.limit = 0
	}
	return nil
}

// prepare encodes the constant part of MESSAGE frames. id is the header with its escapes.
func (s *subscription) prepare(destination string, id []byte) {
	b := wire.AppendHeader([]byte("MESSAGE\n"), "destination", destination)
	b = append(append(append(b, "subscription:"...), id...), '\n')
	name := strconv.AppendUint(nil, s.conn.source, 10)
	name = append(strconv.AppendUint(append(name, '-'), s.serial, 10), '-')
	s.head, s.name = append(b, "message-id:"...), name
}

// attach creates the consumer.
func (s *subscription) attach(f *wire.Received, a driver.Destination) (*store.Consumer, error) {
	c := s.conn
	text := strings.TrimSpace(c.text(f, "selector"))
	filter, err := selector.Parse(text)
	if err != nil {
		return nil, refuse("%s", err)
	}
	if a.Kind == driver.Queue {
		k, err := c.server.Store.ConsumeQueue(a.Name, filter, s.notify)
		return k, cannotOpen(a, err)
	}
	sub := store.Subscription{Selector: text, Filter: filter}
	durable, shared := c.subscriptionNames(f)
	switch {
	case shared != "":
		sub.Name, sub.Durable = shared, c.text(f, "durable") == "true"
	case durable != "":
		if c.clientID == "" {
			return nil, refuse("a durable subscription needs the header client-id in CONNECT")
		}
		sub.Name, sub.Durable, sub.Exclusive = c.durableName(durable), true, true
	}
	k, err := c.server.Store.Subscribe(a.Name, sub, s.notify)
	return k, cannotOpen(a, err)
}

// cannotOpen turns an error of the store into a refusal.
func cannotOpen(a driver.Destination, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNoMemory):
		return refuse("limit reached: %.80q: %s", a, err)
	}
	return refuse("%.80q: %s", a, err)
}

// subscriptionNames returns the name of a durable or shared subscription.
func (c *conn) subscriptionNames(f *wire.Received) (durable, shared string) {
	if durable = c.text(f, "durable-subscription-name"); durable != "" {
		return durable, ""
	}
	return "", c.text(f, "shared-subscription-name")
}

// durableName returns the store's name of a durable subscription: with the client-id, as Artemis names its queue.
func (c *conn) durableName(name string) string {
	if c.clientID == "" {
		return name
	}
	return c.clientID + "." + name
}

// unsubscribe handles UNSUBSCRIBE.
func (c *conn) unsubscribe(f *wire.Received) error {
	id := c.text(f, "id")
	s := c.byID[id]
	if s != nil {
		delete(c.byID, s.id)
		delete(c.subs, s.serial)
		s.close(false)
	}
	durable, shared := c.subscriptionNames(f)
	switch {
	case durable != "":
		return c.remove(c.durableName(durable))
	case shared != "":
		return c.remove(shared)
	case s == nil:
		return noSubscription(id)
	}
	return nil
}

func noSubscription(name string) error { return refuse("no such subscription: %.80q", name) }

// remove removes a subscription of any topic: UNSUBSCRIBE does not name the topic.
func (c *conn) remove(name string) error {
	q := c.server.Store.FindSubscription(name)
	if q == nil {
		return noSubscription(name)
	}
	if err := q.Remove(); err != nil {
		return refuse("%.80q: %s", name, err)
	}
	return nil
}

// notify puts the subscription on the writer's list. Any goroutine may call it.
func (s *subscription) notify() {
	if s.ready.CompareAndSwap(false, true) {
		c := s.conn
		c.mu.Lock()
		c.ready = append(c.ready, s)
		c.mu.Unlock()
		c.wakeWriter()
	}
}

// close ends the subscription; nothing is delivered afterwards. failed is as in [store.Consumer.Close].
func (s *subscription) close(failed bool) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.consumer.Close(failed)
}
