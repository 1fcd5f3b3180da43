package amqp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// meaning is the meaning of an error condition of AMQP 1.0 (Transport, section 2.8) in plain words.
type meaning struct {
	class driver.Class // ClassNone leaves it to the endpoint that has ended: link, session or connection
	words string
	hint  string
}

func meaningOf(condition string) meaning {
	switch condition {
	case wire.CondNotFound:
		return meaning{driver.ClassNotFound, "it does not exist", ""} // see missing
	case wire.CondResourceDeleted:
		return meaning{driver.ClassNotFound, "it was deleted", "the address or queue was deleted on the broker"}
	case wire.CondUnauthorized:
		return meaning{driver.ClassAuth, "not authorised", "check --user and --password and the user's permissions " +
			"for this address on the broker"}
	case wire.CondResourceLimit:
		return meaning{driver.ClassFull, "a limit of the broker was reached", "look for a full address or a quota on " +
			"the broker (Artemis: max-size-bytes, address-full-policy)"}
	case wire.CondMessageSize:
		return meaning{driver.ClassTooLarge, "the message is too large", "send smaller messages or raise the broker's limit"}
	case wire.CondNotImplemented:
		return meaning{driver.ClassUnsupported, "the broker cannot do that", ""}
	case wire.CondNotAllowed:
		return meaning{driver.ClassNone, "not allowed", "the address may be of the other kind: try queue:// or topic://"}
	case wire.CondResourceLocked:
		return meaning{driver.ClassNone, "another client is using it", "another consumer may have it exclusively"}
	case wire.CondStolen:
		return meaning{
			driver.ClassNone, "another client took it over",
			"give each running client its own --clientID and subscription name",
		}
	case wire.CondDetachForced:
		return meaning{driver.ClassNone, "forced by the broker", "it was closed on the broker, or its queue was removed"}
	case wire.CondForced:
		return meaning{
			driver.ClassNone, "forced by the broker",
			"the broker is shutting down, or the connection was closed on it",
		}
	case wire.CondRedirect, wire.CondLinkRedirect:
		return meaning{driver.ClassNone, "the broker redirects to another address", "connect to the broker that it names"}
	case wire.CondInternal:
		return meaning{driver.ClassOther, "an error inside the broker", lookAtBroker}
	case wire.CondDecode, wire.CondFrameSize, wire.CondIllegalState, wire.CondInvalidField,
		wire.CondPrecondition, wire.CondFraming, wire.CondErrantLink, wire.CondHandleInUse,
		wire.CondUnattachedHandle, wire.CondWindow, wire.CondTransferLimit:
		return meaning{driver.ClassProtocol, "the broker says that we broke the protocol", ""}
	default:
		return meaning{}
	}
}

const (
	lookAtBroker = "look into the broker's log"

	maxWords     = 400 // of a broker's words that are quoted, in bytes
	maxCondition = 100
)

// clip shortens a text of a broker to that many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// codeOf returns the code with which Artemis begins its descriptions, such as AMQ229119; empty if there is none.
func codeOf(description string) string {
	code, _, ok := strings.Cut(description, ":")
	if !ok || !strings.HasPrefix(code, "AMQ") {
		return ""
	}
	return code
}

// meaningOfCode is meaningOf for codes of Artemis (ActiveMQMessageBundle) that it sends with a general condition.
func meaningOfCode(code string) (m meaning, ok bool) {
	switch code {
	case "AMQ229031", "AMQ229032", "AMQ229213": // it may not create the address, or may not use it
		return meaningOf(wire.CondUnauthorized), true
	case "AMQ229102":
		return meaningOf(wire.CondResourceLimit), true
	case "AMQ229119":
		return meaning{
			driver.ClassFull, "the broker's disk is full",
			"make room on its disk, or raise max-disk-usage; messages that are not persistent may still be taken",
		}, true
	}
	return meaning{}, false
}

// missing returns the hint for an address that is not there.
func (d dialect) missing() string {
	switch d {
	case artemis:
		return "create it on the broker, or let the broker create it: auto-create-addresses and auto-create-queues"
	case rabbitmq:
		return "declare it on the broker first: RabbitMQ 4 makes no queue or exchange by its use"
	case rabbitmq3:
		return "declare it on the broker first: RabbitMQ makes no queue by its use that is named by /amq/queue, and no " +
			"exchange"
	default:
		return "create it on the broker, or let the broker create it"
	}
}

