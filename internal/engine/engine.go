// Package engine runs a plan: in each step it opens the workers, runs the load and drains the messages in flight; at
// the end it closes all workers and returns a summary.
//
//	open -> load (warm-up | measure) -> drain -> close -> summary
//	             next step <-----+
//
// All workers of a plan, their recorders and the numbers of their messages exist from the beginning, so that one clock,
// one collector and one verification span all steps. Every wait has a deadline; the summary lists resources that are
// still open at the end. A second goroutine, the sampler, cuts the run into snapshots; a third passes them to the
// reporters. ARCHITECTURE.md lists the functions to read.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/result"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// ErrReporters is wrapped by the error of [Run] if the reporters, not the workers, could not begin.
var ErrReporters = errors.New("start reporters")

// Config is what [Run] needs.
type Config struct {
	Plan      *plan.Plan
	Endpoints map[*plan.Broker]*Endpoint // of all brokers of the plan
	Side      *brokerside.Watch          // of the broker and its host; nil if they are not watched
	SoFar     bool                       // snapshots have the figures so far
	Trace     uint64                     // largest number of events of the plan's sample in snapshots; 0 for none
	Meeting   Meeting                    // nil for a run that begins by itself
}

// Meeting lets the shards of a run begin at one moment.
type Meeting interface {
	// Start waits for all shards. It returns the moment by this machine's clock, and the lead of that over the clock of
	// the meeting.
	Start(ctx context.Context) (time.Time, *result.Offset, error)
	// Clock measures the lead again; nil if that is not possible.
	Clock(ctx context.Context) *result.Offset
}

// Run carries out a plan and feeds reporter.
//
// Closing stop ends the load like the end of its duration: no more sends, then drain, close, summary. The end of ctx
// also cuts the drain short, and Run returns as soon as it can; the figures so far are still reported.
//
// The error is not nil if there was no load: a worker could not be opened, or a reporter could not begin
// ([ErrReporters]). Its class reports whether the broker was unreachable. After the start of the load the error is nil,
// and the summary lists the problems.
func Run(ctx context.Context, stop <-chan struct{}, c *Config, reporter report.Reporter) (*stats.Summary, error) {
	r := newRun(c)
	r.step = r.steps[0]
	r.step.prepareDraws(r.plan.Seed)
	loading, endLoading := interruptible(ctx, stop)
	defer endLoading()
	err := r.openStep(loading)
	if err == nil && c.Meeting != nil {
		r.plan.StartAt, r.ahead, err = c.Meeting.Start(loading)
	}
	if err == nil {
		err = r.awaitStart(loading)
	}
	if err != nil {
		err = causeOf(loading, err)
		r.closeAll(ctx)
		return nil, err
	}
	if err := r.startReporting(reporter); err != nil {
		r.closeAll(ctx)
		r.pulse.Stop()
		return nil, err
	}
	end := r.loadStep(loading)
	for !end.endsRun() && r.step.index+1 < len(r.steps) {
		end = r.runNextStep(ctx, loading, end)
	}
	r.sampler.enterPhase(stats.Drain)
	if r.drain(ctx) && !end.endsRun() {
		r.awaitOthers(loading)
	}
	r.endExpiry()
	r.awaitCount(ctx, countWhileOpen, countEvery)
	r.unanswered = unansweredMessages(r.producers)
	r.recordEnds(ctx, r.subs)
	left := r.closeAll(ctx)
	r.commandsAfter(ctx, loading, &end)
	r.watched.Stop()
	r.sampler.finish()
	r.pulse.Stop()
	for _, c := range r.consumers {
		if c.kept { // the step that removes it did not run
			left = append(left, c.spec.Name+": its durable subscription "+c.spec.Subscription+
				" stays at the broker: the run ended early")
		}
	}
	s := r.summarize(end, append(r.closeFailures, left...))
	if c.Meeting != nil {
		s.ClockEnd = c.Meeting.Clock(ctx)
	}
	s.Outcome.Interrupted = s.Outcome.Interrupted || isClosed(stop) // in the load or after it
	return s, r.sampler.report(ctx, s)
}

