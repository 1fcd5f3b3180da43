package engine

import (
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
		return s.destination.Kind == driver.Topic && !slices.ContainsFunc(s.consumers, func(c *consumer) bool { return c.spec.Durable })
	}) {
		add("a subscription of a topic that is not durable ends with its connection: it gets no message that is sent in an outage (see --durable)")
	}
	if v := s.Verification; v != nil && v.Total.AfterOutage > 0 {
		add("messages delivered again because an outage cut off their settlement: %d", v.Total.AfterOutage)
	}
}
