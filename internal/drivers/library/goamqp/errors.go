package goamqp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/Azure/go-amqp"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// isCreditError reports whether the library gave up waiting for credit. The peer's errors come wrapped, so that the
// same condition sent by a broker is not mistaken for it.
func isCreditError(err error) bool { return isOwnError(err, amqp.ErrCondTransferLimitExceeded) }

// isTooLarge reports whether the library refused a message that is larger than the link allows.
func isTooLarge(err error) bool { return isOwnError(err, amqp.ErrCondMessageSizeExceeded) }

func isOwnError(err error, condition amqp.ErrCond) bool {
	e, ok := err.(*amqp.Error) //nolint:errorlint // wrapped ones are the peer's
	return ok && e.Condition == condition
}

// meaning is what an error condition of AMQP 1.0 (Transport, section 2.8) says in plain words.
type meaning struct {
	class driver.Class // ClassNone leaves it to what has ended: link, session or connection
	words string
	hint  string
}

func meaningOf(condition amqp.ErrCond) meaning {
	switch condition {
	case amqp.ErrCondNotFound:
		return meaning{driver.ClassNotFound, "it does not exist", ""} // see missing
	case amqp.ErrCondResourceDeleted:
		return meaning{driver.ClassNotFound, "it was deleted", "somebody deleted the address or queue on the broker"}
	case amqp.ErrCondUnauthorizedAccess:
		return meaning{driver.ClassAuth, "not authorised", "check --user and --password and the user's permissions " +
			"for this address on the broker"}
	case amqp.ErrCondResourceLimitExceeded:
		return meaning{driver.ClassFull, "a limit of the broker was reached", "look for a full address or a quota on " +
			"the broker (Artemis: max-size-bytes, address-full-policy)"}
	case amqp.ErrCondMessageSizeExceeded:
		return meaning{driver.ClassTooLarge, "the message is too large", "send smaller messages or raise the broker's limit"}
	case amqp.ErrCondNotImplemented:
		return meaning{driver.ClassUnsupported, "the broker cannot do that", ""}
	case amqp.ErrCondNotAllowed:
		return meaning{driver.ClassNone, "not allowed", "the address may be of the other kind: try queue:// or topic://"}
	case amqp.ErrCondResourceLocked:
		return meaning{driver.ClassNone, "it is in use by somebody else", "another consumer may have it exclusively"}
	case amqp.ErrCondStolen:
		return meaning{
			driver.ClassNone, "another client took it over",
			"give each running client its own --clientID and subscription name",
		}
	case amqp.ErrCondDetachForced:
		return meaning{driver.ClassNone, "forced by the broker", "somebody closed it on the broker, or removed its queue"}
	case amqp.ErrCondConnectionForced:
		return meaning{driver.ClassNone, "forced by the broker", "the broker is going down, or somebody closed the connection on it"}
	case amqp.ErrCondConnectionRedirect, amqp.ErrCondLinkRedirect:
		return meaning{driver.ClassNone, "the broker sends us elsewhere", "connect to the broker that it names"}
	case amqp.ErrCondInternalError:
		return meaning{driver.ClassOther, "an error inside the broker", "look into the broker's log"}
	case amqp.ErrCondDecodeError, amqp.ErrCondFrameSizeTooSmall, amqp.ErrCondIllegalState, amqp.ErrCondInvalidField,
		amqp.ErrCondPreconditionFailed, amqp.ErrCondFramingError, amqp.ErrCondErrantLink, amqp.ErrCondHandleInUse,
		amqp.ErrCondUnattachedHandle, amqp.ErrCondWindowViolation, amqp.ErrCondTransferLimitExceeded:
		return meaning{driver.ClassProtocol, "the broker says that we broke the protocol", ""}
	default:
		return meaning{}
	}
}

const (
	lookAtBroker = "look into the broker's log"

	maxWords     = 400 // what is quoted of a broker's words, in bytes
	maxCondition = 100
)

// clip shortens a text of a broker's to that many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// codeOf returns the code with which Artemis begins what it says, such as AMQ229119; empty if there is none.
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
		return meaningOf(amqp.ErrCondUnauthorizedAccess), true
	case "AMQ229102":
		return meaningOf(amqp.ErrCondResourceLimitExceeded), true
	case "AMQ229119":
		return meaning{driver.ClassFull, "the broker's disk is full", "make room on its disk, or raise max-disk-usage; messages that are not " +
			"persistent may still be taken"}, true
	}
	return meaning{}, false
}

