package load_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// memRig is a producer and a consumer on the mem driver.
type memRig struct {
	*rig
	crec     *stats.ConsumerRecorder
	consumer *load.Consumer
}

func newMemRig(t testing.TB, cfg setup, verified bool) *memRig {
	t.Helper()
	var checker *verify.Checker
	if verified {
		cfg.Ledger = verify.NewLedger(1, 0, driver.Destination{Name: "TEST"}, verify.BodySum(make([]byte, 1024)), verify.BodySum(make([]byte, 64)))
		checker = verify.NewChecker(verify.NewTracker(), 1)
	}
	f := mem.Factory()
	d, err := f.Open(t.Context(), driver.OpenOptions{
		URL: "mem://local", ConnectTimeout: time.Second, Options: f.NewOptions(),
	})
	require.NoError(t, err)
	dest := driver.Destination{Name: "TEST"}
	r := &memRig{rig: newRig(cfg), crec: stats.NewConsumerRecorder()}
	c := musttest.Get(d.Consumer(t.Context(), driver.ConsumerSpec{Destination: dest, Connection: driver.Connection{Key: "c"}}))(t)
	p, err := d.Producer(t.Context(), driver.ProducerSpec{
		Destination: dest, Connection: driver.Connection{Key: "p"}, MaxPending: cfg.MaxPending,
		Variants: []driver.Variant{{Body: make([]byte, 1024), Priority: -1}, {Body: make([]byte, 64), Priority: -1}},
	}, r)
	require.NoError(t, err)
	r.Attach(p)
	r.consumer = load.NewConsumer(load.ConsumerConfig{Phases: new(load.Phases), OwnOnly: true, Checker: checker}, r.clock, r.crec, c)
	t.Cleanup(func() {
		require.NoError(t, p.Close(context.Background()))
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, d.Close(context.Background()))
	})
	return r
}

// start lets the consumer run until stop is called.
func (r *memRig) start(t testing.TB) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.consumer.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (r *memRig) awaitReceived(n uint64) {
	for r.crec.Total() < n {
		runtime.Gosched()
	}
}

// The path of a message, from the decision to send it to its delivery, allocates nothing, in either loop.
func TestPathAllocatesNothing(t *testing.T) {
	for _, paced := range []string{"", "1000000000"} {
		for i, pending := range []int{1, 100, 1, 100, 1, 100} {
			verified, templates := i > 1, i > 3
			t.Run(fmt.Sprintf("rate %s pending %d verified %t templates %t", paced, pending, verified, templates), func(t *testing.T) {
				const batch = 10_000
				cfg := setup{MaxPending: pending, Count: batch, Mix: load.NewMix([]int{4, 1})}
				if templates {
					cfg.Templates = templated(t)
				}
				if paced != "" {
					cfg.Schedule = constant(t, paced)
				}
				r := newMemRig(t, cfg, verified)
				defer r.start(t)()
				runs := uint64(0)
				allocs := testing.AllocsPerRun(3, func() {
					if err := r.Run(t.Context()); err != nil {
						t.Error(err)
					}
					runs++
					r.awaitReceived(runs * batch)
				})
				// Starting a loop may allocate a timer, and the broker's queue grows; a single allocation per message would
				// make at least 10000.
				if templates { // the broker copies the bodies, of four messages in five
					allocs -= batch * 4 / 5
				}
				require.Less(t, allocs, float64(batch)/200)
			})
		}
	}
}

// templated has a template for the body, and for properties, of the variant of 1 KiB.
func templated(t testing.TB) []template.Message {
	value := func(text string) *template.Template { return musttest.Get(template.ParseValue("key", text))(t) }
	const fields = `{{seq}} {{uuid}} {{now}} {{int 1 1000}} {{pick "a" "bc"}} {{hex 16}}`
	const length = 20 + 36 + 27 + 4 + 2 + 16 + 5
	return []template.Message{
		{
			Body:   musttest.Get(template.Parse("", []byte(fields+strings.Repeat(".", 1024-length))))(t),
			Values: []*template.Template{value("{{seq}}"), value(`{{pick "new" "paid"}}`)},
		},
		{},
	}
}

// BenchmarkLoop is the whole way of a message of 1 KiB through the mem broker: send, completion and delivery.
func BenchmarkLoop(b *testing.B) {
	for i, pending := range []int{1, 100, 1, 100, 1, 100} {
		for _, paced := range []string{"", "1000000000"} {
			verified := i > 1
			name := fmt.Sprintf("closed/pending=%d", pending)
			cfg := setup{MaxPending: pending}
			if paced != "" {
				name = fmt.Sprintf("open-at-max/pending=%d", pending)
				cfg.Schedule = constant(b, paced)
			}
			if verified {
				name += "/verified"
			}
			if i > 3 {
				name += "/templates"
				cfg.Templates = templated(b)
			}
			b.Run(name, func(b *testing.B) {
				cfg.Count = uint64(b.N)
				r := newMemRig(b, cfg, verified)
				defer r.start(b)()
				b.ReportAllocs()
				b.ResetTimer()
				if err := r.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
				r.awaitReceived(uint64(b.N))
			})
		}
	}
}
