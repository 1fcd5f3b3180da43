package goamqp

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/musttest"
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

// TestCancelledSessions: an opening that is given up costs the others of its connection nothing, whether the broker has
// heard of its session or not.
func TestCancelledSessions(t *testing.T) {
	t.Parallel()
	b := musttest.Get(broker.Start(broker.Config{Listen: map[string]string{broker.AMQP: "127.0.0.1:0"}}))(t)
	defer b.Close()
	d, err := Factory().Open(t.Context(), driver.OpenOptions{
		URL: "amqp://" + b.Addr(broker.AMQP), ConnectTimeout: time.Minute, Options: Factory().NewOptions(),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(context.WithoutCancel(t.Context()))) }()
	spec := driver.ConsumerSpec{Destination: driver.Destination{Name: "Q"}, Connection: driver.Connection{Key: "shared"}}
	for i := range 40 {
		c := musttest.Get(d.Consumer(t.Context(), spec))(t)
		defer func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) }()
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i)*5*time.Microsecond, cancel)
		if c, err := d.Consumer(cancelled, spec); err == nil { // in time
			require.NoError(t, c.Close(t.Context()))
		}
	}
}
