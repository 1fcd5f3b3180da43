//go:build unix

package amqppeer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait for an event that must happen: a hang is longer, the delays of a busy machine are not.
const patience = 2 * time.Minute

// quiet is how long to look out for an event that must not happen.
const quiet = 200 * time.Millisecond

// plain is one kind of messages, with a body and no more.
func plain(body string) []driver.Variant { return []driver.Variant{{Body: []byte(body), Priority: -1}} }

// run runs a case in a sub-test; it fails with an error of check.
func run(t *testing.T, name string, check func(t *testing.T) error) {
	t.Helper()
	t.Run(name, func(t *testing.T) { require.NoError(t, check(t)) })
}

// open opens a driver; it is closed with the test.
func open(t *testing.T, url string, options ...string) driver.Driver {
	t.Helper()
	return openWith(t, driver.OpenOptions{URL: url, ConnectTimeout: patience}, options...)
}

func openWith(t *testing.T, opts driver.OpenOptions, options ...string) driver.Driver {
	t.Helper()
	f := amqp.Factory()
	opts.Options = f.NewOptions()
	require.NoError(t, driver.SetOptions(opts.Options, options))
	d, err := f.Open(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = d.Close(ctx)
	})
	return d
}

// sender is a producer that sends as fast as it may, until it is stopped.
type sender struct {
	p       driver.Producer
	slots   chan driver.Slot
	outcome chan driver.Outcome
	stop    context.CancelFunc
	ended   chan error
}

// sending opens a producer with so many slots and lets it send.
func sending(t *testing.T, d driver.Driver, dest driver.Destination, slots int) *sender {
	t.Helper()
	s, err := trySending(t, d, driver.ProducerSpec{Destination: dest, MaxPending: slots, Variants: plain("x")})
	require.NoError(t, err)
	return s
}

func trySending(t *testing.T, d driver.Driver, spec driver.ProducerSpec) (*sender, error) {
	t.Helper()
	spec.Connection, spec.Name = driver.Connection{Key: "p", Name: "p"}, "producer-0"
	s := &sender{slots: make(chan driver.Slot, spec.MaxPending), outcome: make(chan driver.Outcome, 1<<20), ended: make(chan error, 1)}
	for i := range spec.MaxPending {
		s.slots <- driver.Slot(i) //nolint:gosec // small
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	s.p, err = d.Producer(ctx, spec, driver.DoneFunc(func(slot driver.Slot, o driver.Outcome) {
		s.outcome <- o
		s.slots <- slot
	}))
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.ended <- s.send(run) }()
	t.Cleanup(func() {
		stop()
		<-s.ended
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = s.p.Close(ctx)
	})
	return s, nil
}

func (s *sender) send(ctx context.Context) error {
	for {
		select {
		case slot := <-s.slots:
			if err := s.p.Send(ctx, &driver.Message{Slot: slot, Time: 1}); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// accepted waits for n sends that were accepted.
func (s *sender) accepted(n int) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for i := range n {
		select {
		case o := <-s.outcome:
			if o.State != driver.Accepted {
				return fmt.Errorf("a send was %s: %w", o.State, o.Err)
			}
		case <-timer.C:
			return fmt.Errorf("%d of %d sends were accepted", i, n)
		}
	}
	return nil
}

// receive opens a consumer and returns the bodies of the first n messages.
func receive(t *testing.T, d driver.Driver, dest driver.Destination, n int) ([]string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	k, err := d.Consumer(ctx, driver.ConsumerSpec{Connection: driver.Connection{Key: "c", Name: "c"}, Destination: dest, Name: "consumer-0"})
	if err != nil {
		return nil, err
	}
	var got []string
	run, stop := context.WithCancel(ctx)
	defer stop()
	err = k.Run(run, func(m *driver.Delivery) driver.Verdict {
		if got = append(got, string(m.Body)); len(got) == n {
			stop()
		}
		return driver.Accept
	})
	if len(got) < n {
		err = errors.Join(err, fmt.Errorf("%d of %d messages came", len(got), n))
	}
	return got, errors.Join(err, k.Close(ctx))
}
