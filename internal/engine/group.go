package engine

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/reconnect"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/template"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// group has the workers of a group of the plan, in all steps.
type group struct {
	plan      *plan.Group // as in the step that opened it, or in its first step
	producers []*producer // in this process
	consumers []*consumer // the same
	// Numbers of producers and consumers of the group in all shards.
	allProducers, allConsumers int

	openings *stats.ConnectionRecorder // of a group of connections; nil for others

	mix  load.Mix // of the kinds of messages
	open bool
}

type producer struct {
	id        int // among the producers of the run, those of other shards included
	index     int // among those of its group
	spec      driver.ProducerSpec
	broker    *Endpoint
	prompt    bool   // its messages are delivered at once
	group     string // its name; empty on a command line
	rec       *stats.ProducerRecorder
	ledger    *verify.Ledger // nil if nothing is verified
	filler    *template.Filler
	trace     *load.Trace     // nil if no messages are traced
	requests  *load.Requests  // nil unless it is a requester
	replies   *verify.Checker // of the replies that it receives; nil if nothing is verified
	load      *load.Producer  // since the group was opened
	driver    driver.Producer // nil unless open
	ended     chan struct{}   // closed when load.Run has returned; nil until started
	base, due uint64          // messages sent before the load of its last step, and those due in it
	stoppedAt int64           // when the load of its last step ended, in microseconds since the Unix epoch

	connections
}

type consumer struct {
	index   int // among those of its group, those of other shards included
	spec    driver.ConsumerSpec
	broker  *plan.Broker
	group   string // its name; empty on a command line
	rec     *stats.ConsumerRecorder
	checker *verify.Checker // nil if nothing is verified
	trace   *load.Trace     // as of a producer
	reply   []byte          // the body of replies; nil unless it is a responder
	answers *verify.Ledger  // of the replies; nil if nothing is verified
	// when the last reply was sent, in microseconds since the Unix epoch
	answered atomic.Int64
	number   int             // among the consumers of the run, those of other shards included
	load     *load.Consumer  // of the present connection; nil until started
	driver   driver.Consumer // nil unless open
	ended    chan struct{}   // closed when Run has returned; nil until started
	failed   atomic.Bool     // Run has returned an error
	stop     context.CancelFunc
	kept     bool // closing leaves its subscription for a later step

	connections
}

// connections sums up the connections of a worker.
type connections struct {
	reconnect.Past
	opened int
	stays  stays // at hosts
}

// newGroups makes the workers of all groups, producers first, so that their numbers do not depend on the consumers.
func newGroups(r *run, list []*plan.Group, process string) {
	for _, g := range list {
		workers := &group{plan: g}
		if g.Role == plan.Connections {
			workers.openings = stats.NewConnectionRecorder(g.Name)
			r.openings = append(r.openings, workers.openings)
		}
		for i, spec := range g.ProducerSpecs(process) {
			if p := r.addProducer(g, i, spec); p != nil {
				workers.producers = append(workers.producers, p)
			}
			workers.allProducers++
		}
		r.groups = append(r.groups, workers)
	}
	for _, workers := range r.groups {
		for i, spec := range workers.plan.ConsumerSpecs(process) {
			if c := r.addConsumer(workers.plan, i, spec); c != nil {
				workers.consumers = append(workers.consumers, c)
			}
			workers.allConsumers++
		}
	}
}

// worker is the identity of a producer or consumer.
type worker struct {
	name, subscription string
	place
	delay time.Duration // of its messages
}

// addProducer returns the producer of that identity, new or of an earlier step; nil if it is in another shard.
func (r *run) addProducer(g *plan.Group, index int, spec driver.ProducerSpec) *producer {
	id := worker{name: spec.Name, place: place{g.ProducerBroker.Site, spec.Destination}, delay: spec.Delay}
	p, known := r.known.producers[id]
	if known {
		return p
	}
	spec.Name = r.freeName(spec.Name)
	number := len(r.known.producers)
	if r.plan.Shard.Has(number) {
		p = newProducer(r, number, g, spec)
		p.index = index
		r.producers = append(r.producers, p)
	} else {
		r.boundary.AddRemote(number)
	}
	r.known.producers[id] = p
	return p
}

