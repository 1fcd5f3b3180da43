package amqp

import (
	"errors"
	"fmt"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/driver"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
)

// fail returns an error for the peer.
func fail(condition, format string, args ...any) *wire.Error {
	return &wire.Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

// cannotOpen is a failure to open a destination.
func cannotOpen(a driver.Destination, err error) *wire.Error {
	condition := wire.CondResourceLimit
	switch {
	case errors.Is(err, store.ErrLongName):
		condition = wire.CondInvalidField
	case errors.Is(err, store.ErrInUse):
		condition = wire.CondResourceLocked
	}
	return fail(condition, "%.80q: %v", a, err)
}

func failAddress() *wire.Error {
	return fail(wire.CondInvalidField, "a link needs a source or target with an address")
}

func failHandle(handle uint32) *wire.Error {
	return fail(wire.CondUnattachedHandle, "handle %d is not attached", handle)
}

func failTransaction() *wire.Error {
	return fail(wire.CondUnknownTxn, "there is no such transaction")
}

func failDynamic() *wire.Error {
	return fail(wire.CondNotImplemented, "temporary destinations are not supported")
}

// failCommit is a failure to commit. Its condition must be a transaction error (Transactions, section 4.3); cause is
// the condition behind it.
func failCommit(cause, format string, args ...any) *wire.Error {
	f := fail(wire.CondTxnRollback, format, args...)
	f.Info = info(wire.InfoCause, cause)
	return f
}

// info returns a map of one symbol.
func info(key, value string) []byte {
	b := wire.AppendSymbol(wire.AppendSymbol(wire.BeginMap(nil), key), value)
	wire.EndCompound(b, 0, 2)
	return b
}

func failDecode(err error) *wire.Error { return fail(wire.CondDecode, "%v", err) }

// The ends of a connection without an error for the peer.
var (
	errClosed = errors.New("closed by the peer")
	errBroken = errors.New("write: the connection broke")
)

// errHandshake is the end of a connection before the open: another protocol, or a failed login.
var errHandshake = errors.New("no connection came about")
