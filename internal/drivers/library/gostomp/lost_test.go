package gostomp

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// failed is the error of a subscription after an ERROR frame: from the broker, or, without a body, from the library.
func failed(message string, body []byte) *stomp.Message {
	f := frame.New(frame.ERROR, frame.Message, message)
	f.Body = body
	return &stomp.Message{Err: &stomp.Error{Message: message, Frame: f}}
}

// TestRunOfALostConnection: a consumer ends soon after its connection, although the library does not tell it, delivers no
// message that it could not acknowledge, and passes on the reason that the library may give.
func TestRunOfALostConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		left  []*stomp.Message
		says  string
		class driver.Class
	}{
		"nothing is told":    {nil, "receive: the connection has ended", driver.ClassConnectionLost},
		"messages are left":  {[]*stomp.Message{{}, {}}, "receive: the connection has ended", driver.ClassConnectionLost},
		"the library tells":  {[]*stomp.Message{{}, failed("it is full", nil)}, "receive: it is full", driver.ClassConnectionLost},
		"the broker says":    {[]*stomp.Message{{}, failed("it is full", []byte{})}, "receive: the broker says: it is full", driver.ClassClosedByBroker},
		"subscription ended": {[]*stomp.Message{nil}, "receive: the subscription has ended", driver.ClassConnectionLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, _ := net.Pipe()
				c := &consumer{
					Lease: &transport.Lease[*connection]{Conn: &connection{net: library.NewConn(ours)}},
					op:    "receive", inbox: make(chan *stomp.Message, len(test.left)),
				}
				for _, m := range test.left {
					c.inbox <- m
				}
				require.NoError(t, c.Conn.net.Close())
				began := time.Now()
				err := c.Run(t.Context(), func(*driver.Delivery) driver.Verdict {
					t.Error("a message was delivered")
					return driver.Accept
				})
				require.EqualError(t, err, test.says)
				require.Equal(t, test.class, driver.ClassOf(err))
				require.LessOrEqual(t, time.Since(began), library.EndGrace)
			})
		})
	}
}

// TestReasonAfterASlowDelivery: a delivery may outlast the time for the library to report the end of the connection.
// The consumer still reports the broker's reason, which waits behind messages.
func TestReasonAfterASlowDelivery(t *testing.T) {
	t.Parallel()
	for range 20 { // the choice between two channels that are ready is random
		synctest.Test(t, func(t *testing.T) {
			ours, _ := net.Pipe()
			c := &consumer{
				Lease: &transport.Lease[*connection]{Conn: &connection{stomp: &stomp.Conn{}, net: library.NewConn(ours)}},
				op:    "receive", inbox: make(chan *stomp.Message, 3),
			}
			c.inbox <- &stomp.Message{Header: frame.NewHeader()}
			err := c.Run(t.Context(), func(*driver.Delivery) driver.Verdict {
				c.inbox <- &stomp.Message{}
				c.inbox <- failed("it is full", []byte{})
				require.NoError(t, c.Conn.net.Close())
				<-time.After(2 * library.EndGrace)
				return driver.Accept
			})
			require.EqualError(t, err, "receive: the broker says: it is full")
		})
	}
}
