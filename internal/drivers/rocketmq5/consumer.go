package rocketmq5

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	remoting "github.com/perfmq/perfmq/internal/wire/rocketmq"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	// holdTime is how long the proxy holds a request for messages when there are none: from 5 to 20 s. leastHold makes it
	// the shortest.
	holdTime  = 10 * time.Second
	leastHold = time.Millisecond
	holdLimit = holdTime + callLimit
	// asksInFlight is the number of requests for messages of a consumer.
	asksInFlight = 2
	// crowded is the number of bytes that wait for delivery above which no more messages are asked for.
	crowded = 4 << 20
	// mostWaiting is the number of bytes above which a consumer ends: its memory has a limit, whatever the proxy sends.
	mostWaiting = 64 << 20
	// tooSoon is the time within which an answer without messages is no end of a request that was held: the next one
	// waits restTime.
	tooSoon  = time.Second
	restTime = 20 * time.Millisecond
	// releaseAfter is the time until a released message is delivered again.
	releaseAfter = time.Second
)

// consumer is a [driver.Consumer].
type consumer struct {
	op     string
	d      *proxyDriver
	users  *atomic.Int64 // of the group
	goes   bool          // the group is deleted with its last consumer
	lease  *transport.Lease[*conn]
	client *client
	opts   *Options
	stages driver.Stages
	wanted [][]byte // requests for messages, by broker
	next   int      // index of the next of them
	get    *method

	input   *driver.Meter // of Run: nothing has arrived
	arrived chan struct{} // messages or the end of a request or an error have come
	closed  bool

	mu      sync.Mutex
	err     error  // why it cannot go on
	came    []byte // messages to be delivered: each is a length of four bytes and a message of the proxy
	flying  int    // requests for messages in flight
	rest    bool   // the next of them has to wait
	acking  int    // acknowledgements in flight
	leaving bool

	// Only Run's goroutine uses these, and Close's after it.
	ackHead  []byte
	acks     []byte // a request, with room for its prefix
	request  request
	acked    int    // entries of acks
	spare    []byte // memory for came
	left     []byte // messages, as in came, that were not delivered
	entry    wire.AckMessageEntry
	message  wire.ReceiveMessageResponse
	ids      driver.IDReader
	delivery driver.Delivery
	unacked  atomic.Uint64

	// Only the reader of the connection uses these.
	answered wire.AckMessageResponse
	noted    wire.ReceiveMessageResponse
}

// ask is a request for messages in flight.
type ask struct {
	c    *consumer
	sent time.Time
	n    int    // messages that have come
	kept []byte // those that are delivered when it ends
}

// Consumer implements [driver.Driver].
func (d *proxyDriver) Consumer(ctx context.Context, spec driver.ConsumerSpec) (driver.Consumer, error) {
	op := "open a consumer on " + spec.From()
	opts, f := &d.cfg.Options, Factory()
	if err := rocketmq.Rules().CheckConsumer(op, &f, &spec); err != nil {
		return nil, err
	}
	c := &consumer{
		op: "receive from " + spec.Destination.String(), d: d, opts: opts, stages: spec.Connection.Stages,
		get: newMethod(wire.CallReceiveMessage, holdLimit), input: driver.NewMeter(), arrived: make(chan struct{}, 1),
	}
	ctx, cancel := d.opening(ctx)
	defer cancel()
	var err error
	if c.lease, err = d.pool.Acquire(ctx, spec.Connection); err != nil {
		return nil, err
	}
	if err := c.open(ctx, &spec); err != nil {
		_ = c.leave(ctx)
		c.lease.Release(ctx)
		return nil, transport.Explain(op, err)
	}
	return c, nil
}

