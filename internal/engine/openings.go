package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/openings"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// openFirst opens a connection of a group of connections and closes it again, so that a broker that cannot be reached,
// or refuses the login, ends the run before its load. It is not counted.
func (r *run) openFirst(ctx context.Context, u *use) error {
	e := r.sendsTo(u.plan)
	c := r.openingsOf(u)
	_, err := openRetrying(ctx, r, e, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, openings.Probe(ctx, c)
	})
	return err
}

// openingsOf returns the load of a group of connections in the present step.
func (r *run) openingsOf(u *use) *openings.Config {
	e, process, shard := r.sendsTo(u.plan), processName(), r.plan.Shard
	c := &openings.Config{
		Driver: r.driver(e),
		Spec: func(n uint64) (driver.Connection, *driver.ProducerSpec, *driver.ConsumerSpec) {
			conn, producer, consumer := u.plan.ConnectionSpec(n, process)
			if producer != nil {
				producer.Origin = driver.ID{Run: r.id, Number: driver.Unnumbered}
			}
			return conn, producer, consumer
		},
		Within: func(ctx context.Context, open func(context.Context) error) error {
			_, err := openInTime(ctx, e, func(ctx context.Context) (struct{}, error) { return struct{}{}, open(ctx) })
			return err
		},
		Clock: r.clock, Phases: r.phases, Rec: u.openings, RunID: r.id, Precise: !r.plan.FakeClock,
		Schedule: u.plan.Rate.Schedule, Count: u.plan.Connections, Step: 1, AtOnce: u.plan.Pending(),
		Start: r.step.start, Until: r.step.plan.Duration, Hold: u.plan.Hold, Churn: u.plan.Churn,
		Messages: u.plan.Messages, Patience: min(e.ConnectTimeout, closeTimeout),
	}
	if !shard.IsZero() {
		c.First, c.Step = uint64(shard.Number-1), uint64(shard.Of) //nolint:gosec // from 1 to 1000
	}
	return c
}

// opens reports whether a group of the step opens connections as its load.
func (s *step) opens() bool {
	return slices.ContainsFunc(s.uses, func(u *use) bool { return u.openings != nil })
}

// closeOpenings closes the connections of groups, and returns a list of the failures.
func closeOpenings(ctx context.Context, list []*use) (left []string) {
	for _, u := range list {
		if u.opener == nil {
			continue
		}
		if n := u.opener.Close(ctx); n > 0 {
			left = append(left, fmt.Sprintf("%d connections: closing was not confirmed", n))
		}
	}
	return left
}

// findOpenings adds the connections of groups of connections that did not open, or were lost.
func findOpenings(s *stats.Summary) {
	t := s.Total.Values()
	failed := t[result.OpenRefused] + t[result.OpenTimedOut] + t[result.OpenUnmade]
	s.Find("not-opened", "", failed, failed, failed+t[result.Opened], t[result.OpenRefused], t[result.OpenTimedOut],
		t[result.OpenUnmade])
	s.Find("connections-lost", "", t[result.ConnectionsLost], t[result.ConnectionsLost], t[result.Opened])
	s.Find("openings-abandoned", "", t[result.OpenAbandoned], t[result.OpenAbandoned])
}

// openingLimit returns what bounded the rate at which the connections of the present step opened.
func (r *run) openingLimit(s *stats.Summary) *result.Limit {
	t := s.Total.Values()
	var blocked time.Duration
	rated := true
	for _, u := range r.step.uses {
		if u.opener != nil {
			blocked += u.opener.Blocked()
			rated = rated && u.plan.Rated()
		}
	}
	limit := func(bound string, share float64, values ...any) *result.Limit {
		return new(words.NewLimit(bound, share, values...))
	}
	switch failed := t[result.OpenRefused] + t[result.OpenTimedOut]; {
	case t[result.OpenUnmade] > 0:
		return limit("unmade", 1, t[result.OpenUnmade])
	case s.Tester.CPUShare() > result.MaxCPUShare:
		return limit("processors", 1, s.Tester.CPUShare()*float64(s.Tester.Cores), s.Tester.Cores)
	case failed > 0:
		return limit("refused", 1, failed, failed+t[result.Opened])
	case t[result.Opened] == 0:
		return limit("unknown", 0)
	case rated && blocked < s.Loaded/100 && t[result.OpenAbandoned] <= t[result.Opened]/10:
		return limit("reached", 1)
	}
	var sum, most int64
	stage := ""
	for _, kind := range []result.Kind{result.Connect, result.TLS, result.Login, result.Attach} {
		l := cmp.Or(s.Latencies[kind], &result.Latency{})
		if sum += l.Sum; l.Sum > most {
			most, stage = l.Sum, result.Kinds()[kind].Name
		}
	}
	if sum == 0 {
		return limit("unknown", 0)
	}
	share := float64(most) / float64(sum)
	return limit("opening", share, stage, words.Percent(share))
}

// sendsMessages returns whether connections of a group of connections send and receive messages.
func sendsMessages(g *plan.Group) (sends, receives bool) {
	if g.Role != plan.Connections || g.Messages == 0 {
		return false, false
	}
	return g.Attached()
}
