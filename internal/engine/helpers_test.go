package engine_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/leaktest"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
	"github.com/perfmq/perfmq/pkg/result"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	connectTimeout = 2 * time.Second
	drainTimeout   = 3 * time.Second
)

// flat is a plan of one step with one group.
type flat struct {
	*plan.Plan
	*plan.Step
	*plan.Group
	Producer, Consumer *engine.Endpoint
}

func carryOut(ctx context.Context, stop <-chan struct{}, p *flat, reporter report.Reporter) (*stats.Summary, error) {
	return engine.Run(ctx, stop, p.config(), reporter)
}

func (p *flat) config() *engine.Config { return config(p.Plan, p.Producer, p.Consumer) }

// config returns a run of a plan at these brokers.
func config(p *plan.Plan, at ...*engine.Endpoint) *engine.Config {
	c := &engine.Config{Plan: p, Endpoints: map[*plan.Broker]*engine.Endpoint{}, Trace: result.MaxTraceEvents}
	for _, e := range at {
		c.Endpoints[e.Broker] = e
		if e.Factory.Hosts != nil {
			e.Hosts = e.Factory.Hosts(e.URL)
		}
	}
	return c
}

// endpoint returns a broker of that name at mem://local.
func endpoint(f driver.Factory, name string) *engine.Endpoint {
	b := &plan.Broker{Name: name, Protocol: f.Name, Client: driver.Native}
	b.URL, b.ConnectTimeout = "mem://local", connectTimeout
	return &engine.Endpoint{Broker: b, Factory: f}
}

// bodies are messages of that size.
func bodies(size int) []plan.Variant {
	return []plan.Variant{{Weight: 1, Variant: driver.Variant{Priority: -1, Body: make([]byte, size)}}}
}

// templated are messages of a template.
func templated(t testing.TB) []plan.Variant {
	whole := musttest.Get(template.Parse("", []byte(`{"number": {{seq}}, "id": "{{uuid}}", "at": "{{now}}"}`)))(t)
	body := slices.Clone(template.NewFiller(0, 0).Fill(whole, 0, 0))
	return []plan.Variant{{Weight: 1, File: "f", Template: whole, Variant: driver.Variant{Priority: -1, Body: body}}}
}

// newPlan is a client with one producer and one consumer on queue://TEST, on the given factory.
func newPlan(f driver.Factory, edits ...func(*flat)) *flat {
	sender, reader := endpoint(f, ""), endpoint(f, "")
	g := &plan.Group{
		Role: plan.Client, ProducerBroker: sender.Broker, ConsumerBroker: reader.Broker,
		Destinations: []driver.Destination{{Name: "TEST"}}, Producers: 1, Consumers: 1, Mix: bodies(64),
	}
	g.MaxPending = 1
	whole := &plan.Plan{DrainTimeout: drainTimeout, FakeClock: true, Steps: []plan.Step{{Name: plan.OnlyStep, Groups: []*plan.Group{g}}}}
	p := &flat{whole, &whole.Steps[0], g, sender, reader}
	for _, edit := range edits {
		if edit != nil {
			edit(p)
		}
	}
	return p
}

func rate(s string) plan.Rate {
	r, err := load.ParseSchedule(s)
	if err != nil {
		panic(err)
	}
	return plan.Rate{Schedule: r}
}

func broker(t *testing.T, edit func(*mem.Options)) *mem.Broker {
	t.Helper()
	b, o := mem.New(), mem.Options{}
	if edit != nil {
		edit(&o)
		b.Set(o)
	}
	return b
}

// recorder is a reporter that keeps everything.
type recorder struct {
	mu        sync.Mutex
	run       stats.Run
	snapshots []*stats.Snapshot
	summary   *stats.Summary
	interval  func(*stats.Snapshot) error // called too, if not nil
	start     error
}

func (r *recorder) Start(run stats.Run) error { r.run = run; return r.start }

func (r *recorder) Interval(s *stats.Snapshot) error {
	r.mu.Lock()
	r.snapshots = append(r.snapshots, s)
	r.mu.Unlock()
	if r.interval != nil {
		return r.interval(s)
	}
	return nil
}

func (r *recorder) Summary(s *stats.Summary) error { r.summary = s; return nil }
func (r *recorder) Close() error                   { return nil }

func (r *recorder) last() *result.Counts { return &r.snapshots[len(r.snapshots)-1].Total }

// run carries out p and checks all that holds for every run.
func run(t *testing.T, p *flat, stop <-chan struct{}) (*stats.Summary, *recorder) {
	t.Helper()
	rep := new(recorder)
	s, err := carryOut(t.Context(), stop, p, rep)
	require.NoError(t, err)
	check(t, p, s, rep)
	return s, rep
}

