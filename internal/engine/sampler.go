package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// backlog is the maximum number of snapshots that wait for slow reporters. When it is reached, intervals get longer
	// than a second until there is room again; no figures are lost.
	backlog = 64
	// phaseCuts is the part of the backlog reserved for the ends of phases, which are always cut.
	phaseCuts = 4
)

// sampler cuts a run into snapshots: at each whole second since the start of its step and at each change of phase. A
// goroutine of its own passes them to the reporters, so that a slow reporter delays neither a cut nor the run.
type sampler struct {
	mu        sync.Mutex // held while collecting, so that snapshots are queued in order
	collector *stats.Collector
	run       *run
	use       *result.BrokerUse // of the present step
	step      string
	ended     []stats.Summary // steps that no snapshot has yet
	phase     stats.Phase
	soFar     *stats.Summary       // for the snapshots; nil if they have none
	queue     chan *stats.Snapshot // closed after the last

	endLoop func() // of the present step

	summary  *stats.Summary // set before queue is closed
	reported chan struct{}  // closed after the last call of the reporters
	err      error          // the reporters' first error; read it after reported
}

// newSampler returns a sampler that begins to cut with the first step.
func newSampler(r *run, reporter report.Reporter) *sampler {
	s := &sampler{
		collector: r.collector, run: r, queue: make(chan *stats.Snapshot, backlog), endLoop: func() {},
		reported: make(chan struct{}),
	}
	go s.feedReporter(reporter)
	return s
}

// beginStep starts to cut a step; its load begins at start. If the step has a duration, the cut at its end is left to
// enterPhase or finish.
func (s *sampler) beginStep(step *plan.Step, start time.Time) {
	s.endLoop()
	s.mu.Lock()
	if s.step != "" {
		s.collect(false)
	}
	s.step, s.phase = step.Name, stats.Measure
	s.collector.SetMarks(step.Name, !step.Produces(), step.Marks, start)
	if step.Warmup > 0 {
		s.phase = stats.Warmup
	}
	s.mu.Unlock()
	quit := make(chan struct{})
	var looping sync.WaitGroup
	looping.Go(func() { s.loop(start, step.Warmup, step.Duration, quit) })
	s.endLoop = sync.OnceFunc(func() { close(quit); looping.Wait() })
}

func (s *sampler) loop(start time.Time, warmup, duration time.Duration, quit <-chan struct{}) {
	next, warm, end := start.Add(sampleInterval), start.Add(warmup), start.Add(duration)
	for {
		wake, endsWarmup := next, warmup > 0 && !warm.After(next)
		if endsWarmup {
			wake = warm
		}
		select {
		case <-time.After(time.Until(wake)):
		case <-quit:
			return
		}
		switch {
		case endsWarmup:
			s.enterPhase(stats.Measure)
			warmup = 0
		case !next.Equal(end):
			s.cut()
		}
		for now := time.Now(); !next.After(now); { // a tester that was stopped for seconds makes one snapshot
			next = next.Add(sampleInterval)
		}
	}
}

// locked calls f while nothing is collected.
func (s *sampler) locked(f func(*stats.Collector)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.collector)
}

// endStep ends the current interval and returns the figures of the step. The time until the next load begins belongs to
// the following step, so that the intervals of a step add up to its figures.
func (s *sampler) endStep(following string) stats.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collect(false)
	sum := s.sumStep()
	s.step = following
	return sum
}

// sumStep returns the figures of the present step and ends it. Nothing is collected meanwhile.
func (s *sampler) sumStep() stats.Summary {
	sum := s.collector.EndStep(s.step)
	if s.use != nil {
		sum.BrokerSide, s.use = []result.BrokerSide{{Whole: *s.use}}, nil
	}
	return sum
}

// cut ends the current interval, unless the reporters are far behind.
func (s *sampler) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) < backlog-phaseCuts {
		s.collect(false)
	}
}

// collect ends the current interval. It never blocks: see phaseCuts.
func (s *sampler) collect(last bool) {
	r := s.run
	snap := s.collector.Collect(s.phase, time.Now(), last)
	snap.Step, snap.Depths, snap.BrokerSide, snap.SoFar = s.step, r.depths(), r.watched.Take(), s.soFar
	snap.Backlog, s.use = brokerside.Backlog(snap.Depths), brokerside.Join(s.use, snap.BrokerSide)
	if r.verify != nil {
		snap.Lost = r.verify.lost
	}
	r.outages.AddInterval(snap)
	if r.sample > 0 {
		snap.Trace = r.takeTrace()
	}
	if snap.Empty() && len(snap.Trace) == 0 && snap.BrokerSide == nil && snap.To.Sub(snap.From) < sampleInterval/2 {
		return // the empty rest between the last whole second and the end of a phase
	}
	snap.EndedSteps, s.ended = s.ended, nil
	if r.plan.Split() {
		snap.Numbers = r.takeSide(false)
	}
	s.queue <- snap
}

