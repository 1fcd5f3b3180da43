package stomp

import (
	"cmp"
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// subscription has the headers with which a consumer subscribes and ends its subscription.
type subscription struct {
	id        string
	subscribe []string // headers of SUBSCRIBE
	ack       string   // mode of acknowledgement
	// remove are the headers that remove a durable subscription afterwards; nil if there is nothing to remove.
	remove []string
	// removeAs is the client identity that remove needs if it is not the connection's own.
	removeAs string
	// last is the name of the shared queue if only the last of several consumers may remove it; else empty.
	last string
	// address is where replies to the destination go.
	address string
	dynamic bool // the destination is for replies and ends with the connection
	// returns is set when the broker needs a NACK for each message that was not delivered.
	returns bool
}

// Modes of acknowledgement: all messages up to one, or one.
const (
	ackClient     = "client"
	ackIndividual = "client-individual"
)

// checkConsumer refuses settings that the broker does not know, or would ignore. The effect of a NACK differs between
// brokers: Artemis drops the message, ActiveMQ Classic moves it to the dead letters; RabbitMQ and the embedded broker
// deliver it again, or drop it if a header says so. All other brokers ignore the header.
func (d dialect) checkConsumer(spec *driver.ConsumerSpec, o *Options) error {
	kept, tx, fails := spec.Durable || spec.Shared, spec.TransactionSize > 0, spec.Failing != driver.Accept
	return cmp.Or(
		d.checkDestination(spec.Destination, o, false),
		protocol.CheckStream(string(d), "STOMP", d.stream(spec.Destination, o), spec),
		d.refuse(kept && spec.Destination.Kind == driver.Queue, "use topic://"+spec.Destination.Name,
			protocol.OnlyTopics),
		d.refuse(tx && (d == artemis || d == generic), "leave out --tx", "messages cannot be received in transactions"),
		d.refuse(spec.Selector != "" && d == rabbitmq, "leave out --selector", protocol.NoSelectors),
		d.refuse(spec.Shared && d == activemq, protocol.HintVirtual, protocol.Unshared),
		d.refuse(kept && d == generic, "leave out --durable and --shared", "no header is known for such subscriptions"),
		d.refuse(fails && tx, "leave out --consumer-fail or --tx",
			"a NACK in a transaction differs between brokers"),
		d.refuse(fails && d == generic, "leave out --consumer-fail", "it is not known what a NACK does"),
		d.refuse(spec.Failing == driver.Release && d != rabbitmq && d != perfmq, "--consumer-fail-as reject",
			"a message cannot be given back: NACK drops it"),
	)
}

// subscription returns the subscription of a consumer. ID is its number, identity the connection's client-id.
func (d dialect) subscription(spec *driver.ConsumerSpec, o *Options, id, identity string) (*subscription, error) {
	if err := d.checkConsumer(spec, o); err != nil {
		return nil, err
	}
	ack := ackClient
	// Contrary to STOMP, a cumulative ACK of RabbitMQ 3.10 covers all subscriptions of the connection, so that the next
	// ACK of another one ends the connection.
	if spec.TransactionSize > 0 || d == rabbitmq || spec.Failing != driver.Accept {
		ack = ackIndividual
	}
	s := &subscription{id: id, ack: ack, returns: d == rabbitmq, address: d.addressOf(spec.Destination, o)}
	destination, kind := []string{"destination", s.address}, spec.Destination.Kind
	if spec.Dynamic {
		var err error
		unique, owner := rand.Text(), "perfmq"
		if d == artemis {
			owner = cmp.Or(identity, owner)
		}
		if destination, s.address, err = d.repliesTo(owner + "." + unique); err != nil {
			return nil, err
		}
		kind, s.dynamic = driver.Queue, true
		if d == artemis { // by default it removes the queue by itself; else as a durable subscription of that name
			s.remove = []string{"id", "none", "durable-subscription-name", unique}
		}
	} else if o.Declare != declareNo {
		destination = append(destination, headerType, o.Declare)
	}
	if name, queue := strings.CutPrefix(s.address, "/queue/"); queue && d == rabbitmq {
		s.address = replyQueue + name
	}
	s.subscribe = append([]string{"id", id}, destination...)
	s.add("ack", ack)
	if spec.Selector != "" {
		s.add("selector", spec.Selector)
	}
	s.addStream(spec)
	d.flow(s, spec.Credit)
	switch {
	case d == artemis:
		s.add("subscription-type", protocol.Routing(kind))
		s.lastOnArtemis(spec, identity)
	case !spec.Durable && !spec.Shared:
	case d == activemq:
		s.named("activemq.subscriptionName", spec.Subscription, id, !spec.KeepSubscription)
	case d == rabbitmq:
		s.lastOnRabbitMQ(spec)
	case d == perfmq:
		s.lastOnPerfmq(spec)
	}
	return s, nil
}

func (s *subscription) add(headers ...string) { s.subscribe = append(s.subscribe, headers...) }

// addStream adds where the consumer of a stream begins, and its filter (RabbitMQ's STOMP plug-in, "Stream support").
func (s *subscription) addStream(spec *driver.ConsumerSpec) {
	offset, _ := driver.ParseStreamOffset(spec.StreamOffset, time.Now()) // checked before the run; "" is none
	switch v := offset.(type) {
	case string:
		s.add("x-stream-offset", v)
	case uint64:
		s.add("x-stream-offset", "offset="+strconv.FormatUint(v, 10))
	case time.Time:
		s.add("x-stream-offset", "timestamp="+strconv.FormatInt(v.Unix(), 10))
	}
	if spec.StreamFilter != "" {
		unfiltered := strconv.FormatBool(spec.StreamUnfiltered)
		s.add("x-stream-filter", spec.StreamFilter, "x-stream-match-unfiltered", unfiltered)
	}
}

// named makes s a durable subscription of that name; an UNSUBSCRIBE with the id removes it.
func (s *subscription) named(header, name, id string, remove bool) {
	s.add(header, name)
	if remove {
		s.remove = []string{"id", id, header, name}
	}
}

const (
	// smallestFrame is smaller than any MESSAGE frame of Artemis, which is larger even with only the mandatory headers.
	smallestFrame = 256
	// defaultWindow is the number of bytes that Artemis may send ahead by default.
	defaultWindow = 1 << 20
)

// flow limits the messages that the broker may send ahead. Artemis counts bytes: it sends while less than the window is
// unacknowledged, so the limit never lets more than credit messages through, and fewer when they are large.
func (d dialect) flow(s *subscription, credit int) {
	switch d {
	case artemis:
		window := defaultWindow
		if credit > 0 {
			window = (min(credit, 1<<20)-1)*smallestFrame + 1
		}
		s.add("consumer-window-size", strconv.Itoa(window))
	case activemq:
		s.add("activemq.prefetchSize", strconv.Itoa(creditOr(credit)))
	case rabbitmq:
		s.add("prefetch-count", strconv.Itoa(min(creditOr(credit), 1<<16-1)))
	case perfmq:
		s.add("prefetch-count", strconv.Itoa(creditOr(credit)))
	}
}

func creditOr(credit int) int { return cmp.Or(max(credit, 0), defaultCredit) }

// sharedOwner is the client identity that owns shared subscriptions without one.
const sharedOwner = "perfmq-shared"

func (s *subscription) lastOnArtemis(spec *driver.ConsumerSpec, identity string) {
	const header, none = "durable-subscription-name", "none"
	if !spec.Shared {
		if spec.Durable {
			s.named(header, spec.Subscription, none, !spec.KeepSubscription)
		}
		return
	}
	// A queue of the topic that all share, named so that Artemis removes it by a durable subscription's name.
	owner := cmp.Or(spec.Connection.ClientID, sharedOwner)
	s.subscribe[3] = spec.Destination.Name + "::" + owner + "." + spec.Subscription
	if !spec.Durable || !spec.KeepSubscription {
		s.remove = []string{"id", none, header, spec.Subscription}
		s.last = s.subscribe[3]
		if owner != identity {
			s.removeAs = owner
		}
	}
}

func (s *subscription) lastOnRabbitMQ(spec *driver.ConsumerSpec) {
	queue := "perfmq-" + spec.Subscription
	if id := spec.Connection.ClientID; id != "" {
		queue = "perfmq-" + id + "-" + spec.Subscription
	}
	arguments := []string{
		"x-queue-name", queue, "durable", strconv.FormatBool(spec.Durable), "auto-delete", strconv.FormatBool(!spec.Durable),
		"exclusive", "false",
	}
	s.add(arguments...)
	if spec.Durable && !spec.KeepSubscription {
		// RabbitMQ ends receiving and removes the queue in one step, whether or not others use it.
		s.remove = append([]string{"id", s.id, "destination", s.subscribe[3]}, arguments...)
		s.last = queue
	}
}

func (s *subscription) lastOnPerfmq(spec *driver.ConsumerSpec) {
	remove := spec.Durable && !spec.KeepSubscription
	if !spec.Shared {
		s.named("durable-subscription-name", spec.Subscription, "none", remove)
		return
	}
	name := spec.Subscription // not the connection's name: it must contain the client identity, if there is one
	if owner := spec.Connection.ClientID; owner != "" {
		name = owner + "." + name
	}
	s.named("shared-subscription-name", name, "none", remove)
	s.add("durable", strconv.FormatBool(spec.Durable))
	if remove {
		s.last = spec.Destination.Name + "::" + name
	}
}

// Close implements [driver.Consumer].
func (k *consumer) Close(ctx context.Context) error {
	if k.closed {
		return nil
	}
	k.closed = true
	k.giveBack()
	var err error
	k.lease.Leave(ctx, k.stages, func(ctx context.Context) { err = k.leave(ctx) })
	return err
}

// leave ends the subscription and releases the connection.
func (k *consumer) leave(ctx context.Context) (err error) {
	if !k.conn.Dead() {
		err = k.unsubscribe(ctx)
	} else {
		k.share(-1)
		if k.sub.remove != nil && !k.sub.dynamic {
			err = protocol.LeftBehind("", driver.Errorf(driver.ClassConnectionLost, "", "", "the connection has ended"))
		}
	}
	delist(k.conn, &k.conn.consumers, k.id)
	err = transport.Explain("close the consumer: "+k.op, err)
	k.lease.Release(ctx)
	return err
}

// ended reports whether Close was called.
func (k *consumer) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == stateClosed
}

