package stomp

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// handle executes a frame.
func (c *conn) handle(f *wire.Received) error {
	err := c.perform(f)
	if err == nil {
		return nil
	}
	var r *refusal
	if errors.As(err, &r) && r.receipt == nil {
		if receipt := f.Get("receipt"); receipt != nil {
			r.receipt = bytes.Clone(receipt)
		}
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
		return c.send(f) // answers itself
	case wire.ACK:
		err = c.settle(f, false)
	case wire.NACK:
		err = c.settle(f, true)
	case wire.CONNECT:
		return c.connect(f)
	case wire.SUBSCRIBE:
		return c.subscribe(f) // answers itself
	case wire.UNSUBSCRIBE:
		err = c.unsubscribe(f)
	case wire.BEGIN:
		err = c.begin(f)
	case wire.COMMIT:
		return c.commit(f) // answers itself
	case wire.ABORT:
		err = c.abort(f)
	case wire.DISCONNECT:
		c.disconnect()
	default:
		return refuse("invalid frame: unknown command %q", f.Command)
	}
	if err != nil {
		return err
	}
	c.reply(f.Get("receipt"))
	return nil
}

// checkEscapes finds escapes that the version does not know.
func (c *conn) checkEscapes(f *wire.Received) error {
	for _, h := range f.Headers {
		for _, b := range [][]byte{h.Key, h.Value} {
			if _, ok := c.version.Unescape(b); !ok {
				return refuse("invalid frame: header line %.40q has an escape that STOMP %s does not know",
					string(h.Key)+":"+string(h.Value), c.version)
			}
		}
	}
	return nil
}

// text returns a header without its escapes, which were checked; empty if there is none.
func (c *conn) text(f *wire.Received, key string) string {
	b, _ := c.version.Unescape(f.Get(key))
	return string(b)
}

// reply confirms a frame, if a receipt is asked for.
func (c *conn) reply(receipt []byte) {
	if receipt != nil {
		c.replies = appendReceipt(c.replies, receipt)
	}
}

func appendReceipt(b, receipt []byte) []byte {
	return append(append(append(b, "RECEIPT\nreceipt-id:"...), receipt...), "\n\n\x00"...)
}

// maxOut is how much may wait for the writer. A client that does not read its receipts is not read either.
const maxOut = 1 << 20

// flush hands the replies to the writer, and waits while that has too much to do.
func (c *conn) flush() error {
	if len(c.replies) == 0 {
		return nil
	}
	c.write(c.replies)
	if c.replies = c.replies[:0]; cap(c.replies) > largeBuffer {
		c.replies = nil
	}
	for {
		c.mu.Lock()
		waiting := len(c.out)
		c.mu.Unlock()
		if waiting < maxOut {
			return nil
		}
		select {
		case <-c.drained:
		case <-c.done:
			return c.why()
		}
	}
}

// why returns why the connection broke.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// serverName is how we identify ourselves.
func serverName() string { return store.Product + "/" + transport.Version() }

// minBeat is the shortest time between heart-beats that we agree to.
const minBeat = 100 * time.Millisecond

// connect answers CONNECT. Its headers have no escapes in any version.
func (c *conn) connect(f *wire.Received) error {
	if c.connected {
		return refuse("invalid frame: a second CONNECT")
	}
	accept := f.Get("accept-version")
	v, ok := wire.Negotiate(string(accept))
	if !ok {
		return &refusal{
			words:   "Supported protocol versions are " + strings.ReplaceAll(wire.AllVersions, ",", " "),
			headers: "version:" + wire.AllVersions + "\n",
		}
	}
	value := func(key string) string {
		if v == wire.V10 {
			return string(bytes.Trim(f.Get(key), " \t"))
		}
		return string(f.Get(key))
	}
	if may := c.server.opts.Authenticate; may != nil && !may(value("login"), value("passcode")) {
		return refuse("authentication failed: wrong login or passcode")
	}
	send, hear, err := beats(value("heart-beat"))
	if err != nil {
		return err
	}
	c.version, c.connected, c.clientID = v, true, value("client-id")
	c.in.Trim, c.in.MaxBody = v == wire.V10, c.server.opts.MaxMessage
	b := append(c.replies, "CONNECTED\n"...)
	if accept != nil {
		b = append(append(append(b, "version:"...), v.String()...), '\n')
	}
	// What both agree to, not what we could do: clients exist (go-stomp) that take our second number for how long to wait
	// for a receipt.
	b = append(b, "server:"+serverName()+"\nheart-beat:"...)
	b = append(strconv.AppendInt(b, send.Milliseconds(), 10), ',')
	b = append(strconv.AppendInt(b, hear.Milliseconds(), 10), "\nsession:"...)
	b = append(strconv.AppendUint(b, c.source, 10), "\n\n\x00"...)
	c.replies = b
	limit := 2 * hear
	if hear == 0 {
		limit = c.server.opts.IdleTimeout
	}
	c.pulse.stop()
	c.pulse.start(c, send, limit)
	c.reply(f.Get("receipt")) // not in the specification, but clients do ask
	return nil
}

// beats reads the heart-beat header and returns how often each side sends one; 0 for never.
func beats(header string) (send, hear time.Duration, err error) {
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

// disconnect takes leave.
func (c *conn) disconnect() {
	c.gate.Flush() // all is stored
	c.leaving = true
	for _, s := range c.subs {
		s.close(false)
	}
}