// takeTrace returns the events of the sampled messages since its last call.
func (r *run) takeTrace() (list []result.TraceEvent) {
	take := func(t *load.Trace) {
		events, dropped := t.Take()
		n := min(uint64(len(events)), r.room)
		r.room -= n
		r.traced.Events += n
		r.traced.Dropped += dropped + uint64(len(events)) - n
		list = append(list, events[:n]...)
	}
	for _, p := range r.producers {
		take(p.trace)
	}
	for _, c := range r.consumers {
		take(c.trace)
	}
	return list
}

// enterPhase ends the current interval and begins the next one in phase p. A load that ends within its warm-up stays in
// that phase, so that its latencies do not count as measured.
func (s *sampler) enterPhase(p stats.Phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == stats.Drain && s.phase == stats.Warmup || p == stats.Measure && s.phase == stats.Drain {
		return
	}
	s.collect(false)
	s.phase = p
}

// finish stops the sampler after a last snapshot. All workers have ended or were given up.
func (s *sampler) finish() {
	s.endLoop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collect(true)
}

// feedReporter passes the snapshots and the summary to the reporters.
func (s *sampler) feedReporter(reporter report.Reporter) {
	defer close(s.reported)
	keep := func(err error) {
		if s.err == nil {
			s.err = err
		}
	}
	for snap := range s.queue {
		keep(reporter.Interval(snap))
	}
	keep(reporter.Summary(s.summary))
}

// report passes the summary to the reporters and returns their first error of the run. It stops waiting shortly after
// ctx has ended.
func (s *sampler) report(ctx context.Context, sum *stats.Summary) error {
	s.summary = sum
	close(s.queue)
	ctx, cancel := hurried(ctx)
	defer cancel()
	if !awaitEnd(ctx, s.reported) {
		return errors.New("report the results: the outputs did not take them in time")
	}
	return s.err
}

// namedStalls is the maximum number of stalls that a text names.
const namedStalls = 3

// Observe adds findings on the stalls of a run and the broker's side. It does not fail the run.
func Observe(s *stats.Summary) {
	observeStalls(s)
	observeBroker(s)
}

// observeStalls adds a finding for the stalls of each side of the run, of a broker and of a group.
func observeStalls(s *stats.Summary) {
	type part struct{ broker, group, side string }
	var parts []part
	stalls := map[part][]result.Stall{}
	for _, stall := range s.Stalls {
		if stall.Warmup {
			continue
		}
		p := part{stall.Broker, stall.Group, stall.Side}
		if stalls[p] == nil {
			parts = append(parts, p)
		}
		stalls[p] = append(stalls[p], stall)
	}
	for _, p := range parts {
		who, whom, subject := "the broker", "", p.side
		if p.group != "" {
			whom, subject = " group "+p.group, subject+", group "+p.group
		}
		if p.broker != "" {
			who, subject = "broker "+p.broker, subject+", broker "+p.broker
		}
		did := who + " stalled"
		switch p.side {
		case stats.SendSide:
			did = who + " did not answer" + whom
		case stats.ReceiveSide:
			did = who + " did not deliver"
		}
		findStalls(s, stalls[p], subject, did)
	}
	s.Find("more-stalls", "", s.Unlisted, s.Unlisted)
}

// findStalls adds a finding for the stalls of one part.
func findStalls(s *stats.Summary, list []result.Stall, subject, did string) {
	var moments []string
	var longest time.Duration
	for _, stall := range list {
		start, length := microseconds(stall.Elapsed), microseconds(stall.Length)
		longest = max(longest, length)
		moments = append(moments, fmt.Sprintf("at %.3f s (%s) for %.3f s", start.Seconds(),
			time.UnixMicro(s.Start).Add(start).Format(time.TimeOnly), length.Seconds()))
	}
	when := words.First(moments, namedStalls, ", ")
	f := words.Find("stall", "", uint64(len(moments)), did, words.Times(len(moments)), words.Seconds(longest), when)
	f.Subject = subject
	f.Examples = moments[:min(len(moments), words.MaxExamples)]
	s.Findings = append(s.Findings, f)
}

func microseconds(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// observeBroker adds differences between the brokers' counts and the run's, errors in the broker's log, and events of
// its process. Other clients may have used the destination.
func observeBroker(s *stats.Summary) {
	if c := s.BrokerCount; c != nil {
		for _, d := range c.Destinations {
			for _, c := range []struct {
				kind     string
				compared *result.Compared
			}{{result.BrokerFindings + "added", d.Added}, {result.BrokerFindings + "acknowledged", d.Acknowledged}} {
				by, more := c.compared.Differs(), "more"
				if by < 0 {
					by, more = -by, "fewer"
				}
				s.Find(c.kind, d.Destination, uint64(by), by, more) //nolint:gosec // not negative
			}
		}
	}
	for _, side := range s.BrokerSide {
		if n := side.Whole.Errors; n != nil {
			s.Find("log-errors", "broker", *n, *n)
		}
		if n := side.Whole.Warnings; n != nil {
			s.Find("log-warnings", "broker", *n, *n)
		}
		for _, e := range side.Events {
			s.Find("process", "broker", 1, e.Text)
		}
	}
}
