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

// DialError adds a hint to the reason why no network connection could be made, for reasons outside the protocol.
// It returns nil for other errors.
func DialError(op string, err error) error {
	const share = "share connections: --shared-connections, --consumer-connections"
	var dns *net.DNSError
	var hint string
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		hint = "raise the limit (ulimit -n), or " + share
	case errors.As(err, &dns):
		hint = "check the host's name"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint, err = share, fmt.Errorf("no local port is free (%w)", err)
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		hint = "check address, routes and firewalls"
	default:
		return nil
	}
	return driver.Errorf(driver.ClassConnect, op, hint, "%w", err)
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

// askPortFor asks about the port, and the other scheme.
func (p *Protocol) askPortFor(encrypted bool) string {
	if encrypted {
		return p.askPort() + "?"
	}
	return p.askPort() + ", and should it be " + p.Encrypted[0] + "://?"
}

// Unanswered is the error about a server that accepted the connection but did not answer within d, as err reports. It
// is for [Protocol.ConnectError].
func (p *Protocol) Unanswered(what string, encrypted bool, d time.Duration, err error) error {
	return unanswered(what, p.askPortFor(encrypted), d, err)
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
// [Protocol.ConnectError]. [Protocol.Diagnose] says what the peer is instead.
func (p *Protocol) Stranger(encrypted bool, greeting []byte) error {
	is := fmt.Sprintf("is no %s broker: it answered %.20q", p.Title, greeting)
	if IsHTTP2(greeting) {
		is = "speaks HTTP/2, as gRPC does, not " + p.Title
	}
	return driver.Errorf(driver.ClassProtocol, "", p.askPortFor(encrypted), "the peer %s", is)
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
