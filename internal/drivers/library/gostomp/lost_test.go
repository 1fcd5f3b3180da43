package gostomp

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestRunOfALostConnection: a consumer ends soon after its connection, although the library does not tell it, delivers no
// message that it could not acknowledge, and passes on the reason that the library may give.
func TestRunOfALostConnection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		left []*stomp.Message
		says string
	}{
		"nothing is told":    {nil, "receive: the connection has ended"},
		"messages are left":  {[]*stomp.Message{{}, {}}, "receive: the connection has ended"},
		"the library tells":  {[]*stomp.Message{{}, {Err: &stomp.Error{Message: "no room"}}}, "receive: no room"},
		"subscription ended": {[]*stomp.Message{nil}, "receive: the subscription has ended"},
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
				require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
				require.LessOrEqual(t, time.Since(began), tellGrace)
			})
		})
	}
}
