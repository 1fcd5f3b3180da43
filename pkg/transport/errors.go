package transport

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// DialError adds a hint to the reason why no network connection could be made, for reasons outside the protocol.
// It returns nil for other errors.
func DialError(op string, err error) error {
	const share = "share connections: --shared-connections, --consumer-connections"
	var hint string
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		hint = "raise the limit (ulimit -n), or " + share
	case errors.As(err, new(*net.DNSError)):
		hint = "check the host's name"
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE): // the latter with a local address
		hint, err = share+"; or use more addresses: --local-address", fmt.Errorf("no local port is free (%w)", err)
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
			cmp.Or(p.Absent, "is the broker running, with "+p.Title+" on this port?"), "%w", err)
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

// IsAlert reports whether the peer ended the encrypted connection with a reason (RFC 8446, section 6.2): with TLS 1.3,
// servers refuse client certificates after the handshake. Package crypto/tls wraps it in an error of the network.
func IsAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// tlsError adds a hint to the reason why the TLS handshake failed. Its class is [driver.ClassTLS].
func (p *Protocol) tlsError(op string, err error) error {
	var invalid x509.CertificateInvalidError
	text, hint := "the TLS handshake failed", "is this the broker's TLS port?"
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		text = "the peer does not speak TLS on this port"
		hint = "use " + p.Schemes[0] + ":// instead of " + p.Encrypted[0] + "://, or the broker's TLS port"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		hint = "give the certificate of its authority by --tls-ca FILE"
	case errors.As(err, new(x509.HostnameError)):
		hint = "give the name in the certificate by --tls-server-name NAME"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		hint = "compare the clocks"
	case errors.As(err, &invalid):
		hint = "see openssl x509 -text"
	case IsAlert(err):
		hint = "the broker may want a client certificate: --tls-cert FILE --tls-key FILE"
	}
	return driver.Errorf(driver.ClassTLS, op, hint, "%s (%w)", text, err)
}

// ErrClosed is the cause of the end of a connection that we closed.
var ErrClosed = errors.New("the connection was closed")

// Hints about a broker that gives no reason, or a wrong one.
const (
	HintLog   = "look into the broker's log"
	HintProxy = HintLog + "; see also whether a proxy on the way changes its messages"
	HintAlive = "is the broker still running?"
	hintSlow  = "is the broker overloaded or paused? See also --connect-timeout"

	HintLarger = "--max-message-size SIZE accepts larger messages"
	HintFull   = "look for a full address or disk, an alarm or a quota (Artemis: max-size-bytes, address-full-policy)"
)

// NotAnswered is the reason of [NoAnswer].
const NotAnswered = "the broker had not answered when the producer closed"

// TooLarge returns the error about something with more bytes than perfmq takes, such as "a message of".
func TooLarge[N int | uint64](op, what string, size, limit N) error {
	return driver.Errorf(driver.ClassTooLarge, op, HintLarger,
		"the broker sends %s %d bytes; perfmq accepts at most %d", what, size, limit)
}

// Explain describes in plain words why a connection can no longer be used for op. A [driver.Error] keeps its words. It
// returns nil for nil.
func Explain(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *driver.Error // costs memory
	switch {
	case errors.As(err, &known):
		if known.Op != "" {
			return err
		}
		return &driver.Error{Class: known.Class, Op: op, Hint: known.Hint, Err: known.Err}
	case errors.Is(err, ErrClosed):
		return driver.Errorf(driver.ClassConnectionLost, op, "perfmq closed the connection",
			"%w", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return driver.Errorf(driver.ClassTimeout, op, hintSlow,
			"no answer from the broker: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return driver.Errorf(driver.ClassConnectionLost, op, HintLog,
			"the broker closed the connection without saying why (%w)", err)
	default:
		return driver.Errorf(driver.ClassConnectionLost, op, HintAlive, "the connection broke: %w", err)
	}
}

// Silent is the hint about a broker that does not answer. Ends are the settings that end a silent connection; empty if
// there are none.
func Silent(ends string) string {
	hint := "is the broker overloaded or paused? --send-timeout ends messages without an answer"
	if ends != "" {
		hint += ", and " + ends + " a silent connection"
	}
	return hint
}

// HeldBack is the error about a send for which the broker makes no room before its context ends.
func HeldBack(op string, err error) *driver.Error {
	return driver.Errorf(driver.ClassTimeout, op,
		HintFull, "not sent: %w", err)
}

// SendError is the error of a send that did not happen, for the reason err.
func SendError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return HeldBack(op, err)
	}
	return Explain(op, err)
}

// NoAnswer is the error about messages that the broker has not answered when their producer closes. Ends are the
// settings that end a silent connection; empty if there are none.
func NoAnswer(op, ends string) *driver.Error {
	return driver.Errorf(driver.ClassTimeout, op, Silent(ends), NotAnswered)
}

// Clip shortens a text of a broker to at most that many bytes.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