// giveBack returns messages that were received but not delivered.
func (k *consumer) giveBack() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sub.returns {
		for i := k.done; i < len(k.taken.list); i++ {
			k.put(wire.NACK, k.taken.message(i).ack, nil)
		}
		for i := range k.held.list {
			k.put(wire.NACK, k.held.message(i).ack, nil)
		}
	}
	k.conn.Out.Flush()
	k.held, k.taken, k.bytes, k.state = held{}, held{}, 0, stateClosed
	transport.Notify(k.unheld)
}

// unsubscribe ends the subscription, and removes it if it is to be removed and no other consumer uses it.
func (k *consumer) unsubscribe(ctx context.Context) error {
	c, remove := k.conn, k.sub.remove
	if k.sub.last != "" {
		select {
		case c.driver.leaving <- struct{}{}:
			defer func() { <-c.driver.leaving }()
		case <-ctx.Done():
			k.share(-1)
			return protocol.LeftBehind("", driver.Errorf(driver.ClassTimeout, "", "",
				"waiting for its other consumers to leave: %w", ctx.Err()))
		}
		if k.share(-1) > 0 {
			remove = nil
		}
	}
	if c.dialect != rabbitmq || remove == nil { // otherwise one frame does both
		if err := c.request(ctx, wire.UNSUBSCRIBE, "id", k.sub.id); err != nil || remove == nil {
			return err
		}
	}
	if as := k.sub.removeAs; as != "" { // over a connection with the identity that owns the subscription
		l, err := c.driver.acquire(ctx, driver.Connection{Key: "\x00remove " + as, ClientID: as})
		if err != nil {
			return err
		}
		defer l.Release(ctx)
		c = l.Conn
	}
	return c.request(ctx, wire.UNSUBSCRIBE, remove...)
}
