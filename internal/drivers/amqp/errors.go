package amqp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// meaning is the meaning of an error condition of AMQP 1.0 (Transport, section 2.8) in plain words.
type meaning struct {
	class driver.Class // ClassNone leaves it to the ended endpoint: link, session or connection
	words string
	hint  string
}

var meanings = allMeanings() //nolint:gochecknoglobals // a table that never changes; rejections may be many

// allMeanings returns the meanings by condition, or by Artemis's code, with which its descriptions begin where the
// condition is a general one (ActiveMQMessageBundle).
func allMeanings() map[string]meaning {
	const permissions = "check --user, --password and the user's permissions"
	unauthorized := meaning{driver.ClassAuth, "not authorised", permissions}
	full := meaning{driver.ClassFull, "limit reached", transport.HintFull}
	state := meaning{driver.ClassOther, "illegal state", ""}
	forced := meaning{
		driver.ClassNone, "forced by the broker", "the broker is shutting down, or it was closed on it, or it was idle",
	}
	redirect := meaning{driver.ClassNone, "redirected", "connect to the broker that it names"}
	m := map[string]meaning{
		wire.CondNotFound:        {driver.ClassNotFound, "not found", ""}, // see remote
		wire.CondResourceDeleted: {driver.ClassNotFound, "it was deleted", "the address or queue was deleted on the broker"},
		wire.CondUnauthorized:    unauthorized,
		"AMQ229031":              unauthorized, "AMQ229032": unauthorized, "AMQ229213": unauthorized,
		wire.CondResourceLimit: full, "AMQ229102": full,
		"AMQ229119":             {driver.ClassFull, "disk full", "make room, or raise max-disk-usage"},
		wire.CondMessageSize:    {driver.ClassTooLarge, "message too large", protocol.HintSmaller},
		wire.CondNotImplemented: {driver.ClassUnsupported, "not implemented", ""},
		wire.CondNotAllowed:     {driver.ClassUnsupported, "not allowed", hintKind},
		wire.CondResourceLocked: {driver.ClassNone, "resource locked", "another consumer may have it exclusively"},
		wire.CondStolen:         {driver.ClassNone, "link stolen", hintOwnID},
		wire.CondDetachForced:   forced, wire.CondForced: forced,
		wire.CondRedirect: redirect, wire.CondLinkRedirect: redirect,
		wire.CondInternal:     {driver.ClassOther, "internal error", ""},
		wire.CondIllegalState: state, wire.CondPrecondition: state,
		// Azure Service Bus.
		"com.microsoft:server-busy":     {driver.ClassFull, "throttled", "send at a lower rate, or raise the limit"},
		"com.microsoft:timeout":         {driver.ClassTimeout, "no answer within the broker", "send at a lower rate"},
		"com.microsoft:entity-disabled": {driver.ClassOther, "it is disabled", "enable it on the broker"},
	}
	for _, accusing := range []string{
		wire.CondDecode, wire.CondFrameSize, wire.CondInvalidField, wire.CondFraming, wire.CondErrantLink,
		wire.CondHandleInUse, wire.CondUnattachedHandle, wire.CondWindow, wire.CondTransferLimit,
	} {
		m[accusing] = meaning{driver.ClassProtocol, "the broker says that we broke the protocol", ""}
	}
	return m
}

const (
	lookAtBroker = transport.HintLog
	hintLogin    = "give --user and --password, or choose another -o sasl"
	hintPassword = "check --user and --password; is this the right broker?"
	hintKind     = "is it of the other kind? try queue:// or topic://"
	hintOwnID    = "give each client its own --clientID and subscription name"

	maxWords     = 400 // of a quoted text of a broker, in bytes
	maxCondition = 100
)

// brokerError is the peer's error behind a [driver.Error].
type brokerError struct {
	condition string
	text      string
}

func (e *brokerError) Error() string { return e.text }

// conditionOf returns the error condition of the broker; "" if err is not an error of the broker.
func conditionOf(err error) string {
	if e, ok := errors.AsType[*brokerError](err); ok {
		return e.condition
	}
	return ""
}

// endOf describes why the peer ended something: unless it is just being opened, that is a loss, of that class.
func (d dialect) endOf(ended string, opening bool, class driver.Class, e *wire.Error) *driver.Error {
	err := d.remote(ended, class, "", e)
	if !opening {
		err.Class = class.LossBy(err.Class)
	}
	return err
}

