package drivertest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// env is one sub-test. Whatever it opens is closed, and checked, when the test ends.
type env struct {
	*testing.T
	cfg *Config
	ctx context.Context //nolint:containedctx // of the test
	// broken says that the connection was broken on purpose: Close may return errors, but must return.
	broken bool
	// final are checks to repeat when everything has been closed: for calls that come too late.
	final []func()
}

// options are the driver's own, from Config.Options.
func (e *env) options() any {
	o := e.cfg.Factory.NewOptions()
	require.NoError(e, driver.SetOptions(o, e.cfg.Options), "Config.Options")
	return o
}

func (e *env) openOptions(url string) driver.OpenOptions {
	return driver.OpenOptions{
		URL: url, User: e.cfg.User, Password: e.cfg.Password, TLS: e.cfg.TLS,
		ConnectTimeout: e.cfg.Timeout, Options: e.options(),
	}
}

// within is a context that ends after the timeout.
func (e *env) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, d)
	e.Cleanup(cancel)
	return ctx
}

func (e *env) soon() context.Context { return e.within(e.cfg.Timeout) }

// bounded calls f, which must return within limit, and fails the test at once if it does not.
func (e *env) bounded(limit time.Duration, what string, f func() error) error {
	e.Helper()
	result := make(chan error, 1)
	go func() { result <- f() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		require.FailNowf(e, "hangs", "%s did not return within %v", what, limit)
		return nil
	}
}

// grace is what a call may take beyond the end of its context, on a machine with much else to do.
const grace = 5 * time.Second

// open opens a driver on the broker.
func (e *env) open() driver.Driver { e.Helper(); return e.openURL(e.cfg.URL) }

func (e *env) openURL(url string) driver.Driver {
	e.Helper()
	d, err := e.cfg.Factory.Open(e.soon(), e.openOptions(url))
	require.NoError(e, err, "open the driver")
	require.NotNil(e, d, "Open returned no error and no driver")
	e.Cleanup(func() {
		for _, which := range []string{"Driver.Close", "Driver.Close, called again,"} {
			e.closes(e.closing(), which, d.Close)
		}
	})
	return d
}

// closes calls a Close and checks its result and time.
func (e *env) closes(ctx context.Context, which string, f func(context.Context) error) {
	e.Helper()
	err := e.bounded(e.cfg.Timeout+grace, which, func() error { return f(ctx) })
	if !e.broken && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		require.NoError(e, err, which)
	}
}

// closing is a context for Close, which works while the test is being cleaned up.
func (e *env) closing() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Timeout)
	e.Cleanup(cancel)
	return ctx
}

func (e *env) queue() driver.Destination { return e.cfg.NewDestination(e, driver.Queue) }

func (e *env) topic() driver.Destination { return e.cfg.NewDestination(e, driver.Topic) }

func connection(key string) driver.Connection {
	return driver.Connection{Key: key, Name: unique("perfmq-test-" + key)}
}

// producerSpec is the plainest one.
func producerSpec(dest driver.Destination) driver.ProducerSpec {
	return driver.ProducerSpec{
		Connection: connection("p"), Destination: dest, Name: "producer-1", MaxPending: 100,
		Variants: variants(10, 64, 100, 1024, 16<<10),
	}
}

// variants are plain messages with bodies of these sizes.
func variants(sizes ...int) []driver.Variant {
	list := make([]driver.Variant, 0, len(sizes))
	for _, size := range sizes {
		list = append(list, driver.Variant{Body: payload(size), Priority: -1})
	}
	return list
}

// each changes all variants.
func each(list []driver.Variant, edit func(*driver.Variant)) {
	for i := range list {
		edit(&list[i])
	}
}

// consumerSpec is the plainest one.
func consumerSpec(dest driver.Destination) driver.ConsumerSpec {
	return driver.ConsumerSpec{Connection: connection("c"), Destination: dest, Name: "consumer-1"}
}

// sender is a producer with its ledger.
type sender struct {
	*ledger
	e        *env
	producer driver.Producer
	variants []driver.Variant
	stopped  bool
}

func (e *env) producer(d driver.Driver, spec driver.ProducerSpec) *sender {
	e.Helper()
	s := &sender{ledger: newLedger(spec.MaxPending), e: e, variants: spec.Variants}
	var err error
	s.producer, err = d.Producer(e.soon(), spec, s.ledger)
	require.NoErrorf(e, err, "open a producer on %s", spec.Destination)
	require.NotNil(e, s.producer, "Producer returned no error and no producer")
	e.Cleanup(s.close)
	e.final = append(e.final, func() { require.NoError(e, s.verify()) })
	return s
}

// trySend sends one message, waiting for a slot as long as ctx allows.
func (s *sender) trySend(ctx context.Context, stamp int64, body []byte) error {
	return s.trySendID(ctx, driver.ID{}, stamp, body)
}

func (s *sender) trySendID(ctx context.Context, id driver.ID, stamp int64, body []byte) error {
	variant := slices.IndexFunc(s.variants, func(v driver.Variant) bool { return bytes.Equal(v.Body, body) })
	require.GreaterOrEqual(s.e, variant, 0, "a body that is none of the variants")
	slot, err := s.begin(ctx)
	if err != nil {
		return err
	}
	m := &driver.Message{Slot: slot, Time: stamp, ID: id, Variant: variant}
	err = s.producer.Send(ctx, m)
	*m = driver.Message{Slot: 1 << 31, Time: -1, ID: driver.ID{Run: -1}, Variant: -1} // a driver must not keep it
	if err != nil {
		s.undo(slot)
	}
	return err
}

// send sends messages named first, first+1, ... and does not wait for their ends.
func (s *sender) send(first int64, n int, body []byte) {
	s.e.Helper()
	ctx := s.e.soon()
	err := s.e.bounded(s.e.cfg.Timeout+grace, "sending", func() error {
		for i := range n {
			if err := s.trySend(ctx, first+int64(i), body); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(s.e, s.verify())
	require.NoError(s.e, err, "send")
}

// accepted waits until all sends have ended, as accepted.
func (s *sender) accepted() {
	s.e.Helper()
	err := s.wait(s.e.cfg.Timeout)
	require.NoError(s.e, s.verify())
	require.NoError(s.e, err)
	sent, _, states := s.totals()
	require.Equalf(s.e, sent, states[driver.Accepted], "Done was called for %s", s.ledger)
}

// sendAll sends n messages and waits until all of them have been accepted.
func (s *sender) sendAll(first int64, n int) {
	s.e.Helper()
	s.send(first, n, payload(64))
	s.accepted()
}

// close closes the producer, twice, and checks that no send is left open.
func (s *sender) close() {
	s.e.Helper()
	if s.stopped {
		return
	}
	s.stopped = true
	s.closeWith(s.e.closing())
}

func (s *sender) closeWith(ctx context.Context) {
	s.e.Helper()
	s.stopped = true
	s.e.closes(ctx, "Producer.Close", s.producer.Close)
	s.ledger.close()
	require.NoError(s.e, s.verify())
	err := s.e.bounded(grace, "Producer.Close, called again,", func() error { return s.producer.Close(s.e.closing()) })
	require.NoError(s.e, err, "Producer.Close, called again")
	require.NoError(s.e, s.verify())
}

// payload is a body whose bytes depend on their places.
func payload(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + size)
	}
	return b
}
