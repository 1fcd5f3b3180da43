package amqp

import (
	"bytes"
	"slices"
	"time"
)

// The protocol headers (Transport, section 2.2; Security, section 5.3.2).
const (
	headerSize = 8
	headerAMQP = "AMQP\x00\x01\x00\x00"
	headerSASL = "AMQP\x03\x01\x00\x00"
)

// Codes of a SASL outcome (Security, section 5.3.3.6).
const (
	saslOK   = 0
	saslAuth = 1
)

// handshake goes through the protocol headers and SASL. A header that we do not speak is answered with one that we do, and
// the end.
func (c *conn) handshake() error {
	authenticated := c.srv.opts.Authenticate == nil
	for {
		if err := c.need(headerSize); err != nil {
			return err
		}
		header := string(c.in[c.from : c.from+headerSize])
		c.from += headerSize
		switch {
		case header == headerAMQP && authenticated:
			c.send(func(b []byte) []byte { return append(b, headerAMQP...) })
			c.begun = true
			return nil
		case header == headerSASL:
			if err := c.sasl(); err != nil {
				return err
			}
			authenticated = true
		default:
			wanted := headerAMQP
			if !authenticated {
				wanted = headerSASL
			}
			c.send(func(b []byte) []byte { return append(b, wanted...) })
			return errNoProtocol
		}
	}
}

func (c *conn) sasl() error {
	c.send(func(b []byte) []byte {
		mechanisms := []string{"PLAIN"}
		if c.srv.opts.Authenticate == nil {
			mechanisms = []string{"ANONYMOUS", "PLAIN"}
		}
		b, frame := beginFrame(append(b, headerSASL...), frameSASL, 0)
		b, at := beginDescribed(b, descMechanisms)
		return finishFrame(finish(appendSymbols(b, mechanisms), at, 1), frame)
	})
	kind, _, body, err := c.frame()
	if err != nil {
		return err
	}
	f := values(body)
	descriptor, list := f.performative()
	mechanism, response := string(list.symbol()), list.binary()
	if f.bad || list.bad || kind != frameSASL || descriptor != descInit {
		return errBadSASL
	}
	code := byte(saslAuth)
	if c.admits(mechanism, response) {
		code = saslOK
	}
	c.send(func(b []byte) []byte {
		b, frame := beginFrame(b, frameSASL, 0)
		b, at := beginDescribed(b, descOutcome)
		return finishFrame(finish(append(b, codeUbyte, code), at, 1), frame)
	})
	if code != saslOK {
		return errRefused
	}
	return nil
}

// admits judges a response; PLAIN is [authorize] NUL user NUL password (RFC 4616).
func (c *conn) admits(mechanism string, response []byte) bool {
	authenticate := c.srv.opts.Authenticate
	switch mechanism {
	case "ANONYMOUS":
		return authenticate == nil
	case "PLAIN":
		parts := bytes.Split(response, []byte{0})
		return len(parts) == 3 && (authenticate == nil || authenticate(string(parts[1]), string(parts[2])))
	}
	return false
}

// Capabilities of connections.
const (
	capAnonymousRelay = "ANONYMOUS-RELAY"
	capSharedSubs     = "SHARED-SUBS"
	capDelayed        = "DELAYED_DELIVERY"
	capSole           = "sole-connection-for-container"
)

// onOpen answers the peer's open.
func (c *conn) onOpen(f fields) error {
	o := f.open()
	if f.bad {
		return fail(condDecode, "open")
	}
	if c.greeted {
		return fail(condFraming, "a second open")
	}
	c.greeted, c.container = true, o.container
	c.maxFrame = int(min(max(o.maxFrame, minMaxFrame), 1<<20))
	var refused *failure
	if slices.Contains(o.desired, capSole) {
		refused = c.beSole()
	}
	c.mu.Lock()
	if o.idle > 0 {
		c.beat = max(time.Duration(o.idle)*time.Millisecond/2, time.Millisecond)
	}
	c.out = c.appendOpen(c.out, refused)
	c.mu.Unlock()
	c.poke()
	if refused != nil {
		return refused
	}
	return nil
}

// beSole makes sure that no other connection has the container's name, as JMS clients want that have a client ID.
func (c *conn) beSole() *failure {
	c.srv.mu.Lock()
	defer c.srv.mu.Unlock()
	if c.srv.containers[c.container] {
		f := fail(condInvalidField, "there is a connection of the container %q already", c.container)
		f.field = "container-id"
		return f
	}
	c.srv.containers[c.container], c.exclusive = true, true
	return nil
}

// appendOpen appends our open; refused is why a close follows at once, or nil.
func (c *conn) appendOpen(b []byte, refused *failure) []byte {
	c.opened = true
	b, frame := beginFrame(b, frameAMQP, 0)
	b, at := beginDescribed(b, descOpen)
	b = appendNull(appendStr(b, "perfmq"))
	b = appendUint(b, ourMaxFrame)
	b = appendUshort(b, ourChannelMax)
	if idle := c.srv.opts.IdleTimeout; idle > 0 {
		b = appendUint(b, uint32(max(1, min(idle.Milliseconds()/2, 1<<31)))) //nolint:gosec // bounded
	} else {
		b = appendNull(b)
	}
	b = appendNull(appendNull(b)) // locales
	b = appendSymbols(b, []string{capAnonymousRelay, capSharedSubs, capDelayed, capSole})
	b = appendNull(b) // desired capabilities
	b, props := begin(b, codeMap32)
	b = appendStr(appendSymbol(b, "product"), "perfmq")
	b = appendStr(appendSymbol(b, "version"), c.srv.version)
	count := 4
	if refused != nil {
		b = appendBool(appendSymbol(b, "amqp:connection-establishment-failed"), true)
		count += 2
	}
	b = finish(b, props, count)
	return finishFrame(finish(b, at, 10), frame)
}