// remote describes the peer's error in plain words, followed by the peer's own text, shortened. Ended is a clause to
// put before, such as "the broker closed the link"; "" for none.
func (d dialect) remote(ended string, class driver.Class, op string, e *wire.Error) *driver.Error {
	if e == nil {
		return driver.Errorf(class, op, lookAtBroker, "%s without saying why", ended)
	}
	m := meanings[e.Condition]
	if e.Condition == wire.CondTxnRollback {
		m = meanings[wire.LookupText(e.Info, wire.InfoCause)]
	}
	if e.Condition == wire.CondNotFound {
		m.hint = protocol.Missing(string(d))
	}
	if code, _, ok := strings.Cut(e.Description, ":"); ok && strings.HasPrefix(code, "AMQ") && meanings[code].words != "" {
		m = meanings[code]
	}
	if d == activemq && e.Condition == wire.CondDecode {
		// ActiveMQ Classic also ends a connection with that when it fails itself, such as while it stops for a full disk.
		m.words = "the broker failed at a frame"
	}
	if m.class != driver.ClassNone {
		class = m.class
	}
	parts := slices.DeleteFunc([]string{ended, m.words, transport.Clip(e.Description, maxWords)},
		func(part string) bool { return part == "" })
	condition := transport.Clip(e.Condition, maxCondition)
	return &driver.Error{Class: class, Op: op, Hint: cmp.Or(m.hint, lookAtBroker), Err: &brokerError{
		condition, strings.TrimSpace(strings.Join(parts, ": ") + " (" + condition + ")"),
	}}
}

// refusedOpen describes why a broker that knows the user closes the connection at once. There is no address yet: the
// cause is the virtual host, which does not exist or is forbidden, or a limit.
func refusedOpen(e *wire.Error) *driver.Error {
	err := plain.remote(closedConnection, driver.ClassConnect, "", e)
	const host = "check the virtual host (the URL's host or -o virtual-host) and the user's access to it"
	if e.Condition == wire.CondNotAllowed || e.Condition == wire.CondInvalidField {
		err.Class = driver.ClassConnect
	}
	switch {
	case wire.LookupText(e.Info, "invalid-field") == "container-id": // Artemis and Classic
		err.Class = driver.ClassConnect
		err.Hint = "another client with that ID is connected; " + hintOwnID
	case e.Condition == wire.CondResourceLimit:
		err.Hint = "use fewer connections, or raise the broker's limit"
	case e.Condition == wire.CondUnauthorized:
		err.Hint = "check --user and --password; " + host
	case slices.Contains([]string{wire.CondNotFound, wire.CondNotAllowed, wire.CondInvalidField}, e.Condition):
		err.Hint = host
	}
	return err
}

// protocolError returns the error about a peer that breaks the protocol: we end the connection.
func protocolError(format string, args ...any) error {
	return driver.Errorf(driver.ClassProtocol, "",
		"does the port speak AMQP 1.0? A proxy may be at fault",
		"the peer broke the protocol: it sent "+format, args...)
}

// unexpected returns the error about a frame or value that is not due now. Name identifies it: a number or a text.
func unexpected(what string, name any) error {
	if raw, ok := name.([]byte); ok {
		name = string(raw)
	}
	return protocolError("an unexpected %s %s", what, transport.Clip(fmt.Sprint(name), maxCondition))
}

func unreadable(what string, err error) error {
	return protocolError("%s that cannot be read: %w", what, err)
}

// fault returns the error about an unreadable frame; other errors stay as they are.
func fault(err error) error {
	switch {
	case errors.As(err, new(*driver.Error)):
	case errors.As(err, new(*wire.DecodeError)):
		return unreadable("a frame", err)
	case errors.As(err, new(*wire.FrameError)):
		return protocolError("%w", err)
	}
	return err
}

// explain describes why a connected peer does not open the AMQP connection. Limit is the time that it had.
func (h *handshake) explain(limit time.Duration, err error) error {
	encrypted, class := h.c.driver.cfg.Target.TLS, driver.ClassOf(err)
	switch {
	case errors.As(err, new(*driver.Error)), transport.IsAlert(err), errors.Is(err, context.Canceled):
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
		return driver.Errorf(driver.ClassAuth, "", hintLogin,
			"the broker does not offer this way to log in (%w)", err)
	case class == driver.ClassOther:
		class = driver.ClassConnect
	}
	return driver.Errorf(class, "", lookAtBroker+"; see also --connect-timeout",
		"the broker did not finish opening the connection: %w", err)
}

// isOldAMQP recognises the protocol header of AMQP 0-8 to 0-10: byte 5 is not the version 1 with an ID of AMQP 1.0 (0,
// 2 or 3), see AMQP 1.0, Transport, section 2.2.
func isOldAMQP(greeting string) bool {
	return len(greeting) == 8 && strings.HasPrefix(greeting, "AMQP") && greeting[5:] != "\x01\x00\x00"
}
