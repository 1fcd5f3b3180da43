package stats

import (
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Stages times how the workers of a group are opened and closed. It is safe for concurrent use.
type Stages struct{ ledgers }

// Opened records that a worker is usable, and how long its opening took.
func (o *Stages) Opened(took time.Duration) { o.Record(Measure, result.Open, took) }

// Stage implements [driver.Stages].
func (o *Stages) Stage(s driver.Stage, took time.Duration) { o.Record(Measure, KindOf(s), took) }

// SetStages sets the openings of a group; of all workers, if its name is empty. Call it after SetGroups.
func (c *Collector) SetStages(group string, o *Stages) {
	for _, g := range c.groups {
		if g.run.Name == group {
			g.stages = o
			return
		}
	}
	c.stages = append(c.stages, o)
}

// addStages moves the times of openings to the latencies. They belong to no phase, and the summary leaves the
// intervals of a warm-up out: they wait until it is over.
func (c *Collector) addStages(counts *[parts]Counters, latencies [parts]*result.Latencies) {
	if latencies[Measure] == nil {
		return
	}
	for _, o := range c.stages {
		o.collect(counts, latencies)
	}
	for _, g := range c.groups {
		if g.stages != nil {
			g.stages.collect(&g.now, [parts]*result.Latencies{Measure: &g.fresh[Measure]})
		}
	}
}
