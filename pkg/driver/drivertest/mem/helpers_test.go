package mem_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// options are the defaults changed as by -o.
func options(assignments ...string) mem.Options {
	o := mem.Options{}
	if err := driver.SetOptions(&o, assignments); err != nil {
		panic(err)
	}
	return o
}

// rig is a producer and a consumer on one destination, with the outcomes and deliveries that they saw.
type rig struct {
	t        testing.TB
	broker   *mem.Broker
	driver   driver.Driver
	producer driver.Producer
	consumer driver.Consumer
	cancel   context.CancelFunc
	result   chan error

	mu        sync.Mutex
	outcomes  [driver.NumStates]uint64
	doneAt    map[driver.Slot]time.Time
	delivered []int64
	at        []time.Time
}

func open(t testing.TB, b *mem.Broker, url string, o mem.Options) driver.Driver {
	t.Helper()
	d, err := b.Factory().Open(t.Context(), driver.OpenOptions{URL: url, ConnectTimeout: time.Second, Options: &o})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close(context.Background())) })
	return d
}

// producerSpec has a kind of messages for each body.
func producerSpec(dest driver.Destination, bodies ...string) driver.ProducerSpec {
	spec := driver.ProducerSpec{Destination: dest, MaxPending: 1 << 20}
	if len(bodies) == 0 {
		bodies = []string{"body"}
	}
	for _, body := range bodies {
		spec.Variants = append(spec.Variants, driver.Variant{Body: []byte(body), Priority: -1})
	}
	return spec
}

// accept returns f with the verdict Accept.
func accept(f func(*driver.Delivery)) func(*driver.Delivery) driver.Verdict {
	return func(d *driver.Delivery) driver.Verdict {
		f(d)
		return driver.Accept
	}
}

func newRig(t testing.TB, o mem.Options) *rig {
	t.Helper()
	r := &rig{t: t, broker: mem.New(), doneAt: map[driver.Slot]time.Time{}, result: make(chan error, 1)}
	r.driver = open(t, r.broker, "mem://local", o)
	dest := driver.Destination{Kind: driver.Queue, Name: "q"}
	var err error
	r.producer, err = r.driver.Producer(t.Context(), producerSpec(dest), driver.DoneFunc(r.done))
	require.NoError(t, err)
	r.consumer, err = r.driver.Consumer(t.Context(), driver.ConsumerSpec{Destination: dest, Connection: driver.Connection{Key: "c"}})
	require.NoError(t, err)
	return r
}

func (r *rig) done(slot driver.Slot, o driver.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outcomes[o.State]++
	r.doneAt[slot] = time.Now()
}

// send sends messages from..to, named by slot and time.
func (r *rig) send(from, to int) {
	r.t.Helper()
	for i := from; i <= to; i++ {
		err := r.producer.Send(r.t.Context(), &driver.Message{Slot: driver.Slot(i), Time: int64(i)})
		require.NoErrorf(r.t, err, "send %d", i)
	}
}

func (r *rig) receive() *rig {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.cancel = cancel
	go func() {
		r.result <- r.consumer.Run(ctx, accept(func(d *driver.Delivery) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.delivered = append(r.delivered, d.Time)
			r.at = append(r.at, time.Now())
		}))
	}()
	return r
}

// counts returns the numbers of messages delivered and of sends ended so far.
func (r *rig) counts() [2]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [2]int{len(r.delivered), len(r.doneAt)}
}

// since returns when message n was delivered and its send ended.
func (r *rig) since(begin time.Time, n int) [2]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return [2]time.Duration{r.at[n-1].Sub(begin), r.doneAt[driver.Slot(n)].Sub(begin)}
}

// stop ends the consumer and the producer.
func (r *rig) stop() {
	r.t.Helper()
	if r.cancel != nil {
		r.cancel()
		require.NoError(r.t, <-r.result)
	}
	require.NoError(r.t, r.consumer.Close(context.Background()))
	require.NoError(r.t, r.producer.Close(context.Background()))
}