// check holds a run against the rules of the reference.
func check(t *testing.T, p *flat, s *stats.Summary, rep *recorder) {
	t.Helper()
	require.Same(t, s, rep.summary)
	n, inFlight := s.Total.Values(), s.Total.InFlight()
	require.Less(t, inFlight, uint64(1)<<62, "more ended than were sent")
	var sum, before result.Counts
	var latencies result.Latencies
	var aggregated [4]int64
	phase := result.Warmup
	for i, snap := range rep.snapshots {
		require.LessOrEqual(t, snap.Phase, phase, "phases go forward: warmup, measure, drain")
		phase = snap.Phase
		require.False(t, snap.To.Before(snap.From))
		if i > 0 {
			require.False(t, snap.From.Before(rep.snapshots[i-1].To), "intervals do not overlap")
		}
		require.Equal(t, snap.To.Sub(rep.run.Start).Microseconds(), snap.Elapsed)
		doubled := n[result.Redelivered] > 0 || s.Verification != nil && s.Verification.Total.Duplicates > 0
		if p.Role == plan.Client && !doubled && p.Destinations[0].Kind == driver.Queue {
			require.LessOrEqual(t, snap.Total.Get(result.Received), snap.Total.Get(result.Sent))
		}
		for _, pair := range [][2]uint64{
			{before.Get(result.Sent), snap.Total.Get(result.Sent)},
			{before.Get(result.Completed), snap.Total.Get(result.Completed)},
			{before.Get(result.Received), snap.Total.Get(result.Received)},
			{before.Get(result.Blocked), snap.Total.Get(result.Blocked)},
			{snap.Total.Get(result.Completed), snap.Total.Get(result.Sent)},
		} {
			require.LessOrEqual(t, pair[0], pair[1])
		}
		before = snap.Total
		sum.Add(&snap.Counts)
		requireEqual(t, snap.Total, sum, "deltas add up to the totals")
		for l, x := range []*result.Latency{
			snap.Latencies[result.Delay], snap.Latencies[result.Ack], snap.Latencies[result.Response], snap.Latencies[result.Transfer],
		} {
			if x != nil && snap.Phase != result.Warmup {
				aggregated[l] += x.Count
			}
		}
		latencies.Merge(snap.Latencies)
		if snap.Leftover != nil {
			require.NotZero(t, p.Warmup)
			latencies.Merge(*snap.Leftover)
		}
	}
	requireEqual(t, s.Total, sum, "deltas add up to the totals")
	if latencies[result.Ack] != nil {
		require.EqualValues(t, n[result.Completed], latencies[result.Ack].Count)
	}
	if latencies[result.Delay] != nil {
		require.EqualValues(t, n[result.Completed], latencies[result.Response].Count)
		require.LessOrEqual(t, latencies[result.Delay].Count, int64(n[result.Sent]))
		require.GreaterOrEqual(t, latencies[result.Delay].Count, int64(n[result.Sent]-inFlight))
	}
	if latencies[result.Transfer] != nil {
		require.EqualValues(t, n[result.Received]-n[result.Unstamped]-n[result.NegativeTransfers], latencies[result.Transfer].Count, "%d below zero", n[result.NegativeTransfers])
	}
	for l, x := range []*result.Latency{s.Latencies[result.Delay], s.Latencies[result.Ack], s.Latencies[result.Response], s.Latencies[result.Transfer]} {
		if x != nil {
			require.Equal(t, aggregated[l], x.Count, "the summary has all but the warm-up")
		}
	}
	checkMeasured(t, s)
}

// checkMeasured: counters and latencies of the messages due after the warm-up are of the same messages.
func checkMeasured(t *testing.T, s *stats.Summary) {
	t.Helper()
	m, inFlight := s.Measured.Values(), s.Measured.InFlight()
	require.LessOrEqual(t, m[result.Sent], s.Total.Get(result.Sent))
	if l := s.Latencies; l[result.Ack] != nil {
		require.EqualValues(t, m[result.Completed], l[result.Ack].Count)
		if l[result.Response] != nil {
			require.EqualValues(t, m[result.Completed], l[result.Response].Count)
			require.LessOrEqual(t, l[result.Delay].Count, int64(m[result.Sent]))
			require.GreaterOrEqual(t, l[result.Delay].Count, int64(m[result.Sent]-inFlight))
		}
	}
	if s.Latencies[result.Transfer] != nil {
		require.EqualValues(t, m[result.Received]-m[result.Unstamped]-m[result.NegativeTransfers], s.Latencies[result.Transfer].Count)
	}
}

func requireEqual(t *testing.T, want, got result.Counts, text string) {
	t.Helper()
	require.Equal(t, want.Values(), got.Values(), text)
	for class := range driver.NumClasses {
		require.Equal(t, want.OfClass(class.String()), got.OfClass(class.String()), text)
	}
}

// lasted returns the time from the start to the end of a run.
func lasted(s *stats.Summary) time.Duration { return time.Duration(s.End-s.Start) * time.Microsecond }

// hooks change the drivers of a factory, for example to break their contract.
type hooks struct {
	open       func(context.Context) error
	producer   func(context.Context) error
	consumer   func(context.Context) error
	opened     func(name string) // of each worker
	spec       func(*driver.ProducerSpec)
	send       func(ctx context.Context, send func() error) error
	done       func(spec driver.ProducerSpec, o driver.Outcome, end func(driver.Outcome))
	wrap       func(driver.ProducerSpec, driver.Producer, driver.Completions) driver.Producer
	delivery   func(driver.ConsumerSpec, *driver.Delivery, func(*driver.Delivery))
	runs       func(ctx context.Context, run func() error) error
	closeSend  func(ctx context.Context, close func() error) error
	closeRecv  func(ctx context.Context, close func() error) error
	closeDrive func(ctx context.Context, close func() error) error
}