// brokerError is the peer's error behind a [driver.Error].
type brokerError struct {
	condition string
	text      string
}

func (e *brokerError) Error() string { return e.text }

// conditionOf returns the error condition that the broker gave; "" if err is none of its errors.
func conditionOf(err error) string {
	var e *brokerError
	if errors.As(err, &e) {
		return e.condition
	}
	return ""
}

// remote returns the peer's error in plain words, followed by its own, shortened. Ended is a clause to put before them,
// such as "the broker closed the link"; "" for none.
func (d dialect) remote(ended string, class driver.Class, op string, e *wire.Error) *driver.Error {
	m := meaningOf(e.Condition)
	if e.Condition == wire.CondNotFound {
		m.hint = d.missing()
	}
	if known, ok := meaningOfCode(codeOf(e.Description)); ok {
		m = known
	}
	if d == activemq && e.Condition == wire.CondDecode {
		// It ends a connection with that also when it fails itself, such as while it stops for a full disk: that says
		// nothing of our frames, and another connection may do.
		m = meaning{driver.ClassNone, "the broker failed at a frame", ""}
	}
	if m.class != driver.ClassNone {
		class = m.class
	}
	if m.hint == "" {
		m.hint = lookAtBroker
	}
	text := ended
	for _, part := range []string{m.words, clip(e.Description, maxWords)} {
		if part == "" {
			continue
		}
		if text != "" {
			text += ": "
		}
		text += part
	}
	if text != "" {
		text += " "
	}
	condition := clip(e.Condition, maxCondition)
	return &driver.Error{Class: class, Op: op, Hint: m.hint, Err: &brokerError{condition, text + "(" + condition + ")"}}
}

// refusedOpen tells why a broker that knows us closes the connection at once. There is no address yet: it is the
// virtual host that it does not have, or does not let us use, or a limit.
func refusedOpen(e *wire.Error) *driver.Error {
	err := plain.remote("the broker closed the connection", driver.ClassConnect, "", e)
	const host = "It is the URL's host unless -o virtual-host=NAME says otherwise"
	field := wire.Lookup(e.Info, "invalid-field")
	if name, _ := field.Text(); string(name) == "container-id" { // Artemis and Classic
		err.Class = driver.ClassConnect
		err.Hint = "another client with that --clientID, or that name, is connected: give each running client its own"
		return err
	}
	switch e.Condition {
	case wire.CondNotFound, wire.CondNotAllowed, wire.CondInvalidField:
		if e.Condition != wire.CondNotFound {
			err.Class = driver.ClassConnect
		}
		err.Hint = "does the broker have the virtual host, and may the user use it? " + host
	case wire.CondUnauthorized:
		err.Hint = "check --user and --password, and that the user may use the virtual host. " + host
	case wire.CondResourceLimit:
		err.Hint = "the broker takes no more connections: use fewer, or raise its limit"
	}
	return err
}

// protocolError returns the error about a peer that breaks the protocol: it is we that end the connection.
func protocolError(format string, args ...any) error {
	return driver.Errorf(driver.ClassProtocol, "",
		"this is a fault of the broker, or of a proxy before it: does the port speak AMQP 1.0?",
		"the peer broke the protocol: it sent "+format, args...)
}

// explain explains in plain words an error of the connection while it was in use. It returns nil for nil.
func (c *connection) explain(op string, err error) error {
	var known *driver.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		if known.Op == "" {
			return &driver.Error{Class: known.Class, Op: op, Hint: known.Hint, Err: known.Err}
		}
		return err
	case errors.Is(err, errClosed):
		return driver.Errorf(driver.ClassConnectionLost, op, "it was closed from here, before this had ended", "%w", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return driver.Errorf(driver.ClassTimeout, op, "is the broker overloaded or paused? See also --connect-timeout",
			"no answer from the broker: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return driver.Errorf(driver.ClassConnectionLost, op, lookAtBroker,
			"the broker closed the connection without saying why")
	default:
		return driver.Errorf(driver.ClassConnectionLost, op, "is the broker still running?", "the connection broke: %w", err)
	}
}

// stage is how far the opening of a connection had come when it failed.
type stage uint8

const (
	stageDial stage = iota
	stageTLS
	stageOpen
)

