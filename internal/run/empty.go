package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/pkg/driver"
)

// emptyIdle is for how long a queue must give nothing to be empty.
const emptyIdle = 2 * time.Second

// queuesOf returns the queues of a plan, each as a group with one consumer of each of them.
func queuesOf(p *plan.Plan) (groups []*plan.Group) {
	seen := map[string]bool{}
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			for _, e := range g.Sides() {
				q := &plan.Group{Name: fmt.Sprintf("empty-%d", len(groups)), Role: plan.Consumer, Consumers: 1, Consumer: *e}
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
func HowEmptied(p *plan.Plan, embedded bool) (list []string) {
	if embedded {
		return []string{"an embedded broker is new"}
	}
	for _, q := range queuesOf(p) {
		how := "%s is emptied by a consumer that reads until it is idle"
		if q.Consumer.Factory.Capabilities.Administers {
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

// Empty takes the messages off all queues of a plan: the broker does it where its driver can ask it to, or a consumer does that reads
// until nothing has come for a while. It ends with ctx.
func Empty(ctx context.Context, p *plan.Plan) error {
	var errs []error
	for _, q := range queuesOf(p) {
		errs = append(errs, empty(ctx, p, q))
	}
	return errors.Join(errs...)
}

func empty(ctx context.Context, p *plan.Plan, q *plan.Group) (err error) {
	e := &q.Consumer
	if e.Factory.Capabilities.Administers {
		d, err := e.Factory.Open(ctx, e.Open)
		if err != nil {
			return fmt.Errorf("purge: %w", err)
		}
		defer func() { err = errors.Join(err, d.Close(ctx)) }()
		if admin, ok := d.(driver.Admin); ok {
			for _, dest := range q.Destinations {
				if _, err := admin.Purge(ctx, dest); err != nil {
					return err
				}
			}
			return nil
		}
	}
	reader := &plan.Plan{
		Threads: p.Threads, DrainTimeout: p.DrainTimeout, WaitForBroker: p.WaitForBroker, StallThreshold: 0,
		Steps: []plan.Step{{Name: "empty", Idle: emptyIdle, Groups: []*plan.Group{q}}},
	}
	s, err := engine.Run(ctx, make(chan struct{}), reader, report.NewFan())
	if err == nil && s.Err != nil {
		err = s.Err
	}
	if err != nil {
		return fmt.Errorf("empty the queues: %w", err)
	}
	return nil
}

// The options of RocketMQ by which consumers begin a topic anew.
const (
	optionGroup = "group"
	optionFrom  = "from"
)

// CanReread tells whether consumers can receive again what others have received: where a broker keeps it, and a group of consumers has
// a place of its own.
func CanReread(e *plan.Endpoint) bool {
	var known []string
	for _, o := range driver.Describe(e.Open.Options) {
		known = append(known, o.Name)
	}
	return slices.Contains(known, optionGroup) && slices.Contains(known, optionFrom)
}

// Reread lets the consumers of a plan begin at the first message, in a group of that name.
func Reread(p *plan.Plan, group string) error {
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			if !g.Role.Consumes() || !CanReread(&g.Consumer) {
				continue
			}
			if err := driver.SetOptions(g.Consumer.Open.Options, []string{optionGroup + "=" + group, optionFrom + "=first"}); err != nil {
				return err
			}
		}
	}
	return nil
}
