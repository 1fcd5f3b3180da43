//go:build unix && features

package amqppeer

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The cases that peers replay, on the real brokers: for `make features`.

// login opens a driver as the brokers' user.
func login(t *testing.T, url string, options ...string) driver.Driver {
	t.Helper()
	opts := driver.OpenOptions{URL: url, User: brokertest.User, Password: brokertest.Password, ConnectTimeout: patience}
	return openWith(t, opts, options...)
}

// TestRealLimit: a queue of Broker-J that holds producers back at 500 messages takes only messages under way beyond
// these.
func TestRealLimit(t *testing.T) {
	const limit, slots = 500, 100
	q := brokertest.StartQpid(t, brokertest.WithQpidLimit("limited.*", limit))
	run(t, "Broker-J/limit", func(t *testing.T) error {
		d := login(t, q.AMQPURL())
		dest := queue("limited.q")
		s := sending(t, d, dest, slots)
		if err := s.accepted(limit); err != nil {
			return err
		}
		accepted := limit
		const idle = 5 * time.Second
		for more := true; more && accepted <= 10*limit; {
			select {
			case o := <-s.outcome:
				require.Equal(t, driver.Accepted, o.State)
				accepted++
			case <-time.After(idle):
				more = false
			}
		}
		if accepted > limit+slots+1 {
			return fmt.Errorf("%d messages were taken by a queue that is full with %d", accepted, limit)
		}
		// Producers go on when consumers have made room.
		if _, err := receive(t, d, dest, limit); err != nil {
			return err
		}
		return s.accepted(slots)
	})
}
