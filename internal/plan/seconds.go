package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
)

// part are the steps of a plan from one to before another.
type part struct {
	of       []Step
	from, to int
}

func (p part) steps() []Step { return p.of[p.from:p.to] }

// seconds refuses a metric that is a rate of full seconds if the durations of all steps are too short for it. A step
// without a duration may be long enough. Wanted says for what the metric is wanted.
func (v *validator) seconds(m *threshold.Metric, in part, wanted string) {
	if !m.OfSeconds() {
		return
	}
	most, least, receiving := -1, time.Duration(0), false
	for i := in.from; i < in.to; i++ {
		s := &in.of[i]
		if !slices.ContainsFunc(s.Groups, func(g *Group) bool { return g.tells(m) }) {
			continue
		}
		n := stats.FullSeconds(s.Warmup, s.Duration)
		without := m.Needs&threshold.Consumers != 0 && s.Warmup == 0 && !goesOn(in.of, i, m)
		if without {
			n = max(0, n-1)
		}
		if s.Duration <= 0 || n >= stats.EnoughSeconds {
			return
		}
		if n > most {
			most, receiving = n, without
			least = (s.Warmup + stats.EnoughSeconds*time.Second + time.Second - 1).Truncate(time.Second)
			if without {
				least += time.Second
			}
		}
	}
	if most < 0 {
		return
	}
	besides := ""
	if receiving {
		besides = ", as that of the first message does not count"
	}
	v.refuse(true, fmt.Sprintf("try --duration %v, or ask for %s.avg", least, m.Name[:strings.LastIndex(m.Name, ".")]),
		"%s: %s is a rate of at least %d full seconds, and there are %d%s", wanted, m.Name, stats.EnoughSeconds, most,
		besides)
}

// tells tells whether the metric has a part of its value from the group.
func (g *Group) tells(m *threshold.Metric) bool {
	role := m.Needs&threshold.Producers != 0 && g.Role.Produces() || m.Needs&threshold.Consumers != 0 && g.Role.Consumes()
	return role && (m.Group == "" || g.Name == m.Group)
}

// goesOn tells whether a group of step i may have received something before the load of that step, as it is in the step
// before, too.
func goesOn(steps []Step, i int, m *threshold.Metric) bool {
	return i > 0 && slices.ContainsFunc(steps[i].Groups, func(g *Group) bool {
		return g.tells(m) && slices.ContainsFunc(steps[i-1].Groups, func(o *Group) bool { return o.Name == g.Name })
	})
}