// addConsumer is addProducer for consumers.
func (r *run) addConsumer(g *plan.Group, index int, spec driver.ConsumerSpec) *consumer {
	id := worker{name: spec.Name, subscription: spec.Subscription, place: place{g.ConsumerBroker.Site, spec.Destination}}
	c, known := r.known.consumers[id]
	if known {
		return c
	}
	spec.Name = r.freeName(spec.Name)
	if r.plan.Shard.Has(len(r.known.producers) + len(r.known.consumers)) {
		c = &consumer{
			index: index, spec: spec, broker: g.ConsumerBroker, group: g.Name, number: len(r.known.consumers),
		}
		c.rec = stats.NewConsumerRecorder()
		c.trace = r.newTrace(spec.Name, g.ConsumerBroker, &c.stays)
		r.prepareResponder(c, g)
		if r.transacts() {
			c.rec.SetTransacted()
		}
		if shards := r.plan.Shard.Of; shards > 1 {
			c.rec.SetShards(shards)
		}
		r.consumers = append(r.consumers, c)
	}
	r.known.consumers[id] = c
	return c
}

// freeName returns an unused name: readers-1, or readers-1.2 if another destination has a readers-1.
func (r *run) freeName(name string) string {
	free := name
	for n := 2; r.known.names[free]; n++ {
		free = fmt.Sprintf("%s.%d", name, n)
	}
	r.known.names[free] = true
	return free
}

func newProducer(r *run, id int, g *plan.Group, spec driver.ProducerSpec) *producer {
	p := &producer{
		id: id, spec: spec, broker: r.endpoints[g.ProducerBroker], group: g.Name,
		prompt: g.Delay == 0, rec: stats.NewProducerRecorder(!g.Rate.IsZero(), r.pulse),
		filler: template.NewFiller(r.plan.Seed, id),
	}
	origin := driver.ID{Run: r.id, Producer: int64(id), Number: driver.Unnumbered, Delay: spec.Delay.Milliseconds()}
	if p.trace = r.newTrace(spec.Name, g.ProducerBroker, &p.stays); p.trace != nil {
		p.trace.Origin = origin
		p.trace.Body = func(variant int) []byte { return p.spec.Variants[variant].Body }
	}
	if r.verify == nil && r.sample == 0 { // else each message has its own
		p.spec.Origin = origin
	}
	if r.verify != nil {
		p.ledger = verify.NewLedger(r.id, id, p.place().named()) // updateSpecs sets its bodies
		p.ledger.Delay(spec.Delay)
		if r.plan.VerifyWindow > 0 {
			p.ledger.Window()
		}
		r.verify.ledgers[p.place()] = append(r.verify.ledgers[p.place()], p.ledger)
	}
	r.prepareRequester(p)
	p.load = r.newLoad(g, p)
	return p
}

// newTrace returns the trace of a worker at a broker; nil if no messages are traced.
func (r *run) newTrace(name string, b *plan.Broker, at *stays) *load.Trace {
	if r.sample == 0 {
		return nil
	}
	if len(b.Hosts) == 1 {
		at.present = b.Hosts[0]
	}
	return &load.Trace{Sample: r.sample, Worker: name, Host: at.presentHost}
}

// newLoad returns the source of messages for a producer, new or reopened.
func (r *run) newLoad(g *plan.Group, p *producer) *load.Producer {
	var sizes []uint32
	for i := range p.spec.Variants {
		sizes = append(sizes, uint32(len(p.spec.Variants[i].Body))) //nolint:gosec // limited by the plan
	}
	return load.NewProducer(load.ProducerConfig{
		Resent:    r.outages.Resent, // of a reconnecting group only
		Templates: g.Templates(), Filler: p.filler, Sizes: sizes,
		ID: p.id, Requests: p.requests, Phases: r.phases, Boundary: r.boundary,
		MaxPending: p.spec.MaxPending, Ledger: p.ledger,
		Trace:   p.trace,
		Precise: !r.plan.FakeClock,
	}, r.clock, p.rec)
}

