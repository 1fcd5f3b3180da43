package stomp

import (
	"context"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// stompDriver is a [driver.Driver]: a set of connections by key.
type stompDriver struct {
	transport.Identity
	transport.Pool[*connection]
	cfg transport.Settings[Options]
	mem transport.Buffers

	took      sync.Map      // the destinations to which the broker has confirmed a message
	consumers atomic.Uint64 // those with connections of their own

	mu    sync.Mutex
	users map[string]int // see use

	// leaving is held by the consumer of a shared subscription that is ending: the last consumer may remove the
	// subscription only when the broker has confirmed that the others are gone. It has room for one.
	leaving chan struct{}
}

func newDriver(cfg transport.Settings[Options]) *stompDriver {
	d := &stompDriver{cfg: cfg, users: map[string]int{}, leaving: make(chan struct{}, 1)}
	d.Open = d.dial
	return d
}

// acquire returns the connection that spec names. It opens the connection if need be.
func (d *stompDriver) acquire(
	ctx context.Context, spec driver.Connection,
) (*transport.Lease[*connection], error) {
	l, err := d.Acquire(ctx, spec)
	if err == nil && l.Users() > 1 {
		l.Conn.WasShared.Store(true)
	}
	return l, err
}

// use adds n to the number of consumers that share what, and returns the new number.
func (d *stompDriver) use(what string, n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.users[what] += n
	users := d.users[what]
	if users <= 0 {
		delete(d.users, what)
	}
	return users
}

// connection is a STOMP connection: one goroutine reads it, its users write.
type connection struct {
	*transport.Conn
	driver   *stompDriver
	identity string // client-id

	// Results of the handshake.
	in        *wire.Reader
	dialect   dialect
	server    string
	sendEvery time.Duration // interval of our heart-beats; 0 for none
	hearEvery time.Duration // interval of the broker's heart-beats; 0 for none

	mu        sync.Mutex
	lastID    uint64
	waiting   map[uint64]chan error
	producers atomic.Pointer[[]*producer]
	consumers atomic.Pointer[[]*consumer]

	// Of the reader.
	acking    []*consumer   // consumers with messages to acknowledge
	confirmed confirmations // sends that were confirmed, and not reported yet
}

func newConnection(
	d *stompDriver, host transport.Endpoint, conn net.Conn, raw *transport.Metered, identity string,
) *connection {
	c := &connection{
		Conn: transport.NewConn(host, conn, raw, &d.mem), driver: d, identity: identity, waiting: map[uint64]chan error{},
	}
	c.in = wire.NewReader(c.In, maxHead, d.cfg.MaxBody)
	c.producers.Store(&[]*producer{})
	c.consumers.Store(&[]*consumer{})
	return c
}

// start starts the reader. The handshake is over.
func (c *connection) start() {
	patience := 2 * c.hearEvery
	c.Start(c.idle, c.read, c.sendEvery, patience, func(b []byte) []byte { return append(b, '\n') },
		"-o heart-beat") // STOMP 1.2, "Heart-beating"
}

// idle is called when all received frames have been processed: the moment to send confirmations, acknowledgements and
// frames that were held back to be written together.
func (c *connection) idle() {
	c.Heard.Add(1) // all reads before the last one have returned bytes
	c.confirmed.report()
	for i, k := range c.acking {
		k.acknowledge()
		c.acking[i] = nil
	}
	c.acking = c.acking[:0]
	c.Out.Flush()
}

// End implements [transport.Shared].
func (c *connection) End(ctx context.Context) {
	c.Leave(ctx, func(ctx context.Context) { _ = c.request(ctx, wire.DISCONNECT) })
}

// putFrame sends one frame.
func (c *connection) putFrame(f *wire.Frame) error {
	return c.Put(func(b []byte) []byte { return f.Append(b) })
}

// request sends a frame that asks for a receipt, and waits for the receipt.
func (c *connection) request(ctx context.Context, command string, headers ...string) error {
	answer := make(chan error, 1)
	c.mu.Lock()
	c.lastID++
	r := receipt{kind: receiptOfRequest, number: c.lastID}
	c.waiting[r.number] = answer
	c.mu.Unlock()
	defer c.answerRequest(r.number, nil) // no longer waiting
	f := wire.NewFrame(command, headers...)
	f.Add("receipt", r.String())
	if err := c.putFrame(f); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-c.Over():
		select {
		case err := <-answer: // came just before
			return err
		default:
			return c.Why()
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answerRequest passes an answer to the waiting request.
func (c *connection) answerRequest(number uint64, err error) bool {
	c.mu.Lock()
	answer, ok := c.waiting[number]
	delete(c.waiting, number)
	c.mu.Unlock()
	if ok {
		answer <- err // the channel has room for the single answer
	}
	return ok
}

// enlist adds user to one of the lists of a connection's users, which the reader reads without a lock, and returns its
// index.
func enlist[T any](c *connection, list *atomic.Pointer[[]*T], user *T) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Dead() {
		return 0, c.Why()
	}
	old := *list.Load()
	grown := append(slices.Clone(old), user)
	list.Store(&grown)
	return uint64(len(old)), nil
}

// delist empties an entry of such a list. The index is not reused: late answers to it are dropped.
func delist[T any](c *connection, list *atomic.Pointer[[]*T], at uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := slices.Clone(*list.Load())
	rest[at] = nil
	list.Store(&rest)
}

// find returns the entry at that index, or nil.
func find[T any](list *atomic.Pointer[[]*T], at uint64) *T {
	if users := *list.Load(); at < uint64(len(users)) {
		return users[at]
	}
	return nil
}

// lookAtBroker is the general hint.
const lookAtBroker = transport.HintProxy

// clip shortens a text of a broker that should have been short.
func clip(text []byte) string { return transport.Clip(string(text), 40) }

// errorFrame returns the error that an ERROR frame reports.
func errorFrame(d dialect, f *wire.Received) *driver.Error {
	return protocol.STOMPError(string(d), unescape(string(f.Get("message"))), f.Body)
}

// errCannotCarry reports a header that the protocol cannot encode.
func errCannotCarry(key, value string) error {
	return driver.Errorf(driver.ClassUnsupported, "", "leave out special characters",
		"STOMP cannot carry %q as %s", value, key)
}

// unescape reverses [wire.AppendEscaped]. Unknown escapes stay: the text is only quoted.
func unescape(s string) string {
	if !strings.ContainsRune(s, '\\') {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\c`, ":").Replace(s)
}

// appendChecked appends header lines, or reports which of them cannot be encoded.
func appendChecked(b []byte, headers []driver.Property) ([]byte, error) {
	for _, h := range headers {
		if !wire.Carries(h.Value) {
			return nil, errCannotCarry(h.Key, h.Value)
		}
		b = wire.AppendHeader(b, h.Key, h.Value)
	}
	return b, nil
}

// Receipts are named after their subject, so that the reader needs no table:
//
//	s<producer>.<index>.<generation>   a message, by its slot
//	t<producer>.<transaction>          the commit of messages that were sent
//	r<consumer>.<transaction>          the commit of messages that were received
//	c<request>                         anything else
const (
	receiptOfSend    = 's'
	receiptOfCommit  = 't'
	receiptOfReceive = 'r'
	receiptOfRequest = 'c'
)

// receipt is a parsed receipt-id.
type receipt struct {
	kind   byte
	owner  uint64      // the producer or consumer
	slot   driver.Slot // of a message
	number uint64      // of the transaction or request
}

func (r receipt) append(b []byte) []byte {
	b = append(b, r.kind)
	if r.kind != receiptOfRequest {
		b = append(strconv.AppendUint(b, r.owner, 10), '.')
	}
	if r.kind == receiptOfSend {
		b = append(strconv.AppendUint(b, uint64(r.slot.Index()), 10), '.')
		return strconv.AppendUint(b, uint64(r.slot.Generation()), 10)
	}
	return strconv.AppendUint(b, r.number, 10)
}

func (r receipt) String() string { return string(r.append(nil)) }

// parseReceipt parses a receipt-id; ok is false if it is not one of ours.
func parseReceipt(b []byte) (r receipt, ok bool) {
	var numbers [3]uint64
	number, n, digits := uint64(0), 0, 0
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '.' && digits > 0 && n < len(numbers)-1:
			numbers[n] = number
			number, n, digits = 0, n+1, 0
		case c >= '0' && c <= '9' && digits < wire.MaxDigits:
			number, digits = number*10+uint64(c-'0'), digits+1
		default:
			return r, false
		}
	}
	if digits == 0 {
		return r, false
	}
	numbers[n] = number
	switch r.kind, r.owner = b[0], numbers[0]; r.kind {
	case receiptOfSend:
		ok = n == 2 && numbers[1] <= math.MaxUint32 && numbers[2] <= math.MaxUint32
		r.slot = driver.NewSlot(uint32(numbers[1]), uint32(numbers[2])) //nolint:gosec // checked
	case receiptOfCommit, receiptOfReceive:
		ok, r.number = n == 1, numbers[1]
	case receiptOfRequest:
		ok, r.owner, r.number = n == 0, 0, numbers[0]
	}
	return r, ok
}
