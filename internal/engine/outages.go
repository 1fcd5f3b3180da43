package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
)

// outageFigures returns how many messages ended without an answer because of outages, and how long the longest lasted.
func outageFigures(list []stats.Outage) (inDoubt uint64, longest time.Duration) {
	for i := range list {
		inDoubt += list[i].InDoubt
		longest = max(longest, list[i].Length())
	}
	return inDoubt, longest
}

// longestRecovery returns the longest time that the load took to recover from an outage, or for which it was watched in
// vain. It is false if there was an outage after which the load was not watched: it ended too soon, or nothing had come
// before.
func longestRecovery(list []stats.Outage) (longest time.Duration, ok bool) {
	for i := range list {
		switch o := &list[i]; {
		case o.Recovered > 0:
			longest = max(longest, o.Recovered)
		case o.Watched > 0:
			longest = max(longest, o.Length()+o.Watched)
		default:
			return 0, false
		}
	}
	return longest, true
}

// enoughWatched is how long a load must go on after an outage to tell that it has not recovered.
const enoughWatched = 10 * time.Second

// notRecovered says from which outages the load did not recover although it went on long enough and its rate was not to
// change.
func (r *run) notRecovered(s *stats.Summary, add func(string, ...any)) {
	steady := !slices.ContainsFunc(r.groups, func(g *group) bool {
		_, constant := g.plan.Rate.Constant()
		return !constant && !g.plan.Rate.IsZero()
	})
	for i := range s.Outages {
		if o := &s.Outages[i]; steady && o.Recovered == 0 && o.Watched >= enoughWatched {
			var before []string
			if o.Before.Completed > 0 {
				before = append(before, fmt.Sprintf("%.0f completed", o.Before.Completed))
			}
			if o.Before.Received > 0 {
				before = append(before, fmt.Sprintf("%.0f received", o.Before.Received))
			}
			add("the load did not recover from the outage of %s: in the %s after it there were no three seconds at 90%% of "+
				"the rates before it (%s per second)",
				o.Start.Format("15:04:05.000"), o.Watched.Round(time.Second), strings.Join(before, ", "))
		}
	}
}

// lostClass tells whether failures of a class are those of lost connections.
func lostClass(class driver.Class) bool {
	return class == driver.ClassConnectionLost || class == driver.ClassClosedByBroker || class == driver.ClassTimeout
}

// notBack says which outages were not over when the run ended.
func notBack(s *stats.Summary, add func(string, ...any)) {
	for i := range s.Outages {
		if o := &s.Outages[i]; len(o.NotBack) > 0 {
			const named = 5
			names := strings.Join(o.NotBack[:min(len(o.NotBack), named)], ", ")
			if more := len(o.NotBack) - named; more > 0 {
				names += ", ..."
			}
			add("the outage of %s was not over when the run ended: %d of %d workers were not connected again (%s)",
				o.Start.Format("15:04:05.000"), len(o.NotBack), len(o.Workers), names)
		}
	}
}

// aboutOutages says what outages mean for the other figures.
func (r *run) aboutOutages(s *stats.Summary, add func(string, ...any)) {
	inDoubt, _ := outageFigures(s.Outages)
	if inDoubt > 0 {
		add("messages in doubt after outages, which the broker may have or not: %d; they are counted as unconfirmed", inDoubt)
	}
	if s.Missing > 0 && len(s.Outages) > 0 && slices.ContainsFunc(r.subs, func(s *subscription) bool {
		return s.destination.Kind == driver.Topic && !slices.ContainsFunc(s.consumers,
			func(c *consumer) bool { return c.spec.Durable })
	}) {
		add("a subscription of a topic that is not durable ends with its connection: it gets no message that is sent in an " +
			"outage (see --durable)")
	}
	if v := s.Verification; v != nil && v.Total.AfterOutage > 0 {
		add("messages delivered again because an outage cut off their settlement: %d", v.Total.AfterOutage)
	}
}