// remote tells the peer's error in plain words, followed by its own. What ended is "" when nothing did.
func (d dialect) remote(ended string, class driver.Class, op string, e *amqp.Error) *driver.Error {
	m := meaningOf(e.Condition)
	if m.hint == "" {
		m.hint = lookAtBroker
	}
	if m.class != driver.ClassNone {
		class = m.class
	}
	if e.Condition == amqp.ErrCondNotFound {
		m.hint = d.missing()
	}
	if known, ok := meaningOfCode(codeOf(e.Description)); ok {
		m, class = known, known.class
	}
	if m == (meaning{}) {
		m.hint = "look into the broker's log"
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
	return &driver.Error{Class: class, Op: op, Hint: m.hint, Err: fmt.Errorf("%s(%s)", text, clip(string(e.Condition), maxCondition))}
}

// missing says what to do about an address that is not there.
func (d dialect) missing() string {
	switch d {
	case artemis:
		return "create it on the broker, or let the broker create it: auto-create-addresses and auto-create-queues"
	case rabbitmq:
		return "declare it on the broker first: RabbitMQ 4 makes no queue or exchange by its use"
	case rabbitmq3:
		return "declare it on the broker first: RabbitMQ makes no queue by its use that is named by /amq/queue, and no exchange"
	default:
		return "create it on the broker, or let the broker create it"
	}
}

// explain tells in plain words what the library reported while the connection was in use. It returns nil for nil.
func (c *connection) explain(op string, err error) error {
	var (
		known   *driver.Error
		connErr *amqp.ConnError
		session *amqp.SessionError
		link    *amqp.LinkError
		peer    *amqp.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &connErr) && connErr.RemoteErr != nil && !c.admitted.Load():
		return refusedOpen(op, connErr.RemoteErr)
	case errors.As(err, &connErr) && connErr.RemoteErr != nil:
		return c.remote("the broker closed the connection", driver.ClassConnectionLost, op, connErr.RemoteErr)
	case errors.As(err, &session) && session.RemoteErr != nil:
		return c.remote("the broker ended the session", driver.ClassClosedByBroker, op, session.RemoteErr)
	case errors.As(err, &link) && link.RemoteErr != nil:
		return c.remote("the broker closed the link", driver.ClassClosedByBroker, op, link.RemoteErr)
	case errors.As(err, &connErr):
		return c.lost(op, err)
	case errors.As(err, &peer): // what the broker said counts, even if it has hung up since
		return c.remote("", driver.ClassOther, op, peer)
	case c.dead():
		return c.lost(op, err)
	case errors.As(err, &session) && *session != (amqp.SessionError{}), errors.As(err, &link) && *link != (amqp.LinkError{}):
		return foul(op, "the link", err)
	case errors.As(err, &session), errors.As(err, &link):
		return driver.Errorf(driver.ClassClosedByBroker, op, "look into the broker's log", "the broker closed it without saying why")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return driver.Errorf(driver.ClassTimeout, op, "is the broker overloaded or paused? See also --connect-timeout",
			"no answer from the broker: %w", err)
	case driver.ClassOf(err) == driver.ClassOther: // the library gives what keeps it from opening a link no types
		return driver.Errorf(driver.ClassUnsupported, op, "does the address exist, with that kind (queue or topic)? Does the broker agree to "+
			"-o settle="+c.settle+"?", "no link could be agreed on with the broker (%w)", err)
	default:
		return &driver.Error{Class: driver.ClassOf(err), Op: op, Err: err}
	}
}

// foul is for what we ended ourselves, because of what the peer sent.
func foul(op, what string, err error) error {
	return driver.Errorf(driver.ClassProtocol, op, "this is a fault of the broker, or of what is before it: is it one for AMQP 1.0?",
		"the peer broke the protocol, so %s was ended from here (%s)", what, clip(err.Error(), maxWords))
}

// disagrees reports whether it was the library that refused a link, because the peer had answered with other settle modes than
// were asked for: the default, mixed, if it said nothing. What the peer refuses is an error of its own.
func (c *connection) disagrees(ctx context.Context, err error) bool {
	var peer *amqp.Error
	var link *amqp.LinkError
	var session *amqp.SessionError
	var conn *amqp.ConnError
	return err != nil && ctx.Err() == nil && !c.dead() &&
		!errors.As(err, &peer) && !errors.As(err, &link) && !errors.As(err, &session) && !errors.As(err, &conn)
}