func (c *consumer) open(ctx context.Context, spec *driver.ConsumerSpec) error {
	topic := spec.Destination.Name
	group, fromNext, goes := c.opts.shared().GroupOf(spec, unique())
	c.goes = goes
	if c.d.admin == nil && (c.goes || spec.Durable || spec.Shared) && c.opts.Group == "" {
		return library.Unsupported("", "give -o name-server=HOST:PORT, or -o group=NAME of a group that exists",
			"a topic's subscription is a group, which the proxy does not create")
	}
	users, _ := c.d.users.LoadOrStore(group, new(atomic.Int64))
	c.users = users.(*atomic.Int64)
	c.users.Add(1)
	if c.d.admin != nil {
		err := c.d.admin.TypedTopic(ctx, topic, "MIXED")
		if err == nil {
			err = c.d.admin.Group(ctx, topic, group, fromNext)
		}
		if err != nil {
			return err
		}
	}
	c.client = newClient(c.lease.Conn, &spec.Connection, topic, group)
	c.client.ended = c.fail
	c.client.settings = c.settings(spec.Selector)
	c.ackHead = (&wire.AckMessageRequest{Group: c.client.group, Topic: c.client.topic}).Append(nil)
	if err := c.client.open(ctx, spec.Connection.Stages); err != nil {
		return err
	}
	attaching := c.client.opened
	queues, err := c.client.queues(ctx, "read", wire.PermissionRead, wire.PermissionReadWrite)
	if err != nil {
		return err
	}
	var brokers []string
	for _, q := range queues {
		if name := string(q.Broker.Name); !slices.Contains(brokers, name) {
			brokers = append(brokers, name)
		}
	}
	if err = c.client.beat(ctx, ""); err != nil {
		return err
	}
	if c.d.admin == nil { // else the group has its offsets
		if err = c.subscribe(ctx, brokers); err != nil {
			return err
		}
	}
	c.wanted = c.requests(brokers, holdTime)
	spec.Connection.Stages.Ended(driver.StageAttach, attaching)
	return nil
}

// settings are what the proxy is told of the consumer.
func (c *consumer) settings(selector string) wire.Settings {
	parsed := rocketmq.ParseSelector(selector)
	entry := wire.SubscriptionEntry{Topic: c.client.topic, Expression: wire.FilterExpression{
		Type: wire.FilterTypeTag, Expression: []byte(parsed.Expression),
	}}
	if parsed.Kind == remoting.KindSQL {
		entry.Expression.Type = wire.FilterTypeSql
	}
	kind := wire.ClientTypePushConsumer
	if c.opts.Consumer == simple {
		kind = wire.ClientTypeSimpleConsumer
	}
	return wire.Settings{
		ClientType: kind, PubSub: wire.SettingsSubscription, Subscription: wire.Subscription{
			Group: c.client.group, Subscriptions: []wire.SubscriptionEntry{entry},
			ReceiveBatchSize:   int32(c.opts.PullBatch), //nolint:gosec // it has a range
			LongPollingTimeout: wire.DurationOf(callLimit),
		},
	}
}

// requests returns the requests for messages, with their prefixes.
func (c *consumer) requests(brokers []string, hold time.Duration) (list [][]byte) {
	s := &c.client.settings.Subscription
	for _, broker := range brokers {
		message := (&wire.ReceiveMessageRequest{
			Group: s.Group, FilterExpression: s.Subscriptions[0].Expression, BatchSize: s.ReceiveBatchSize,
			MessageQueue: wire.MessageQueue{ // any of the broker
				Topic: c.client.topic, ID: -1, Broker: wire.Broker{Name: []byte(broker)},
			},
			InvisibleDuration: wire.DurationOf(c.opts.Invisible), LongPollingTimeout: wire.DurationOf(hold),
			AutoRenew: c.client.settings.ClientType == wire.ClientTypePushConsumer, // invisible until it is settled
		}).Append(nil)
		list = append(list, append(wire.AppendPrefix(nil, len(message)), message...))
	}
	return list
}

