package stomp

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/transport"
)

// handle executes a frame.
func (c *conn) handle(f *wire.Received) error {
	err := c.perform(f)
	if r, ok := errors.AsType[*refusal](err); ok && r.receipt == nil {
		r.receipt = bytes.Clone(f.Get("receipt"))
	}
	return err
}

func (c *conn) perform(f *wire.Received) (err error) {
	switch {
	case !c.connected && f.Command != wire.CONNECT:
		return refuse("invalid frame: the first one must be CONNECT or STOMP")
	case c.connected && f.Escaped():
		if err := c.checkEscapes(f); err != nil {
			return err
		}
	}
	switch f.Command {
	case wire.SEND:
		return c.send(f) // replies itself
	case wire.ACK:
		err = c.settle(f, false)
	case wire.NACK:
		err = c.settle(f, true)
	case wire.CONNECT:
		return c.connect(f)
	case wire.SUBSCRIBE:
		return c.subscribe(f) // replies itself
	case wire.UNSUBSCRIBE:
		err = c.unsubscribe(f)
	case wire.BEGIN:
		err = c.begin(f)
	case wire.COMMIT:
		return c.commit(f) // replies itself
	case wire.ABORT:
		err = c.abort(f)
	case wire.DISCONNECT:
		c.gate.Flush() // all messages are stored: their receipts need not wait for room
		c.disconnected = true
		for _, s := range c.subs {
			s.close(false)
		}
	default:
		return refuse("invalid frame: unknown command %q", f.Command)
	}
	if err != nil {
		return err
	}
	c.reply(f.Get("receipt"))
	return nil
}

// checkEscapes refuses unknown escapes.
func (c *conn) checkEscapes(f *wire.Received) error {
	for _, h := range f.Headers {
		for _, b := range [][]byte{h.Key, h.Value} {
			if _, ok := wire.Unescape(b); !ok {
				return refuse("invalid frame: header line %.40q has an unknown escape", string(h.Key)+":"+string(h.Value))
			}
		}
	}
	return nil
}

// text returns an unescaped header, or an empty text. Its escapes were checked.
func (c *conn) text(f *wire.Received, key string) string {
	b, _ := wire.Unescape(f.Get(key))
	return string(b)
}

// reply confirms a frame with a receipt header.
func (c *conn) reply(receipt []byte) {
	if receipt != nil {
		c.replies = appendReceipt(c.replies, receipt)
	}
}

func appendReceipt(b, receipt []byte) []byte {
	return append(append(append(b, "RECEIPT\nreceipt-id:"...), receipt...), "\n\n\x00"...)
}

// maxOut is the unwritten output, in bytes, above which the connection is not read.
const maxOut = 1 << 20

// flush hands the replies to the writer, and waits while the unwritten output exceeds maxOut.
func (c *conn) flush() error {
	if len(c.replies) == 0 {
		return nil
	}
	c.write(c.replies)
	if c.replies = c.replies[:0]; cap(c.replies) > keepBuffer {
		c.replies = nil
	}
	return store.AwaitWriter(&c.mu, &c.out, maxOut, c.drained, c.done)
}

// minBeat is the shortest agreed time between heart-beats.
const minBeat = 100 * time.Millisecond

// connect handles CONNECT. Its headers have no escapes.
func (c *conn) connect(f *wire.Received) error {
	if c.connected {
		return refuse("invalid frame: a second CONNECT")
	}
	value := func(key string) string { return string(f.Get(key)) }
	if !wire.Accepts(value("accept-version")) {
		return &refusal{text: "Supported protocol versions are " + wire.Version, headers: "version:" + wire.Version + "\n"}
	}
	if check := c.server.Authenticate; check != nil && !check(value("login"), value("passcode")) {
		return refuse("authentication failed: wrong login or passcode")
	}
	send, receive, err := heartbeats(value("heart-beat"))
	if err != nil {
		return err
	}
	c.connected, c.clientID = true, value("client-id")
	c.in.MaxBody = c.server.MaxMessage
	b := append(c.replies, "CONNECTED\nversion:"+wire.Version+"\n"...)
	// The agreed times, not the possible ones: go-stomp takes our second number for its receipt time-out.
	b = append(b, "server:"+store.Product+"/"+transport.Version+"\nheart-beat:"...)
	b = append(strconv.AppendInt(b, send.Milliseconds(), 10), ',')
	b = append(strconv.AppendInt(b, receive.Milliseconds(), 10), "\nsession:"...)
	b = append(strconv.AppendUint(b, c.source, 10), "\n\n\x00"...)
	c.replies = b
	c.silence = 2 * receive
	c.mu.Lock()
	c.beats = send * 2 / 3
	c.mu.Unlock()
	c.reply(f.Get("receipt")) // not in the specification, but clients ask for it
	return nil
}

// heartbeats parses the heart-beat header and returns the intervals of both sides; 0 for never.
func heartbeats(header string) (send, receive time.Duration, err error) {
	if header == "" {
		return 0, 0, nil
	}
	can, wants, ok := wire.ParseHeartBeat(header)
	if !ok {
		return 0, 0, refuse("invalid heart-beat header %.40q", header)
	}
	atLeast := func(d time.Duration) time.Duration {
		if d == 0 {
			return 0
		}
		return max(minBeat, d)
	}
	return atLeast(wants), atLeast(can), nil
}
