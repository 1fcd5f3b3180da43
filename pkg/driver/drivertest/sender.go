package drivertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// base is the name of a test's first message.
const base int64 = 1_700_000_000_000_000

// sender is a producer with its ledger.
type sender struct {
	*ledger
	e        *env
	producer driver.Producer
	variants []driver.Variant // the variants when it was opened
	given    []driver.Variant // the variants that the driver got
	stopped  bool
}

func (e *env) producer(d driver.Driver, spec driver.ProducerSpec) *sender {
	e.Helper()
	s := e.sender(&spec)
	producer, err := d.Producer(e.soon(), spec, s.ledger)
	require.NoErrorf(e, err, "open a producer on %s", spec.Destination)
	require.NotNil(e, producer, "Producer returned no error and no producer")
	s.opened(producer)
	return s
}

// sender returns a sender without its producer, which is not open yet.
func (e *env) sender(spec *driver.ProducerSpec) *sender {
	s := &sender{ledger: newLedger(spec.MaxPending), e: e, given: spec.Variants}
	for _, v := range spec.Variants {
		v.Body, v.Properties = slices.Clone(v.Body), slices.Clone(v.Properties)
		s.variants = append(s.variants, v)
	}
	return s
}

func (s *sender) opened(p driver.Producer) {
	s.producer = p
	s.e.Cleanup(s.close)
	s.e.final = append(s.e.final, s.verify)
}

// try sends one message, once a slot is free.
func (s *sender) try(ctx context.Context, m driver.Message) error {
	slot, err := s.begin(ctx)
	if err != nil {
		return err
	}
	m.Slot = slot
	err = s.producer.Send(ctx, &m)
	m = driver.Message{Slot: 1 << 31, Time: -1, ID: driver.ID{Run: -1}, Variant: -1} // the driver must not keep m
	if err != nil {
		s.undo(slot)
	}
	return err
}

// trySend is try for the message with that stamp.
func (s *sender) trySend(ctx context.Context, stamp int64) error {
	return s.try(ctx, driver.Message{Time: stamp})
}

// send sends messages named first, first+1, ... and does not wait for their ends.
func (s *sender) send(first int64, n int) {
	s.e.Helper()
	s.sendEach(n, func(i int) driver.Message { return driver.Message{Time: first + int64(i)} })
}

// sendEach sends n messages and does not wait for their ends.
func (s *sender) sendEach(n int, message func(i int) driver.Message) {
	s.e.Helper()
	ctx := s.e.soon()
	err := s.e.bounded(s.e.cfg.Timeout+grace, "sending", func() error {
		for i := range n {
			if err := s.try(ctx, message(i)); err != nil {
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
	s.send(first, n)
	s.accepted()
}

// sendUntil sends messages named base+1000, ... until ctx ends, Send fails, or n were sent. It returns the error that
// ended it.
func (s *sender) sendUntil(ctx context.Context, limit time.Duration, n int) error {
	s.e.Helper()
	return s.e.bounded(limit, "Send, after the end of its context,", func() error {
		for i := range n {
			if err := s.trySend(ctx, base+1000+int64(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// sendSome sends for the time patience, or longer if the machine was too busy to send even one message.
func (s *sender) sendSome(patience time.Duration, n int) error {
	s.e.Helper()
	before, _, _ := s.totals()
	for begin := time.Now(); ; {
		err := s.sendUntil(s.e.within(patience), patience+grace, n)
		if sent, _, _ := s.totals(); sent > before || time.Since(begin) > s.e.cfg.Timeout {
			return err
		}
	}
}

// close closes the producer, twice, and checks that each send has ended.
func (s *sender) close() {
	s.e.Helper()
	if s.stopped {
		return
	}
	s.closeWith(s.e.closing())
}

func (s *sender) closeWith(ctx context.Context) {
	s.e.Helper()
	s.stopped = true
	s.e.closes(ctx, "Producer.Close", s.producer.Close)
	s.ledger.close()
	require.NoError(s.e, s.verify())
	err := s.e.bounded(grace, "Producer.Close, called again,",
		func() error { return s.producer.Close(s.e.closing()) })
	require.NoError(s.e, err, "Producer.Close, called again")
	require.NoError(s.e, s.verify())
	for i := range s.variants {
		require.Truef(s.e, equalVariants(&s.variants[i], &s.given[i]), "the driver changed ProducerSpec.Variants[%d]", i)
	}
}

func equalVariants(a, b *driver.Variant) bool {
	return string(a.Body) == string(b.Body) && a.Priority == b.Priority && a.Group == b.Group && slices.Equal(a.Properties,
		b.Properties)
}

// arrived waits until the broker has the messages sent before on the connection of producers, for brokers that do not
// confirm sends.
func (e *env) arrived(d driver.Driver) {
	e.Helper()
	if e.cfg.AtMostOnce {
		dest := e.dest()
		in := e.receiver(d, consumerSpec(dest))
		e.producer(d, producerSpec(dest)).sendAll(base, 1)
		in.expect(base, 1)
	}
}

// commits counts the calls of [driver.Commits].
type commits struct{ ends chan commit }

type commit struct {
	took      time.Duration
	confirmed bool
}

func newCommits() *commits { return &commits{make(chan commit, 1000)} }

func (c *commits) add(took time.Duration, confirmed bool) {
	select {
	case c.ends <- commit{took, confirmed}:
	default: // the count shows it
	}
}

// await waits for the given numbers of confirmed and refused commits, and checks that no more come.
func (c *commits) await(e *env, confirmed, refused int) {
	e.Helper()
	var got [2]int
	e.await("commits", nil, func() error {
		for len(c.ends) > 0 {
			end := <-c.ends
			require.GreaterOrEqual(e, end.took, time.Duration(0), "the time that a commit took")
			if end.confirmed {
				got[0]++
			} else {
				got[1]++
			}
		}
		if got[0] < confirmed || got[1] < refused {
			return fmt.Errorf("%d commits were confirmed and %d were not, instead of %d and %d", got[0], got[1], confirmed,
				refused)
		}
		return nil
	})
	require.Equal(e, [2]int{confirmed, refused}, got, "commits that were confirmed, and those that were not")
}
