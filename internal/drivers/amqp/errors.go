package amqp

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// meaning is the meaning of an error condition of AMQP 1.0 (Transport, section 2.8) in plain words.
type meaning struct {
	class driver.Class // ClassNone leaves it to the ended endpoint: link, session or connection
	words string
	hint  string
}

func meaningOf(condition string) meaning {
	switch condition {
	case wire.CondNotFound:
		return meaning{driver.ClassNotFound, "it does not exist", ""} // see remote
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
		return meaning{
			driver.ClassUnsupported, "not allowed",
			"the address may be of the other kind: try queue:// or topic://",
		}
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
	case wire.CondIllegalState, wire.CondPrecondition:
		return meaning{driver.ClassOther, "the state of the broker does not allow it", lookAtBroker}
	case wire.CondDecode, wire.CondFrameSize, wire.CondInvalidField, wire.CondFraming, wire.CondErrantLink,
		wire.CondHandleInUse, wire.CondUnattachedHandle, wire.CondWindow, wire.CondTransferLimit:
		return meaning{driver.ClassProtocol, "the broker says that we broke the protocol", ""}
	default:
		return meaning{}
	}
}

const (
	lookAtBroker = "look into the broker's log"

	maxWords     = 400 // of a quoted text of a broker, in bytes
	maxCondition = 100
)

// codeOf returns the code with which Artemis begins its descriptions, such as AMQ229119; empty if there is none.
func codeOf(description string) string {
	code, _, ok := strings.Cut(description, ":")
	if !ok || !strings.HasPrefix(code, "AMQ") {
		return ""
	}
	return code
}

// meaningOfCode is meaningOf for codes of Artemis (ActiveMQMessageBundle) that come with a general condition.
func meaningOfCode(code string) (m meaning, ok bool) {
	switch code {
	case "AMQ229031", "AMQ229032", "AMQ229213": // the user may not create the address, or may not use it
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

// brokerError is the peer's error behind a [driver.Error].
type brokerError struct {
	condition string
	text      string
}

func (e *brokerError) Error() string { return e.text }

// conditionOf returns the error condition of the broker; "" if err is not an error of the broker.
func conditionOf(err error) string {
	var e *brokerError
	if errors.As(err, &e) {
		return e.condition
	}
	return ""
}

// lost describes why the peer ended something open; class is that of a loss.
func (d dialect) lost(ended string, class driver.Class, e *wire.Error) *driver.Error {
	err := d.remote(ended, class, "", e)
	err.Class = class.LossBy(err.Class)
	return err
}

// remote describes the peer's error in plain words, followed by the peer's own text, shortened. Ended is a clause to
// put before, such as "the broker closed the link"; "" for none.
func (d dialect) remote(ended string, class driver.Class, op string, e *wire.Error) *driver.Error {
	m := meaningOf(e.Condition)
	if e.Condition == wire.CondTxnRollback {
		cause := wire.Lookup(e.Info, wire.InfoCause)
		condition, _ := cause.Text()
		m = meaningOf(string(condition))
	}
	if e.Condition == wire.CondNotFound {
		m.hint = protocol.Missing(string(d))
	}
	if known, ok := meaningOfCode(codeOf(e.Description)); ok {
		m = known
	}
	if d == activemq && e.Condition == wire.CondDecode {
		// ActiveMQ Classic also ends a connection with that when it fails itself, such as while it stops for a full disk.
		m.words = "the broker failed at a frame"
	}
	if m.class != driver.ClassNone {
		class = m.class
	}
	if m.hint == "" {
		m.hint = lookAtBroker
	}
	text := ended
	for _, part := range []string{m.words, transport.Clip(e.Description, maxWords)} {
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
	condition := transport.Clip(e.Condition, maxCondition)
	return &driver.Error{Class: class, Op: op, Hint: m.hint, Err: &brokerError{condition, text + "(" + condition + ")"}}
}

// refusedOpen describes why a broker that knows the user closes the connection at once. There is no address yet: the
// cause is the virtual host, which does not exist or is forbidden, or a limit.
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

// protocolError returns the error about a peer that breaks the protocol: we end the connection.
func protocolError(format string, args ...any) error {
	return driver.Errorf(driver.ClassProtocol, "",
		"this is a fault of the broker, or of a proxy before it: does the port speak AMQP 1.0?",
		"the peer broke the protocol: it sent "+format, args...)
}

// fault returns the error about an unreadable frame; other errors stay as they are.
func fault(err error) error {
	var known *driver.Error
	var head *wire.FrameError
	var decode *wire.DecodeError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &decode):
		return protocolError("a frame that cannot be read: %w", err)
	case errors.As(err, &head):
		return protocolError("%w", err)
	default:
		return err
	}
}

// explain describes why a connected peer does not open the AMQP connection. Limit is the time that it had.
func (h *handshake) explain(limit time.Duration, err error) error {
	encrypted, class := h.c.driver.cfg.Target.TLS, driver.ClassOf(err)
	var known *driver.Error
	switch {
	case errors.As(err, &known), transport.IsTLSError(err), errors.Is(err, context.Canceled):
		return err
	case h.greeting == "" && class == driver.ClassTimeout:
		return protocol.AMQP().Unanswered("our protocol header", encrypted, limit, err)
	case h.greeting == "":
		return err
	case isOldAMQP(h.greeting):
		return driver.Errorf(driver.ClassConnect, "", "on RabbitMQ before 4.0 enable the plugin rabbitmq_amqp1_0",
			"the peer speaks an older AMQP, not AMQP 1.0")
	case !strings.HasPrefix(h.greeting, "AMQP"):
		return protocol.AMQP().Stranger(encrypted, []byte(h.greeting))
	case errors.Is(err, errHeader):
		return driver.Errorf(driver.ClassAuth, "", "give --user and --password, or choose another -o sasl",
			"the broker does not offer this way to log in (%w)", err)
	case class == driver.ClassTimeout:
		return driver.Errorf(class, "", "is the broker overloaded? See --connect-timeout",
			"the broker did not finish opening the connection in time: %w", err)
	case class == driver.ClassOther:
		class = driver.ClassConnect
	}
	return driver.Errorf(class, "", lookAtBroker, "the broker closed while the connection was being opened: %w", err)
}

// isOldAMQP recognises the protocol header of AMQP 0-8 to 0-10: byte 5 is not the version 1 with an ID of AMQP 1.0 (0,
// 2 or 3), see AMQP 1.0, Transport, section 2.2.
func isOldAMQP(greeting string) bool {
	return len(greeting) == 8 && strings.HasPrefix(greeting, "AMQP") && greeting[5:] != "\x01\x00\x00"
}
