package goamqp

import (
	"errors"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestEndOfWhatIsOpen: whatever reason the broker gives for the end of a link, session or connection, it is a loss that
// a new connection may mend, except a few. A refused message is no loss.
func TestEndOfWhatIsOpen(t *testing.T) {
	permanent := map[amqp.ErrCond]driver.Class{
		amqp.ErrCondUnauthorizedAccess: driver.ClassAuth, amqp.ErrCondNotFound: driver.ClassNotFound,
		amqp.ErrCondResourceDeleted: driver.ClassNotFound, amqp.ErrCondNotAllowed: driver.ClassUnsupported,
		amqp.ErrCondNotImplemented: driver.ClassUnsupported, amqp.ErrCondMessageSizeExceeded: driver.ClassTooLarge,
	}
	for condition, class := range permanent {
		for _, err := range ends(condition) {
			require.Equal(t, class, explain("send", err).Class, "%v", err)
		}
	}
	for _, condition := range []amqp.ErrCond{
		amqp.ErrCondInternalError, amqp.ErrCondIllegalState, amqp.ErrCondResourceLimitExceeded, amqp.ErrCondDecodeError,
		amqp.ErrCondConnectionForced, amqp.ErrCondDetachForced, "vendor:thing",
	} {
		of := ends(condition)
		for i, class := range []driver.Class{
			driver.ClassClosedByBroker, driver.ClassClosedByBroker, driver.ClassConnectionLost,
		} {
			require.Equal(t, class, explain("send", of[i]).Class, "%v", of[i])
		}
	}
	require.Equal(t, driver.ClassFull, explain("send", &amqp.Error{Condition: amqp.ErrCondResourceLimitExceeded}).Class)
	require.Equal(t, driver.ClassOther, explain("send", errors.New("x")).Class)
}

// ends are the errors of a link, a session and a connection that ended for one reason.
func ends(condition amqp.ErrCond) []error {
	why := &amqp.Error{Condition: condition, Description: "why"}
	return []error{
		&amqp.LinkError{RemoteErr: why}, &amqp.SessionError{RemoteErr: why}, &amqp.ConnError{RemoteErr: why},
	}
}