// lost tells why the connection ended by itself. The library hides the cause, so it is taken from below.
func (c *connection) lost(op string, err error) error {
	var connErr *amqp.ConnError
	cause := c.net.cause()
	switch {
	case (cause == nil || errors.Is(cause, net.ErrClosed)) && errors.As(err, &connErr) && *connErr != (amqp.ConnError{}):
		return foul(op, "the connection", err)
	case cause == nil && err.Error() != "":
		return driver.Errorf(driver.ClassConnectionLost, op, "", "the connection is closed (%w)", err)
	case errors.Is(cause, io.EOF):
		return driver.Errorf(driver.ClassConnectionLost, op, "look into the broker's log",
			"the broker closed the connection without saying why")
	case errors.Is(cause, os.ErrDeadlineExceeded):
		return driver.Errorf(driver.ClassConnectionLost, op, "is the broker paused or the network down? See -o idle-timeout",
			"nothing was heard from the broker for %s", c.idle)
	default:
		return driver.Errorf(driver.ClassConnectionLost, op, "is the broker still running?", "the connection broke: %w", cause)
	}
}

// stage is how far the opening of a connection had come when it failed.
type stage uint8

const (
	stageDial stage = iota
	stageTLS
	stageOpen
)

// connectError tells in plain words why no connection could be made to e. Said is what the peer sent in stageOpen.
func connectError(e transport.Endpoint, at stage, encrypted bool, said *handshake, err error) error {
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
	case at == stageOpen && said.greeting == "" && !encrypted:
		return noAnswer(op, "is this the broker's AMQP port, and should it be amqps://?", err)
	case at == stageOpen && said.greeting == "":
		return noAnswer(op, "is this the broker's AMQP port?", err)
	case at == stageOpen:
		return openError(op, encrypted, said, err)
	default:
		return &driver.Error{Class: classOfConnect(err), Op: op, Hint: "is the broker running, and is this its AMQP port?", Err: err}
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
func openError(op string, encrypted bool, said *handshake, err error) error {
	var peer *amqp.ConnError
	switch {
	case said.isOldAMQP():
		return driver.Errorf(driver.ClassConnect, op, "on RabbitMQ before 4.0 enable the plugin rabbitmq_amqp1_0",
			"the peer speaks an older AMQP, not AMQP 1.0")
	case !strings.HasPrefix(said.greeting, "AMQP"):
		return notAMQP(op, encrypted, said.greeting)
	case isTimeout(err):
		return driver.Errorf(driver.ClassTimeout, op, "is the broker overloaded? See --connect-timeout",
			"the broker did not finish opening the connection in time: %w", err)
	case errors.As(err, &peer) && peer.RemoteErr != nil:
		return refusedOpen(op, peer.RemoteErr)
	}
	if words, hint, failed := said.login(); failed {
		return driver.Errorf(driver.ClassAuth, op, hint, "%s (%w)", words, err)
	}
	if said.broken == nil {
		return foul(op, "the connection", err)
	}
	return driver.Errorf(classOfConnect(err), op, "look into the broker's log",
		"the broker closed while the connection was being opened: %w", err)
}

// refusedOpen tells why a broker that knows us closes the connection at once. There is no address yet: it is the virtual host that it
// does not have, or does not let us use, or a limit.
func refusedOpen(op string, e *amqp.Error) error {
	err := plain.remote("the broker closed the connection", driver.ClassConnect, op, e)
	switch e.Condition {
	case amqp.ErrCondNotFound, amqp.ErrCondNotAllowed, amqp.ErrCondInvalidField:
		if e.Condition != amqp.ErrCondNotFound {
			err.Class = driver.ClassConnect
		}
		err.Hint = "does the broker have the virtual host, and may the user use it? It is the URL's host unless -o virtual-host=NAME says otherwise"
	case amqp.ErrCondUnauthorizedAccess:
		err.Hint = "check --user and --password, and that the user may use the virtual host: it is the URL's host unless " +
			"-o virtual-host=NAME says otherwise"
	case amqp.ErrCondResourceLimitExceeded:
		err.Hint = "the broker takes no more connections: use fewer, or raise its limit"
	}
	return err
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
		return driver.Errorf(driver.ClassConnect, op, "use amqps:// instead of amqp://", "the peer wants an encrypted connection")
	default:
		return driver.Errorf(driver.ClassConnect, op, hint, "the peer is not an AMQP broker: it answered %q", greeting)
	}
}