// run is the state of one run.
type run struct {
	plan      *plan.Plan
	endpoints map[*plan.Broker]*Endpoint
	watched   *brokerside.Watch
	role      plan.Role    // of all groups together
	live      bool         // snapshots have the figures so far
	sample    load.Sample  // of messages whose events snapshots have; 0 for none
	traced    result.Trace // so far, and room for as many events; guarded by sampler.mu
	room      uint64
	id        int64          // the run number in its messages
	ahead     *result.Offset // of the clock over that of the meeting, at the start
	clock     *load.Clock
	pulse     *stats.Pulse
	phases    *load.Phases
	boundary  *load.Boundary
	groups    []*group // of all steps
	openings  []*stats.ConnectionRecorder
	stages    map[string]*stats.Stages // by the name of a group

	ramp          ramp          // of the present step
	openedWorkers int           // so far, those of later steps included
	opening       time.Duration // in which they were opened
	// known are the workers made so far. If the number of workers of a group changes in a later step, workers with the
	// same identity are reused, so that they keep their numbers and figures.
	known struct {
		producers map[worker]*producer
		consumers map[worker]*consumer
		names     map[string]bool
	}
	producers []*producer
	consumers []*consumer
	subs      []*subscription
	opened    []*Endpoint // those with a driver
	collector *stats.Collector
	sampler   *sampler
	verify    *verification // nil if nothing is verified
	// requesters are the producers of requests by number. repliesCut: some requests were not waited for at the end.
	requesters map[int64]*producer
	repliesCut bool
	counting   *counting   // nil if the brokers are not asked for their counts
	failures   chan ending // by workers; buffered for all of them
	commands   []result.Command
	outages    *stats.Outages // nil if no workers are reconnected
	probed     sync.Map

	mu        sync.Mutex // guards subs, which the sampler reads, and explained
	explained []uint64   // copies that the verification explained by outages when each of the first of these began

	steps         []*step
	step          *step         // the present one
	due           uint64        // messages due in ended steps, by groups with a rate
	offered       stats.Offered // the same in their measured parts
	closeFailures []string      // failures to close in the steps so far
	endedSteps    []stats.Summary

	drained    time.Duration // length of the last drain
	silent     bool          // the load was given up because the broker stopped answering
	unanswered bool          // the last drain left messages without an answer

	endExpiry     func()             // of the messages of the present step
	stopConsumers context.CancelFunc // all of them
	consuming     context.Context    //nolint:containedctx // of the consumers of all steps
}

func newRun(c *Config) *run {
	p := c.Plan
	r := &run{
		plan: p, endpoints: c.Endpoints, watched: c.Side, role: p.Roles(), id: p.RunID, clock: load.NewClock(),
		phases: new(load.Phases), live: c.SoFar, requesters: map[int64]*producer{},
	}
	if r.room = c.Trace; r.room > 0 {
		r.sample = p.TraceSample
	}
	if r.id == 0 {
		r.id = 1 + rand.Int64N(math.MaxInt64) //nolint:gosec // no secret
	}
	r.clock.SetAhead(p.ClockShift)
	if p.BrokerCount && p.Shard.IsZero() && !slices.ContainsFunc(p.Groups(), func(g *plan.Group) bool {
		return g.Role == plan.Connections && len(g.Destinations) > 0 // their messages are not counted by destination
	}) { // nor are the sends of other shards known
		r.counting = &counting{watch: brokerside.NewCounts()}
	}
	r.ramp.opened = make(chan func(bool))
	r.consuming, r.stopConsumers = context.WithCancel(context.Background())
	r.pulse = stats.NewPulse(r.clock)
	if p.FakeClock {
		r.pulse.IgnoreMachine()
	}
	r.known.producers, r.known.consumers = map[worker]*producer{}, map[worker]*consumer{}
	r.known.names = map[string]bool{}
	if p.Verify {
		r.verify = newVerification(p.VerifyFile)
	}
	process, producers := processName(), 0
	groups := distinctGroups(p)
	r.stages = map[string]*stats.Stages{}
	if slices.ContainsFunc(groups, func(g *plan.Group) bool { return g.Reconnect }) {
		r.outages = stats.NewOutages()
	}
	for _, g := range groups {
		producers += len(g.ProducerSpecs(process))
		r.stages[g.Name] = new(stats.Stages)
	}
	r.boundary = load.NewBoundary(producers, r.phases)
	newGroups(r, groups, process)
	for i := range p.Steps {
		r.steps = append(r.steps, newStep(r, i))
	}
	r.failures = make(chan ending, len(r.steps)*(len(r.producers)+len(r.consumers))) // each may fail once in a step
	return r
}

