//go:build unix

package amqp

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// patience bounds each wait for an event that must happen: a hang is longer, a machine with much else to do is not.
const patience = time.Minute

// noLeaks fails a test that leaves goroutines behind, except in the brokers' harness.
func noLeaks(t *testing.T) {
	t.Helper()
	options := append(librarytest.Harness(), goleak.IgnoreCurrent(),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"), goleak.IgnoreAnyFunction("os/exec.(*Cmd).watchCtx"))
	t.Cleanup(func() {
		deadline := time.Now().Add(patience)
		err := goleak.Find(options...)
		for err != nil && time.Now().Before(deadline) {
			err = goleak.Find(options...)
		}
		require.NoError(t, err)
	})
}

// rig is a driver in a test, with short ways to use it.
type rig struct {
	t *testing.T
	d driver.Driver
}

// body is one kind of messages, with that body.
func body(b string) []driver.Variant { return []driver.Variant{{Body: []byte(b), Priority: -1}} }

func newRig(t *testing.T, opts driver.OpenOptions, options ...string) *rig {
	t.Helper()
	noLeaks(t)
	f := Factory()
	opts.Options = f.NewOptions()
	require.NoError(t, driver.SetOptions(opts.Options, options))
	if opts.ConnectTimeout == 0 {
		opts.ConnectTimeout = patience
	}
	d := musttest.Get(f.Open(t.Context(), opts))(t)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return &rig{t: t, d: d}
}

// peerRig returns a driver and the peer that it talks to over TCP.
func peerRig(t *testing.T, set func(*peer), options ...string) (*peer, *rig) {
	t.Helper()
	p := newPeer(t)
	if set != nil {
		set(p)
	}
	return p, newRig(t, driver.OpenOptions{URL: p.start()}, options...)
}

// soon returns a context that ends after patience, for work that must be over in a few seconds.
func soon(t *testing.T) context.Context {
	t.Helper()
	return within(t, patience)
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func conn(name string) driver.Connection {
	return driver.Connection{Key: name, Name: "perfmq-test-" + name}
}

// producerSpec is the spec of a producer of small messages.
func producerSpec(pending int) driver.ProducerSpec {
	return driver.ProducerSpec{
		Connection: conn("p"), Destination: driver.Destination{Name: "q"}, Name: "producer-0", MaxPending: pending, Variants: body("x"),
	}
}

func consumerSpec() driver.ConsumerSpec {
	return driver.ConsumerSpec{Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "consumer-0"}
}

// testProducer is a producer with the outcomes of its sends.
type testProducer struct {
	driver.Producer
	t    *testing.T
	free chan driver.Slot

	mu       sync.Mutex
	outcomes map[driver.Slot][]driver.Outcome
	all      []driver.Outcome
}

// producer opens a producer of small messages, and also of large ones if their body is not empty.
func (r *rig) producer(pending int, large string) *testProducer {
	r.t.Helper()
	spec := producerSpec(pending)
	if large != "" {
		spec.Variants = append(spec.Variants, body(large)...)
	}
	return musttest.Get(r.tryProducer(spec))(r.t)
}

func (r *rig) tryProducer(spec driver.ProducerSpec) (*testProducer, error) {
	p := &testProducer{t: r.t, free: make(chan driver.Slot, spec.MaxPending), outcomes: map[driver.Slot][]driver.Outcome{}}
	for i := range spec.MaxPending {
		p.free <- driver.Slot(i) //nolint:gosec // small
	}
	var err error
	p.Producer, err = r.d.Producer(soon(r.t), spec, driver.DoneFunc(p.done))
	if err == nil {
		r.t.Cleanup(func() { require.NoError(r.t, p.Close(context.Background())) })
	}
	return p, err
}

func (p *testProducer) done(s driver.Slot, o driver.Outcome) {
	p.mu.Lock()
	p.outcomes[s] = append(p.outcomes[s], o)
	p.all = append(p.all, o)
	p.mu.Unlock()
	p.free <- s // panics in no case: it has room for each slot once, so a second Done blocks and the test hangs loudly
}

// send sends n messages, each as soon as a slot is free.
func (p *testProducer) send(n int) {
	p.t.Helper()
	for range n {
		require.NoError(p.t, p.trySend(soon(p.t), 0))
	}
}

// trySend sends a message of a kind.
func (p *testProducer) trySend(ctx context.Context, variant int) error {
	select {
	case s := <-p.free:
		err := p.Send(ctx, &driver.Message{Slot: s, Variant: variant, Time: 5})
		if err != nil {
			p.free <- s
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waitOutcomes waits for n ends and returns them in the order of Done.
func (p *testProducer) waitOutcomes(n int) []driver.Outcome {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.all) >= n
	}, patience, time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// settle closes the producer and returns how its sends ended, in the order of Done.
func (p *testProducer) settle() []driver.Outcome {
	p.t.Helper()
	require.NoError(p.t, p.Close(soon(p.t)))
	return p.waitOutcomes(0)
}

func (p *testProducer) settleAccepted(n int) {
	p.t.Helper()
	require.Equal(p.t, slices.Repeat([]driver.Outcome{{}}, n), p.settle())
}

func (r *rig) tryConsumer(spec driver.ConsumerSpec) (driver.Consumer, error) {
	return r.d.Consumer(soon(r.t), spec)
}

func accept(*driver.Delivery) driver.Verdict { return driver.Accept }
