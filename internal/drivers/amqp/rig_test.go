//go:build unix

package amqp

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// sharedBroker is for tests that leave the broker alone.
var sharedBroker brokertest.Shared

func TestMain(m *testing.M) { brokertest.Main(m, &sharedBroker) }

// patience bounds each wait for an event that must happen: a hang is longer, a machine with much else to do is not.
const patience = time.Minute

// noLeaks fails the test when it leaves goroutines behind. Those of the broker's management client stay by design.
func noLeaks(t *testing.T) {
	t.Helper()
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		options := []goleak.Option{
			current,
			goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
			goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).Wait"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).watchCtx"),
			goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
		}
		deadline := time.Now().Add(patience)
		err := goleak.Find(options...)
		for err != nil && time.Now().Before(deadline) {
			err = goleak.Find(options...)
		}
		require.NoError(t, err)
	})
}

// rig is a driver in a test, with short ways to use it. Messages are told apart by their times: each stands for a text.
type rig struct {
	t *testing.T
	d driver.Driver

	mu    sync.Mutex
	texts []string
}

// stamp returns the time that stands for a text.
func (r *rig) stamp(text string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, text)
	return int64(len(r.texts))
}

func (r *rig) text(stamp int64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.texts[stamp-1]
}

// body is one kind of messages, with that body.
func body(b string) []driver.Variant { return []driver.Variant{{Body: []byte(b), Priority: -1}} }

func newRig(t *testing.T, url string, options ...string) *rig {
	t.Helper()
	noLeaks(t)
	return newRigWith(t, driver.OpenOptions{URL: url}, options...)
}

func newRigWith(t *testing.T, opts driver.OpenOptions, options ...string) *rig {
	t.Helper()
	f := Factory()
	opts.Options = f.NewOptions()
	require.NoError(t, driver.SetOptions(opts.Options, options))
	if opts.ConnectTimeout == 0 {
		opts.ConnectTimeout = patience
	}
	d, err := f.Open(t.Context(), opts)
	require.NoError(t, err)
	r := &rig{t: t, d: d}
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return r
}

// soon returns a context that ends after patience, for work that must be over in a few seconds.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func queue(t *testing.T) driver.Destination {
	t.Helper()
	return driver.Destination{Name: "q." + t.Name()}
}

func topic(t *testing.T) driver.Destination {
	t.Helper()
	return driver.Destination{Kind: driver.Topic, Name: "t." + t.Name()}
}

// unused returns a destination like d that no earlier run of the test has used: the shared broker may know d still, with
// its counters and what has filled it.
func unused(d driver.Destination) driver.Destination {
	d.Name += "." + strconv.FormatInt(time.Now().UnixNano(), 36)
	return d
}

func conn(name string) driver.Connection {
	return driver.Connection{Key: name, Name: "perfmq-test-" + name}
}

// testProducer is a producer with the outcomes of its sends.
type testProducer struct {
	driver.Producer
	t    *testing.T
	r    *rig
	free chan driver.Slot

	mu       sync.Mutex
	outcomes map[driver.Slot][]driver.Outcome
	all      []driver.Outcome
	hundred  chan struct{} // closed by the hundredth outcome
}

func (r *rig) producer(spec driver.ProducerSpec) *testProducer {
	r.t.Helper()
	p, err := r.tryProducer(spec)
	require.NoError(r.t, err)
	return p
}

func (r *rig) tryProducer(spec driver.ProducerSpec) (*testProducer, error) {
	if spec.Connection.Key == "" {
		spec.Connection = conn("producer")
	}
	if spec.Name == "" {
		spec.Name = "producer-0"
	}
	spec.MaxPending = max(spec.MaxPending, 1)
	if spec.Variants == nil {
		spec.Variants = body("x")
	}
	p := &testProducer{t: r.t, r: r, free: make(chan driver.Slot, spec.MaxPending), outcomes: map[driver.Slot][]driver.Outcome{}, hundred: make(chan struct{})}
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
	if len(p.all) == 100 {
		close(p.hundred)
	}
	p.mu.Unlock()
	p.free <- s // panics in no case: it has room for each slot once, so a second Done blocks and the test hangs loudly
}