// subscribe waits until the brokers have answered a request for messages of the group, if it is the driver's first:
// only then do they keep messages for a new one. Without messages, the proxy holds that request for 5 s at least.
func (c *consumer) subscribe(ctx context.Context, brokers []string) error {
	key := string(c.client.topic.Name) + "\x00" + string(c.client.group.Name)
	if _, known := c.d.known.Load(key); known {
		return nil
	}
	c.wanted = c.requests(brokers, leastHold)
	for range brokers {
		if err := c.askOnce(ctx); err != nil {
			return err
		}
	}
	if err := c.await(ctx, func() bool { return c.flying == 0 || c.err != nil }); err != nil {
		return driver.Errorf(driver.ClassTimeout, "", "is the proxy overloaded? See also --connect-timeout",
			"the proxy does not answer a request for messages: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil:
		return c.err
	case c.lease.Conn.Dead():
		return c.lease.Conn.Why()
	}
	c.d.known.Store(key, true)
	return nil
}

// await waits until something holds, which is judged with the lock, or the connection has ended.
func (c *consumer) await(ctx context.Context, holds func() bool) error {
	for !c.lease.Conn.Dead() {
		c.mu.Lock()
		enough := holds()
		c.mu.Unlock()
		if enough {
			break
		}
		select {
		case <-c.arrived:
		case <-c.lease.Conn.Over():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// askOnce makes a request for messages.
func (c *consumer) askOnce(ctx context.Context) error {
	c.mu.Lock()
	c.flying++
	c.mu.Unlock()
	r := &c.request
	*r = request{of: c.client, call: c.get, to: &ask{c: c, sent: time.Now()}, limit: holdLimit}
	r.parts[0] = c.wanted[c.next%len(c.wanted)]
	c.next++
	err := c.lease.Conn.start(ctx, r)
	if err != nil {
		c.mu.Lock()
		c.flying--
		c.mu.Unlock()
	}
	return err
}

// askMore keeps requests for messages in flight, as long as there is room for the answers. A group that consumes in
// order gets the next messages when it has acknowledged the last ones.
func (c *consumer) askMore(ctx context.Context, delivering bool) error {
	for {
		c.mu.Lock()
		most := max(asksInFlight, len(c.wanted))
		if c.client.fifo.Load() {
			if most = 1; c.acking > 0 || delivering || len(c.came) > 0 {
				most = 0
			}
		}
		enough := c.flying >= most || len(c.came) > crowded || c.rest || c.err != nil
		c.mu.Unlock()
		if enough {
			return nil
		}
		if err := c.askOnce(ctx); err != nil {
			if isOver(ctx, err) {
				return nil // Run ends
			}
			return err
		}
	}
}

// take implements [streamer]: a message, or the status of a request for messages.
func (a *ask) take(body []byte) error {
	c := a.c
	const message = wire.ReceiveMessageResponseMessage<<3 | 2 // the tag of the field
	if len(body) == 0 || body[0] != message {
		r := &c.noted
		if err := wire.Read(body, r); err != nil {
			return malformed("an answer to a request for messages: %w", err)
		}
		switch r.Status.Code {
		case 0, wire.CodeOk, wire.CodeMessageNotFound, wire.CodeTooManyRequests:
		default:
			c.fail(codeError(&r.Status))
		}
		return nil
	}
	if a.n++; a.n > c.opts.PullBatch {
		return malformed("more messages than were asked for")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	to := &c.came
	if c.client.settings.ClientType == wire.ClientTypePushConsumer {
		to = &a.kept
	}
	if len(*to)+len(body) > mostWaiting {
		return driver.Errorf(driver.ClassTooLarge, "", "ask for fewer at once by -o pull-batch",
			"messages of more than %d MiB wait for delivery", mostWaiting>>20)
	}
	*to = append(binary.BigEndian.AppendUint32(*to, uint32(len(body))), body...) //nolint:gosec // below a limit
	transport.Notify(c.arrived)
	return nil
}

// answer implements [caller]: the end of a request for messages.
func (a *ask) answer(_ uint64, _ []byte, err error) {
	c := a.c
	c.mu.Lock()
	c.came = append(c.came, a.kept...)
	if a.n == 0 && err == nil && time.Since(a.sent) < tooSoon {
		c.rest = true
		time.AfterFunc(restTime, func() {
			c.mu.Lock()
			c.rest = false
			c.mu.Unlock()
			transport.Notify(c.arrived)
		})
	}
	c.flying--
	if err != nil && !c.leaving && c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	transport.Notify(c.arrived)
}

// fail makes Run return an error once it has delivered the messages that have arrived.
func (c *consumer) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	transport.Notify(c.arrived)
}

// Run implements [driver.Consumer].
func (c *consumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	for ctx.Err() == nil {
		c.mu.Lock()
		b, err := c.came, c.err
		c.came = c.spare[:0]
		c.mu.Unlock()
		if len(b) > 0 || err == nil {
			if err = c.askMore(ctx, len(b) > 0); err == nil {
				err = c.deliverAll(ctx, b, deliver)
			}
			if err == nil {
				err = c.settle(ctx)
			}
		}
		if err != nil {
			return lost(c.op, err)
		}
		if c.spare = b; cap(b) > keptBuffer {
			c.spare = nil
		}
		if len(b) == 0 {
			c.input.Begin()
			select {
			case <-c.arrived:
			case <-ctx.Done():
			}
			c.input.End()
		}
	}
	return nil
}

// deliverAll delivers messages until ctx ends.
func (c *consumer) deliverAll(
	ctx context.Context, rest []byte, deliver func(*driver.Delivery) driver.Verdict,
) error {
	for len(rest) > 0 {
		if ctx.Err() != nil {
			c.left = append(c.left, rest...)
			return nil //nolint:nilerr // the end of ctx is no error
		}
		m, after, err := c.cut(rest)
		if err != nil {
			return err
		}
		rest = after
		verdict, err := c.deliver(m, deliver)
		if err == nil && verdict != driver.Accept {
			err = c.fails(ctx, m, verdict)
		} else if err == nil {
			c.ack(m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cut reads the first message of a batch, and returns what follows.
func (c *consumer) cut(b []byte) (*wire.Message, []byte, error) {
	n := binary.BigEndian.Uint32(b)
	if err := wire.Read(b[4:4+n], &c.message); err != nil {
		return nil, nil, malformed("a message: %w", err)
	}
	return &c.message.Message, b[4+n:], nil
}

// fails settles a message that was not accepted, even if ctx has ended meanwhile.
func (c *consumer) fails(ctx context.Context, m *wire.Message, verdict driver.Verdict) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.d.cfg.ConnectTimeout)
	defer cancel()
	if verdict == driver.Release {
		return c.giveBack(ctx, m, releaseAfter)
	}
	own := &m.SystemProperties
	_, err := c.client.ask(ctx, "give a message to the dead letters", wire.CallForwardMessageToDeadLetterQueue,
		&wire.ForwardMessageToDeadLetterQueueRequest{
			Group: c.client.group, Topic: c.client.topic, ReceiptHandle: own.ReceiptHandle, MessageID: own.MessageID,
			DeliveryAttempt: own.DeliveryAttempt, MaxDeliveryAttempts: own.DeliveryAttempt,
		})
	return err
}

func (c *consumer) deliver(
	m *wire.Message, deliver func(*driver.Delivery) driver.Verdict,
) (driver.Verdict, error) {
	own := &m.SystemProperties
	switch {
	case own.BodyEncoding > wire.EncodingIdentity:
		return 0, library.Unsupported("", "let the producer not compress", "the body of a message is compressed")
	case len(m.Body) > c.d.cfg.MaxBody:
		return 0, transport.TooLarge("", "a message of", len(m.Body), c.d.cfg.MaxBody)
	}
	d := &c.delivery
	*d = driver.Delivery{
		Body: m.Body, Redelivered: own.DeliveryAttempt > 1,
		Born: own.BornTimestamp.Micros(), Stored: own.StoreTimestamp.Micros(),
	}
	for _, p := range m.UserProperties {
		switch string(p.Key) {
		case driver.TimeProperty:
			d.Time, d.HasTime = remoting.ParseInt(p.Value)
		case driver.IDProperty:
			d.ID = c.ids.Read(p.Value)
		case rocketmq.PropPlan:
			d.Deferred = len(p.Value) > 0 && p.Value[0] == rocketmq.PlanOpen
		}
	}
	return deliver(d), nil
}

// giveBack lets a message be delivered again after that time.
func (c *consumer) giveBack(ctx context.Context, m *wire.Message, after time.Duration) error {
	_, err := c.client.ask(ctx, "give a message back", wire.CallChangeInvisibleDuration,
		&wire.ChangeInvisibleDurationRequest{
			Group: c.client.group, Topic: c.client.topic, MessageID: m.SystemProperties.MessageID,
			ReceiptHandle: m.SystemProperties.ReceiptHandle, InvisibleDuration: wire.DurationOf(after),
		})
	return err
}

// ack gathers the acknowledgement of a message.
func (c *consumer) ack(m *wire.Message) {
	if c.acked == 0 {
		c.acks = append(append(c.acks[:0], make([]byte, wire.PrefixSize)...), c.ackHead...)
	}
	c.entry.MessageID, c.entry.ReceiptHandle = m.SystemProperties.MessageID, m.SystemProperties.ReceiptHandle
	c.acks = wire.AppendAck(c.acks, &c.entry)
	c.acked++
}

// settle sends the acknowledgements.
func (c *consumer) settle(ctx context.Context) error {
	if c.acked == 0 {
		return nil
	}
	c.mu.Lock()
	c.acking++
	c.mu.Unlock()
	wire.AppendPrefix(c.acks[:0], len(c.acks)-wire.PrefixSize)
	r := &c.request
	*r = request{of: c.client, call: c.d.calls[wire.CallAckMessage], to: (*acker)(c), limit: callLimit}
	r.arg = uint64(c.acked) //nolint:gosec // a count
	r.parts[0] = c.acks
	err := c.lease.Conn.start(ctx, r)
	if err == nil {
		c.acked = 0
		return nil
	}
	c.mu.Lock()
	c.acking--
	c.mu.Unlock()
	if isOver(ctx, err) {
		return nil // Close tries again
	}
	return err
}

// acker receives the answers to acknowledgements.
type acker consumer

// answer implements [caller]: arg is the number of messages.
func (a *acker) answer(arg uint64, body []byte, err error) {
	c := (*consumer)(a)
	r := &c.answered
	if err == nil {
		err = wire.Read(body, r)
	}
	unacked := uint64(0)
	for i := range r.Entries {
		if err == nil && r.Entries[i].Status.Code != wire.CodeOk {
			unacked++
		}
	}
	if err != nil || r.Status.Code != wire.CodeOk && unacked == 0 {
		unacked = arg
	}
	c.unacked.Add(unacked)
	c.mu.Lock()
	c.acking--
	c.mu.Unlock()
	transport.Notify(c.arrived)
}

// Close implements [driver.Consumer].
func (c *consumer) Close(ctx context.Context) (err error) {
	if c.closed {
		return nil
	}
	c.closed = true
	c.lease.Leave(ctx, c.stages, func(ctx context.Context) {
		err = c.leave(ctx)
		c.lease.Release(ctx)
	})
	return err
}

// leave ends the requests for messages, gives back what has come, waits until the acknowledgements are answered, and
// takes leave of the proxy, which gives back the messages that it sent meanwhile.
func (c *consumer) leave(ctx context.Context) (err error) {
	c.mu.Lock()
	c.leaving = true
	c.mu.Unlock()
	conn := c.lease.Conn
	conn.endCalls(errAbandoned, func(s *stream) bool { a, ok := s.to.(*ask); return ok && a.c == c })
	c.mu.Lock()
	c.left = append(c.left, c.came...)
	c.mu.Unlock()
	if !conn.Dead() {
		err = c.settle(ctx)
	}
	for rest := c.left; len(rest) > 0 && err == nil && !conn.Dead(); {
		var m *wire.Message
		if m, rest, err = c.cut(rest); err == nil {
			err = c.giveBack(ctx, m, releaseAfter)
		}
	}
	_ = c.await(ctx, func() bool { return c.acking == 0 })
	if c.client != nil {
		c.client.leave(ctx)
	}
	last := c.users != nil && c.users.Add(-1) == 0 && c.client != nil
	if last && c.goes && c.d.admin != nil && !conn.Dead() && ctx.Err() == nil {
		if failed := c.d.admin.RemoveGroup(ctx, string(c.client.topic.Name), string(c.client.group.Name)); err == nil {
			err = failed
		}
	}
	if conn.Dead() {
		return nil
	}
	return err
}

// Host implements [driver.Located].
func (c *consumer) Host() string { return c.lease.Conn.Host() }

// Waits implements [driver.Waiter].
func (c *consumer) Waits() driver.Waits {
	return driver.Waits{Input: c.input.Idle(), Reader: c.lease.Conn.Raw.Reading()}
}

// Probe implements [driver.Prober].
func (c *consumer) Probe(ctx context.Context) error { return c.client.beat(ctx, c.op) }

// Counters implements [driver.Counting].
func (c *consumer) Counters() []driver.Counter {
	return []driver.Counter{
		{Name: "unacked", Help: "acknowledgements that the proxy refused", Value: c.unacked.Load()},
	}
}