// processName returns the prefix of connection names, which operators see on the broker's console; role and number
// follow.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("perfmq-%s-%d", host, os.Getpid())
}

// startReporting starts the clock, the reporters, the sampler and the first step.
func (r *run) startReporting(reporter report.Reporter) error {
	opened := r.clock.Epoch(r.clock.Now())
	if r.plan.StartAt.IsZero() {
		r.clock.Begin()
		opened = r.clock.Epoch(0)
	} else {
		r.clock.BeginAt(r.plan.StartAt)
	}
	r.pulse.Start()
	r.watched.Start(r.clock.Moment)
	for _, s := range r.subs {
		s.opened = opened
	}
	info := r.describe()
	if err := reporter.Start(info); err != nil {
		return fmt.Errorf("%w: %w", ErrReporters, err)
	}
	r.makeCollector(&info)
	r.traced.Sample = r.sample.String()
	r.sampler = newSampler(r, reporter)
	r.step.start = 0
	return nil
}

// describe returns the description of the run for the reporters.
func (r *run) describe() stats.Run {
	info := stats.Run{
		ID: r.id, Producing: r.role.Produces(), Consuming: r.role.Consumes(),
		Start: r.clock.Start().Add(r.plan.ClockShift), Ahead: r.ahead,
		Warmup: r.plan.Steps[0].Warmup, Scenario: r.plan.Name,
		Labels: r.plan.Labels, Windowed: r.plan.VerifyWindow > 0,
	}
	for _, s := range r.plan.Steps {
		info.Steps = append(info.Steps, s.Name)
	}
	groups := []stats.RunGroup{{}} // the whole run first
	for _, g := range r.groups {
		sends, receives := sendsMessages(g.plan)
		info.Opening = info.Opening || g.openings != nil
		info.Producing, info.Consuming = info.Producing || sends, info.Consuming || receives
		info.Requests = info.Requests || g.plan.Role.Requests()
		info.Responds = info.Responds || g.plan.Role.Responds()
		info.Transacted = info.Transacted || g.plan.CommitInterval > 0 || g.plan.TransactionSize > 0
		for _, name := range slices.Compact([]string{"", g.plan.Name}) {
			i := slices.IndexFunc(groups, func(o stats.RunGroup) bool { return o.Name == name })
			if i < 0 {
				i = len(groups)
				groups = append(groups, stats.RunGroup{Name: name})
			}
			g.describe(&groups[i])
		}
		for _, d := range g.plan.Destinations {
			if !slices.Contains(info.Destinations, d.String()) {
				info.Destinations = append(info.Destinations, d.String())
			}
		}
	}
	all := &groups[0]
	info.Groups = groups[1:]
	info.Protocol, info.Client = cmp.Or(all.Protocol, all.ConsumerProtocol), cmp.Or(all.Client, all.ConsumerClient)
	info.ConsumerProtocol, info.ConsumerClient = all.ConsumerProtocol, all.ConsumerClient
	return info
}

