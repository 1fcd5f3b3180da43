//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Shared are brokers that the tests of a package share: each is started by the
// first test that asks for it, so that a run without such tests costs nothing, and
// ended by [Main]. The zero value is ready for use; set the options before the first
// use. It is safe for concurrent use by parallel tests.
type Shared struct {
	ArtemisOptions  []ArtemisOption
	ActiveMQOptions []ActiveMQOption
	RocketMQOptions []RocketMQOption
	RabbitMQOptions []RabbitMQOption

	artemis  lazy[*Artemis, ArtemisOption]
	activemq lazy[*ActiveMQ, ActiveMQOption]
	rocketmq lazy[*RocketMQ, RocketMQOption]
	rabbitmq lazy[*RabbitMQ, RabbitMQOption]
}

// Artemis returns the shared broker. The test fails when it could not start, or
// when an earlier test ended it: a test that kills or pauses its broker wants
// one of its own, from [StartArtemis].
func (s *Shared) Artemis(tb testing.TB) *Artemis {
	tb.Helper()
	return s.artemis.get(tb, LaunchArtemis, s.ArtemisOptions)
}

// ActiveMQ is [Shared.Artemis] for ActiveMQ Classic.
func (s *Shared) ActiveMQ(tb testing.TB) *ActiveMQ {
	tb.Helper()
	return s.activemq.get(tb, LaunchActiveMQ, s.ActiveMQOptions)
}

// RocketMQ is [Shared.Artemis] for RocketMQ.
func (s *Shared) RocketMQ(tb testing.TB) *RocketMQ {
	tb.Helper()
	return s.rocketmq.get(tb, LaunchRocketMQ, s.RocketMQOptions)
}

// RabbitMQ is [Shared.Artemis] for RabbitMQ.
func (s *Shared) RabbitMQ(tb testing.TB) *RabbitMQ {
	tb.Helper()
	return s.rabbitmq.get(tb, LaunchRabbitMQ, s.RabbitMQOptions)
}

// Close ends the brokers that were started. Main calls it.
func (s *Shared) Close() error {
	return errors.Join(s.artemis.close(), s.activemq.close(), s.rocketmq.close(), s.rabbitmq.close())
}

// lazy is a broker that is started when it is asked for.
type lazy[B handle, O any] struct {
	once    sync.Once
	broker  B
	started bool
	err     error
}

func (l *lazy[B, O]) get(tb testing.TB, launch func(context.Context, ...O) (B, error), opts []O) B {
	tb.Helper()
	Needs(tb, "a broker")
	l.once.Do(func() {
		// Not the test's context: the broker outlives it.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		l.broker, l.err = launch(ctx, opts...)
		l.started = l.err == nil
	})
	if l.err != nil {
		tb.Fatalf("this test needs a broker: %v", l.err)
	}
	if !l.broker.Alive() {
		tb.Fatalf("the shared broker has ended; let the test that ended it start its own; the end of its log:\n%s",
			l.broker.LogTail())
	}
	return l.broker
}

func (l *lazy[B, O]) close() error {
	l.once.Do(func() { l.err = errors.New("the shared broker was closed before it was used") })
	if !l.started {
		return nil
	}
	return l.broker.Close()
}

// Needs leaves a test out of "go test -short", the quick tests: it needs a broker or another program, named in words.
func Needs(tb testing.TB, what string) {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("left out by -short: needs %s", what)
	}
}

// Main is the body of a TestMain: it runs the tests and ends the brokers that
// they shared. The exit status stays with the testing package, which takes it
// from m when TestMain returns.
func Main(m *testing.M, shared ...*Shared) {
	m.Run()
	for _, s := range shared {
		if err := s.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "warning: %v\n", err)
		}
	}
}