func (h *hooks) factory(f driver.Factory) driver.Factory {
	open := f.Open
	f.Open = func(ctx context.Context, o driver.OpenOptions) (driver.Driver, error) {
		if h.open != nil {
			if err := h.open(ctx); err != nil {
				return nil, err
			}
		}
		d, err := open(ctx, o)
		return &hookedDriver{d, h}, err
	}
	return f
}

// delivering lets a function see each delivery on its way.
func delivering(f driver.Factory, delivery func(driver.ConsumerSpec, *driver.Delivery, func(*driver.Delivery))) driver.Factory {
	return (&hooks{delivery: delivery}).factory(f)
}

type hookedDriver struct {
	driver.Driver
	h *hooks
}

func (d *hookedDriver) Producer(ctx context.Context, s driver.ProducerSpec, done driver.Completions) (driver.Producer, error) {
	if d.h.opened != nil {
		d.h.opened(s.Name)
	}
	if d.h.spec != nil {
		d.h.spec(&s)
	}
	if d.h.producer != nil {
		if err := d.h.producer(ctx); err != nil {
			return nil, err
		}
	}
	if d.h.done != nil {
		inner := done
		done = driver.DoneFunc(func(slot driver.Slot, o driver.Outcome) {
			d.h.done(s, o, func(o driver.Outcome) { inner.Done(slot, o) })
		})
	}
	p, err := d.Driver.Producer(ctx, s, done)
	if d.h.wrap != nil && err == nil {
		return d.h.wrap(s, p, done), nil
	}
	return &hookedProducer{p, d.h}, err
}

func (d *hookedDriver) Consumer(ctx context.Context, s driver.ConsumerSpec) (driver.Consumer, error) {
	if d.h.opened != nil {
		d.h.opened(s.Name)
	}
	if d.h.consumer != nil {
		if err := d.h.consumer(ctx); err != nil {
			return nil, err
		}
	}
	c, err := d.Driver.Consumer(ctx, s)
	return &hookedConsumer{c, s, d.h}, err
}

func (d *hookedDriver) Close(ctx context.Context) error {
	return hooked(ctx, d.h.closeDrive, d.Driver.Close)
}

func hooked(ctx context.Context, hook func(context.Context, func() error) error, do func(context.Context) error) error {
	if hook == nil {
		return do(ctx)
	}
	return hook(ctx, func() error { return do(ctx) })
}

type hookedProducer struct {
	driver.Producer
	h *hooks
}

func (p *hookedProducer) Send(ctx context.Context, m *driver.Message) error {
	return hooked(ctx, p.h.send, func(ctx context.Context) error { return p.Producer.Send(ctx, m) })
}

func (p *hookedProducer) Close(ctx context.Context) error {
	return hooked(ctx, p.h.closeSend, p.Producer.Close)
}

type hookedConsumer struct {
	driver.Consumer
	spec driver.ConsumerSpec
	h    *hooks
}

func (c *hookedConsumer) Run(ctx context.Context, deliver func(*driver.Delivery) driver.Verdict) error {
	through := deliver
	if c.h.delivery != nil {
		through = func(d *driver.Delivery) driver.Verdict {
			c.h.delivery(c.spec, d, func(d *driver.Delivery) { deliver(d) })
			return driver.Accept
		}
	}
	return hooked(ctx, c.h.runs, func(ctx context.Context) error { return c.Consumer.Run(ctx, through) })
}

func (c *hookedConsumer) Close(ctx context.Context) error {
	return hooked(ctx, c.h.closeRecv, c.Consumer.Close)
}

var errFull = errors.New("disk full")

// stuckReporter calls before each interval.
type stuckReporter struct {
	*recorder
	before func()
}

func (r *stuckReporter) Interval(s *stats.Snapshot) error {
	r.before()
	return r.recorder.Interval(s)
}

// inBubble runs a test on a fake clock.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// pass lets time pass on the fake clock of a bubble; nothing really waits.
func pass(d time.Duration) { <-time.After(d) }

func plainRate(s string) load.Rate {
	r, err := load.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

// timed is an outage with its times as durations.
type timed struct {
	result.Outage
	Length, Silent, Confirmed, Received, Tried, Back, Reconnected, Recovered, Watched time.Duration
}

func inTime(o result.Outage) timed {
	return timed{
		o, us(o.Length), us(o.Silent), us(o.Confirmed), us(o.Received), us(o.Tried), us(o.Back), us(o.Reconnected),
		us(o.Recovered), us(o.Watched),
	}
}

// after returns when the outage began.
func (o *timed) after(began time.Time) time.Duration { return time.UnixMicro(o.Time).Sub(began) }

func us(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
