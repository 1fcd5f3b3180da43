package amqp

import (
	"errors"
	"fmt"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// Error conditions (Transport, section 2.8.15 to 2.8.17; Transactions, section 4.5.8).
const (
	condInternal       = "amqp:internal-error"
	condNotFound       = "amqp:not-found"
	condDeleted        = "amqp:resource-deleted"
	condUnauthorized   = "amqp:unauthorized-access"
	condDecode         = "amqp:decode-error"
	condResourceLimit  = "amqp:resource-limit-exceeded"
	condNotAllowed     = "amqp:not-allowed"
	condInvalidField   = "amqp:invalid-field"
	condNotImplemented = "amqp:not-implemented"
	condResourceLocked = "amqp:resource-locked"
	condForced         = "amqp:connection:forced"
	condFraming        = "amqp:connection:framing-error"
	condWindow         = "amqp:session:window-violation"
	condHandleInUse    = "amqp:session:handle-in-use"
	condUnattached     = "amqp:session:unattached-handle"
	condTransferLimit  = "amqp:link:transfer-limit-exceeded"
	condMessageSize    = "amqp:link:message-size-exceeded"
	condTxUnknown      = "amqp:transaction:unknown-id"
	condTxRollback     = "amqp:transaction:rollback"
)

// failure is an AMQP error on its way to the peer.
type failure struct {
	condition, description string
	field                  string // for info: the invalid field
}

func (f *failure) Error() string { return f.condition + ": " + f.description }

func fail(condition, format string, args ...any) *failure {
	return &failure{condition: condition, description: fmt.Sprintf(format, args...)}
}

// cannotOpen tells why there is no destination.
func cannotOpen(a store.Address, err error) *failure {
	if errors.Is(err, store.ErrLongName) {
		return fail(condInvalidField, "%.80q: %v", a, err)
	}
	return fail(condResourceLimit, "%.80q: %v", a, err)
}

// sessionFailure ends a session rather than the connection.
type sessionFailure struct{ *failure }

func failSession(condition, format string, args ...any) error {
	return sessionFailure{fail(condition, format, args...)}
}

// The ends of a connection that say nothing to the peer.
var (
	errStopped = errors.New("told to stop")
	errClosed  = errors.New("closed by the peer")
)

// The ends of a connection that was never opened.
var (
	errHandshake  = errors.New("no connection came about")
	errNoProtocol = fmt.Errorf("%w: the peer asked for another protocol", errHandshake)
	errBadSASL    = fmt.Errorf("%w: the peer does not speak SASL as it should", errHandshake)
	errRefused    = fmt.Errorf("%w: the peer was not authenticated", errHandshake)
)