// send sends messages that stand for texts, each as soon as a slot is free.
func (p *testProducer) send(texts ...string) {
	p.t.Helper()
	for _, text := range texts {
		require.NoError(p.t, p.trySend(soon(p.t), text))
	}
}

func (p *testProducer) trySend(ctx context.Context, text string) error {
	return p.trySendAs(ctx, 0, text)
}

// trySendAs sends a message of a kind.
func (p *testProducer) trySendAs(ctx context.Context, variant int, text string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s := <-p.free:
		err := p.Send(ctx, &driver.Message{Slot: s, Variant: variant, Time: p.r.stamp(text)})
		if err != nil {
			p.free <- s
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle closes the producer and returns how its sends ended, in the order of Done.
func (p *testProducer) settle() []driver.Outcome {
	p.t.Helper()
	require.NoError(p.t, p.Close(soon(p.t)))
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

func (p *testProducer) settleAccepted(n int) {
	p.t.Helper()
	all := p.settle()
	require.Len(p.t, all, n)
	for _, o := range all {
		require.Equal(p.t, driver.Outcome{}, o)
	}
}

// testConsumer is a consumer that runs and keeps its deliveries.
type testConsumer struct {
	driver.Consumer
	t    *testing.T
	r    *rig
	got  chan driver.Delivery
	stop context.CancelFunc
	end  chan error
	hold chan struct{} // when not nil, each delivery waits for it
}

func (r *rig) consumer(spec driver.ConsumerSpec) *testConsumer {
	r.t.Helper()
	c, err := r.tryConsumer(spec)
	require.NoError(r.t, err)
	c.run()
	return c
}

func (r *rig) tryConsumer(spec driver.ConsumerSpec) (*testConsumer, error) {
	if spec.Connection.Key == "" {
		spec.Connection = conn("consumer")
	}
	if spec.Name == "" {
		spec.Name = "consumer-0"
	}
	c := &testConsumer{t: r.t, r: r, got: make(chan driver.Delivery, 100_000), end: make(chan error, 1)}
	var err error
	c.Consumer, err = r.d.Consumer(soon(r.t), spec)
	return c, err
}

func (c *testConsumer) run() {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go func() {
		c.end <- c.Run(ctx, func(d *driver.Delivery) driver.Verdict {
			kept := *d
			kept.Body = slices.Clone(d.Body)
			c.got <- kept
			if c.hold != nil {
				select {
				case <-c.hold:
				case <-ctx.Done():
				}
			}
			return driver.Accept
		})
	}()
	c.t.Cleanup(c.close)
}

// close stops and closes the consumer; Run must have ended without an error.
func (c *testConsumer) close() {
	c.t.Helper()
	if c.stop == nil {
		return
	}
	c.stop()
	c.stop = nil
	select {
	case err := <-c.end:
		require.NoError(c.t, err)
	case <-time.After(patience):
		c.t.Fatal("Run did not end")
	}
	require.NoError(c.t, c.Close(soon(c.t)))
}

// failed waits for Run to end with an error and closes the consumer.
func (c *testConsumer) failed() error {
	c.t.Helper()
	c.stop = nil
	select {
	case err := <-c.end:
		require.NoError(c.t, c.Close(soon(c.t)))
		return err
	case <-time.After(patience):
		c.t.Fatal("Run did not end")
		return nil
	}
}

func (c *testConsumer) next() driver.Delivery {
	c.t.Helper()
	select {
	case d := <-c.got:
		return d
	case <-time.After(patience):
		c.t.Fatal("no message")
		return driver.Delivery{}
	}
}

// texts receives n messages and returns the texts that they stand for.
func (c *testConsumer) texts(n int) []string {
	c.t.Helper()
	var list []string
	for range n {
		list = append(list, c.r.text(c.next().Time))
	}
	return list
}

// nothing checks that no message is there, after giving it a moment to come.
func (c *testConsumer) nothing() {
	c.t.Helper()
	select {
	case d := <-c.got:
		c.t.Fatalf("unexpected message %q", c.r.text(d.Time))
	case <-time.After(300 * time.Millisecond):
	}
}

func numbered(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("m%d", i))
	}
	return list
}
