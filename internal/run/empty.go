package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	// emptyIdle is for how long a queue must give nothing to be empty.
	emptyIdle = 2 * time.Second
	// emptyLimit is how long emptying may last: a queue that something still sends to is never empty.
	emptyLimit = 10 * time.Minute
)

// ErrStopped says that a signal came before all queues were empty.
var ErrStopped = errors.New("interrupted while the queues were emptied")

// queuesOf returns the queues of a plan, each as a group with one consumer of each of them.
func queuesOf(p *plan.Plan) (groups []*plan.Group) {
	seen := map[string]bool{}
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			for _, e := range g.Sides() {
				q := &plan.Group{Name: fmt.Sprintf("empty-%d", len(groups)), Role: plan.Consumer, Consumers: 1, ConsumerBroker: e}
				for _, d := range g.Destinations {
					key := e.Site + " " + d.String()
					if d.Kind == driver.Queue && !seen[key] {
						seen[key] = true
						q.Destinations = append(q.Destinations, d)
					}
				}
				if len(q.Destinations) > 0 {
					groups = append(groups, q)
				}
			}
		}
	}
	return groups
}

// HowEmptied says how [Empty] empties the queues of a plan.
func HowEmptied(p *plan.Plan, drivers plan.Drivers, embedded bool) (list []string) {
	if embedded {
		return []string{"an embedded broker is new"}
	}
	for _, q := range queuesOf(p) {
		how := "%s is emptied by a consumer that reads until it is idle"
		if drivers(q.ConsumerBroker).Capabilities.Administers {
			how = "%s is purged"
		}
		for _, d := range q.Destinations {
			if text := fmt.Sprintf(how, d); !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// Empty takes the messages off all queues of a plan: the broker does it where its driver can ask it to, or a consumer
// does that reads until nothing has come for a while. It returns how many messages it took. A signal ends it with
// [ErrStopped], as soon as the work in progress has ended or [lastGrace] is over; after [emptyLimit] it fails.
func Empty(signals <-chan os.Signal, p *plan.Plan, drivers plan.Drivers) (removed uint64, err error) {
	stopped, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(stopped, emptyLimit, driver.Errorf(driver.ClassTimeout, "empty the queues",
		"does something else send to them? End it, or use between-runs: fresh", "they are not empty after %v", emptyLimit))
	defer cancel()
	type outcome struct {
		removed uint64
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		n, err := emptyAll(ctx, p, drivers)
		done <- outcome{n, err}
	}()
	ended := ctx.Done()
	var leave <-chan time.Time
	for {
		select {
		case of := <-done:
			if cause := context.Cause(ctx); cause != nil && (of.err != nil || errors.Is(cause, ErrStopped)) {
				of.err = cause
			}
			return of.removed, of.err
		case <-signals:
			stop(ErrStopped)
		case <-ended:
			ended, leave = nil, time.After(lastGrace)
		case <-leave:
			return 0, context.Cause(ctx)
		}
	}
}

// emptyAll empties the queues of a plan, one group after the other.
func emptyAll(ctx context.Context, p *plan.Plan, drivers plan.Drivers) (removed uint64, err error) {
	var errs []error
	for _, q := range queuesOf(p) {
		n, err := empty(ctx, p, drivers, q)
		removed += n
		errs = append(errs, err)
	}
	return removed, errors.Join(errs...)
}

// empty empties the queues of a group.
func empty(ctx context.Context, p *plan.Plan, drivers plan.Drivers, q *plan.Group) (removed uint64, err error) {
	if f := drivers(q.ConsumerBroker); f.Capabilities.Administers {
		d, err := f.Open(ctx, q.ConsumerBroker.OpenOptions)
		if err != nil {
			return 0, fmt.Errorf("purge: %w", err)
		}
		if admin, ok := d.(driver.Admin); ok {
			for _, dest := range q.Destinations {
				n, purging := admin.Purge(ctx, dest)
				removed += n
				if err = purging; err != nil {
					break
				}
			}
			return removed, errors.Join(err, d.Close(ctx))
		}
		if err := d.Close(ctx); err != nil {
			return 0, fmt.Errorf("purge: %w", err)
		}
	}
	reader := &plan.Plan{
		Threads: p.Threads, DrainTimeout: p.DrainTimeout, WaitForBroker: p.WaitForBroker, StallThreshold: 0,
		Steps: []plan.Step{{Name: "empty", Idle: emptyIdle, Groups: []*plan.Group{q}}},
	}
	s, err := engine.Run(ctx, make(chan struct{}), &engine.Config{Plan: reader, Endpoints: engine.Reach(reader, drivers)},
		report.NewFan())
	if s != nil {
		removed = s.Total[result.Received] + s.Total[result.Foreign]
		err = errors.Join(err, s.Err)
	}
	if err == nil {
		err = ctx.Err() // the engine ends well when it is told to end
	}
	if err != nil {
		return removed, fmt.Errorf("empty the queues: %w", err)
	}
	return removed, nil
}