// transacts reports whether producers send in transactions, in any step.
func (r *run) transacts() bool {
	return slices.ContainsFunc(r.plan.Steps, func(s plan.Step) bool {
		return slices.ContainsFunc(s.Groups, func(g *plan.Group) bool { return g.CommitInterval > 0 })
	})
}

// producerCommits returns the function that counts the transactions of a producer, or nil.
func (r *run) producerCommits(p *producer, spec *driver.ProducerSpec) driver.Commits {
	p.rec.SetTransaction(spec.CommitInterval)
	if spec.CommitInterval == 0 {
		return nil
	}
	count := r.countCommits(p.rec.Committed)
	return func(took time.Duration, confirmed bool) {
		count(took, confirmed)
		now := r.clock.Now()
		p.rec.TransactionEnded(now-took, now, confirmed)
	}
}

// countCommits counts transactions in the phase in which the broker was asked to commit them.
func (r *run) countCommits(count func(due stats.Phase, took time.Duration, confirmed bool)) driver.Commits {
	return func(took time.Duration, confirmed bool) { count(r.phases.PhaseAt(r.clock.Now()-took), took, confirmed) }
}

// updateSpecs gives the workers of a reopened group the settings of the present step. They keep their names, recorders
// and message numbers.
func (r *run) updateSpecs(u *use) {
	u.group.plan = u.plan
	process := processName()
	producers, consumers := u.plan.ProducerSpecs(process), u.plan.ConsumerSpecs(process)
	var sums []uint32 // of the bodies, which the producers share
	if r.verify != nil && len(producers) > 0 {
		for i := range producers[0].Variants {
			sums = append(sums, verify.BodySum(producers[0].Variants[i].Body))
		}
	}
	for _, p := range u.producers {
		spec := producers[p.index]
		spec.Name, spec.Origin, spec.Commits = p.spec.Name, p.spec.Origin, r.producerCommits(p, &spec)
		p.spec, p.broker = spec, r.endpoints[u.plan.ProducerBroker]
		if p.requests != nil {
			p.requests.SetTimeout(spec.ReplyTimeout)
		}
		if p.ledger != nil {
			p.ledger.SetBodies(sums...)
		}
	}
	for _, c := range u.consumers {
		spec := consumers[c.index]
		if spec.Name = c.spec.Name; spec.TransactionSize > 0 {
			spec.Commits = r.countCommits(c.rec.Committed)
		}
		c.spec = spec
	}
}

// sameWorkers reports whether an open group with setting a can continue with setting b: only the load differs.
func sameWorkers(a, b *plan.Group) bool {
	if a.Role.Consumes() && !a.Role.Produces() && (a.Count > 0 || b.Count > 0) {
		return false // its consumers stop one by one as the count is used up
	}
	x, y := *a, *b
	for _, g := range []*plan.Group{&x, &y} {
		g.Rate, g.Count, g.ConsumerWork, g.ConsumerRate = plan.Rate{}, 0, load.Work{}, 0
		g.Poisson, g.Skew, g.KeySkew, g.RampWorkers = false, 0, 0, 0
		if g.ConsumerFail.IsZero() {
			g.Failing = driver.Accept
		} else {
			g.ConsumerFail = load.Whole
		}
		g.Mix = slices.Clone(g.Mix) // File, BodySize and Fill tell bodies apart
		for i := range g.Mix {
			g.Mix[i].Body = nil
		}
	}
	return reflect.DeepEqual(x, y)
}

// quota returns the number of messages that the consumers of this shard receive in all; 0 for no limit, as in a group
// that also sends.
func (u *use) quota() (own uint64) {
	if u.plan.Role.Produces() {
		return 0
	}
	var equal *load.Skew
	for _, c := range u.consumers {
		own += equal.Share(u.plan.Count, c.index, u.allConsumers)
	}
	return own
}