// describe adds the workers of a group to a description, which may have workers of other steps.
func (g *group) describe(to *stats.RunGroup) {
	sends, receives := sendsMessages(g.plan)
	to.Sends, to.Receives = to.Sends || len(g.producers) > 0 || sends, to.Receives || len(g.consumers) > 0 || receives
	if b := g.plan.ProducerBroker; g.plan.Role.Produces() || g.openings != nil {
		to.Protocol, to.Client = cmp.Or(to.Protocol, b.Protocol), cmp.Or(to.Client, b.Client)
	}
	b := g.plan.ConsumerBroker
	if g.openings != nil {
		b = g.plan.ProducerBroker
	}
	if g.plan.Role.Consumes() || receives {
		to.ConsumerProtocol = cmp.Or(to.ConsumerProtocol, b.Protocol)
		to.ConsumerClient = cmp.Or(to.ConsumerClient, b.Client)
	}
}

// makeCollector makes the collector of all workers.
func (r *run) makeCollector(info *stats.Run) {
	var precs []*stats.ProducerRecorder
	for _, p := range r.producers {
		precs = append(precs, p.rec)
	}
	var crecs []*stats.ConsumerRecorder
	for _, c := range r.consumers {
		crecs = append(crecs, c.rec)
	}
	r.collector = stats.NewCollector(precs, crecs, r.clock.Start())
	r.collector.SetStallLimit(r.plan.StallThreshold)
	r.collector.SetRoles(info.Producing, info.Consuming)
	r.watchWorkers()
	r.collector.Expect(r.openings, r.plan.Rated())
	r.collector.SetGroups(info.Groups)
	for name, o := range r.stages {
		r.collector.SetStages(name, o)
	}
	r.collector.BeginStep()
	r.collector.SetPulse(r.pulse)
	if r.outages != nil {
		r.outages.Watch(r.collector.LastSign, r.outageBegun, r.plannedRate())
	}
	if r.verify != nil && r.role.Consumes() && !r.plan.Split() {
		r.collector.SetProgress(func() result.Progress {
			r.judgeWindow()
			return r.progress()
		})
	}
}

// watchWorkers gives the collector the open workers, with their counters and waits.
func (r *run) watchWorkers() {
	list := make([]stats.Worker, 0, len(r.producers)+len(r.consumers))
	add := func(name, group string, destination driver.Destination, worker any, broker *plan.Broker, c *connections) {
		w := stats.Worker{
			Name: name, Group: group, Broker: broker.Name, Site: broker.Site,
			Destination: destination.String(), Closed: worker == nil, Openings: c.opened,
			Before: c.Counters, CreditWaits: c.Waits.Credit.Times, SocketWaits: c.Waits.Socket.Times,
		}
		w.Counters, _ = worker.(driver.Counting)
		w.Waits = load.WaiterOf(worker)
		if len(broker.Hosts) > 1 {
			w.Host = c.stays.presentHost
		}
		list = append(list, w)
	}
	bounded := map[[2]string]bool{}
	for _, p := range r.producers {
		add(p.spec.Name, p.group, p.spec.Destination, p.driver, p.broker.Broker, &p.connections)
		w := &list[len(list)-1]
		w.MaxPending, w.Unanswered = p.maxInFlight(bounded), p.inFlight().Unanswered
		w.Prompt = r.plan.Shard.IsZero() && p.prompt
	}
	for _, c := range r.consumers {
		add(c.spec.Name, c.group, c.spec.Destination, c.driver, c.broker, &c.connections)
		w := &list[len(list)-1]
		w.Subscription, w.Prompt = c.subscriptionName(), c.spec.Selector == ""
	}
	if r.sampler == nil {
		r.collector.SetWorkers(list)
	} else {
		r.sampler.locked(func(c *stats.Collector) { c.SetWorkers(list) })
	}
}
