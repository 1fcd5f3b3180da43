package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// DialError describes in plain words why no network connection could be made, for reasons outside the protocol.
// It returns nil for other errors.
func DialError(op string, err error) error {
	const share = "share connections: --shared-connections, --consumer-connections"
	var dns *net.DNSError
	failed := func(text, hint string) error {
		return driver.Errorf(driver.ClassConnect, op, hint, "%s (%w)", text, err)
	}
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return failed("too many files and connections are open", "raise the limit (ulimit -n), or "+share)
	case errors.As(err, &dns):
		return driver.Errorf(driver.ClassConnect, op, "check the host's name", "%w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return failed("no local port is free", share)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return failed("there is no route to that host", "check address, routes and firewalls")
	}
	return nil
}

// ConnectError describes in plain words why no connection could be made to e. A [driver.Error] keeps its words.
func (p *Protocol) ConnectError(e Endpoint, err error) error {
	op := "connect to " + e.String()
	if err := DialError(op, err); err != nil {
		return err
	}
	var known *driver.Error
	switch {
	case errors.As(err, &known):
		return &driver.Error{Class: known.Class, Op: op, Hint: known.Hint, Err: known.Err}
	case IsAlert(err):
		return p.tlsError(op, err)
	case errors.Is(err, context.Canceled):
		return driver.Errorf(driver.ClassConnect, op, "", "%w", err)
	}
	switch driver.ClassOf(err) {
	case driver.ClassTimeout:
		return driver.Errorf(driver.ClassTimeout, op,
			cmp.Or(p.Absent, "check host, port and firewalls; see --connect-timeout"),
			"no connection in time: %w", err)
	case driver.ClassConnectionLost:
		return driver.Errorf(driver.ClassConnect, op,
			p.askPort()+"? "+p.Schemes[0]+":// is for plain connections, "+p.Encrypted[0]+":// for TLS",
			"the peer closed the connection before it said anything (%w)", err)
	default:
		return driver.Errorf(driver.ClassConnect, op,
			cmp.Or(p.Absent, "is the broker running, and is this its "+p.Title+" port?"), "%w", err)
	}
}

// askPort begins a hint about a port of another protocol.
func (p *Protocol) askPort() string { return "is this the broker's " + p.Title + " port" }

// Unanswered is the error about a server that accepted the connection but did not answer within d, as err reports. It
// is for [Protocol.ConnectError].
func (p *Protocol) Unanswered(what string, encrypted bool, d time.Duration, err error) error {
	hint := p.askPort() + ", and should it be " + p.Encrypted[0] + "://?"
	if encrypted {
		hint = p.askPort() + "?"
	}
	return unanswered(what, hint, d, err)
}

func unanswered(what, hint string, d time.Duration, err error) error {
	d = d.Round(time.Millisecond)
	if d >= time.Second {
		d = d.Round(100 * time.Millisecond) // a moment of it has passed
	}
	return driver.Errorf(driver.ClassTimeout, "", hint+" See also --connect-timeout",
		"the server accepted the connection but did not answer %s within %s (%w)", what, d, err)
}

// Stranger is the error about a peer that is no broker of the protocol, judged by its first bytes. It is for
// [Protocol.ConnectError].
func (p *Protocol) Stranger(encrypted bool, greeting []byte) error {
	hint, is := p.askPort()+"?", fmt.Sprintf("is no %s broker: it answered %.20q", p.Title, greeting)
	switch {
	case bytes.HasPrefix(greeting, []byte("HTTP")):
		is = "is a web server, no " + p.Title + " broker"
	case bytes.HasPrefix(greeting, []byte("AMQP")):
		is = "speaks AMQP, not " + p.Title
	case IsHTTP2(greeting):
		is = "speaks HTTP/2, as gRPC does, not " + p.Title
	case !encrypted && len(greeting) > 0 && (greeting[0] == 0x15 || greeting[0] == 0x16):
		// TLS alert or handshake, RFC 8446 section 5.1
		hint, is = "use "+p.Encrypted[0]+":// instead of "+p.Schemes[0]+"://", "demands an encrypted connection"
	}
	return driver.Errorf(driver.ClassProtocol, "", hint, "the peer %s", is)
}

// IsHTTP2 reports whether a server's first bytes are a frame SETTINGS of HTTP/2 (RFC 9113, section 3.4).
func IsHTTP2(greeting []byte) bool {
	const (
		header   = 9
		settings = 4
		setting  = 6 // bytes
	)
	return len(greeting) >= header && bytes.HasPrefix(greeting, []byte{0, 0}) && greeting[2]%setting == 0 &&
		bytes.Equal(greeting[3:header], []byte{settings, 0, 0, 0, 0, 0})
}
