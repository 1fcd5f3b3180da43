//go:build unix && features

package amqppeer

import (
	"context"
	"fmt"
	"slices"
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

// TestRealPriorities: with -o max-priority, urgent messages come first; quorum queues of RabbitMQ 4 know two of them.
func TestRealPriorities(t *testing.T) {
	r := brokertest.StartRabbitMQ(t, brokertest.WithRabbitMQ4())
	for name, options := range map[string][]string{
		"classic": {"declare=classic", "max-priority=9"}, "quorum": {"declare=quorum"},
	} {
		run(t, "priorities/"+name, func(t *testing.T) error {
			d := login(t, r.AMQPURL(), options...)
			dest := queue("priorities " + name)
			for _, priority := range []int{1, 8} {
				if err := sendSome(t, d, dest, priority, 5); err != nil {
					return err
				}
			}
			got, err := receive(t, d, dest, 10)
			want := []string{"8", "8", "8", "8", "8", "1", "1", "1", "1", "1"}
			if name == "quorum" { // which has two priorities, and delivers one of the lower after two of the higher
				want = want[:2]
			}
			if err == nil && !slices.Equal(want, got[:len(want)]) {
				err = fmt.Errorf("the messages came as %v", got)
			}
			return err
		})
	}
}

// sendSome sends n messages whose body is their priority.
func sendSome(t *testing.T, d driver.Driver, dest driver.Destination, priority, n int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	outcomes := make(chan driver.Outcome, n)
	p, err := d.Producer(ctx, driver.ProducerSpec{
		Connection: driver.Connection{Key: "some"}, Destination: dest, Name: "some", MaxPending: n,
		Variants: []driver.Variant{{Body: []byte(fmt.Sprint(priority)), Priority: priority}},
	}, driver.DoneFunc(func(_ driver.Slot, o driver.Outcome) { outcomes <- o }))
	if err != nil {
		return err
	}
	for i := range n {
		if err := p.Send(ctx, &driver.Message{Slot: driver.Slot(i), Time: 1}); err != nil { //nolint:gosec // small
			return err
		}
	}
	if err := p.Close(ctx); err != nil {
		return err
	}
	for range n {
		if o := <-outcomes; o.State != driver.Accepted {
			return fmt.Errorf("a message was %s: %w", o.State, o.Err)
		}
	}
	return nil
}