// connectError tells in plain words why no connection could be made to e. Greeting holds the first bytes from the peer,
// in stageOpen.
func connectError(e transport.Endpoint, at stage, encrypted bool, greeting string, err error) error {
	op := "connect to " + e.String()
	var known *driver.Error
	if at == stageDial {
		if err := transport.DialError(op, e.Host, err); err != nil {
			return err
		}
	}
	switch {
	case errors.As(err, &known):
		return &driver.Error{Class: known.Class, Op: op, Hint: known.Hint, Err: known.Err}
	case errors.Is(err, syscall.ECONNREFUSED):
		return driver.Errorf(driver.ClassConnect, op, "is the broker running, and is this its AMQP port?", "%w", err)
	case errors.Is(err, context.Canceled):
		return driver.Errorf(driver.ClassConnect, op, "", "%w", err)
	case transport.IsTLSError(err):
		return protocol().TLSError(op, err)
	case at == stageDial && isTimeout(err):
		return driver.Errorf(driver.ClassTimeout, op, "check host and port, and firewalls in between; see --connect-timeout",
			"no connection in time: %w", err)
	case at == stageTLS:
		return noAnswer(op, "is this the broker's port for encrypted connections, or should it be amqp://?", err)
	case at == stageOpen && greeting == "" && !encrypted:
		return noAnswer(op, "is this the broker's AMQP port, and should it be amqps://?", err)
	case at == stageOpen && greeting == "":
		return noAnswer(op, "is this the broker's AMQP port?", err)
	case at == stageOpen:
		return openError(op, encrypted, greeting, err)
	default:
		return &driver.Error{
			Class: classOfConnect(err), Op: op, Hint: "is the broker running, and is this its AMQP port?",
			Err: err,
		}
	}
}

// noAnswer is for a peer that took the connection and then said nothing.
func noAnswer(op, hint string, err error) error {
	if isTimeout(err) {
		return driver.Errorf(driver.ClassTimeout, op, hint, "connected, but the peer did not answer in time: %w", err)
	}
	return driver.Errorf(driver.ClassConnect, op, hint, "connected, but the peer closed before it said anything: %w", err)
}

// openError is for a peer that answered, but not as an AMQP broker that lets us in.
func openError(op string, encrypted bool, greeting string, err error) error {
	switch {
	case isOldAMQP(greeting):
		return driver.Errorf(driver.ClassConnect, op, "on RabbitMQ before 4.0 enable the plugin rabbitmq_amqp1_0",
			"the peer speaks an older AMQP, not AMQP 1.0")
	case !strings.HasPrefix(greeting, "AMQP"):
		return notAMQP(op, encrypted, greeting)
	case errors.Is(err, errHeader):
		return driver.Errorf(driver.ClassAuth, op, "give --user and --password, or choose another -o sasl",
			"the broker does not offer this way to log in (%w)", err)
	case isTimeout(err):
		return driver.Errorf(driver.ClassTimeout, op, "is the broker overloaded? See --connect-timeout",
			"the broker did not finish opening the connection in time: %w", err)
	default:
		return driver.Errorf(classOfConnect(err), op, lookAtBroker,
			"the broker closed while the connection was being opened: %w", err)
	}
}

// isOldAMQP recognises the protocol header of AMQP 0-8 to 0-10: byte 5 is not a version 1 with an ID of AMQP 1.0's
// (0, 2 or 3), see AMQP 1.0, Transport, section 2.2.
func isOldAMQP(greeting string) bool {
	return len(greeting) == 8 && strings.HasPrefix(greeting, "AMQP") && greeting[5:] != "\x01\x00\x00"
}

func classOfConnect(err error) driver.Class {
	if class := driver.ClassOf(err); class != driver.ClassOther {
		return class
	}
	return driver.ClassConnect
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}

func notAMQP(op string, tls bool, greeting string) error {
	const hint = "is this the broker's AMQP port?"
	switch {
	case strings.HasPrefix(greeting, "HTTP"):
		return driver.Errorf(driver.ClassConnect, op, hint, "a web server answered, not an AMQP broker")
	case !tls && (greeting[0] == 0x15 || greeting[0] == 0x16): // TLS alert or handshake, RFC 8446 section 5.1
		return driver.Errorf(driver.ClassConnect, op, "use amqps:// instead of amqp://",
			"the peer demands an encrypted connection")
	default:
		return driver.Errorf(driver.ClassConnect, op, hint, "the peer is not an AMQP broker: it answered %q", greeting)
	}
}
