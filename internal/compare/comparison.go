package compare

import (
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// Options select sets and metrics of a comparison.
type Options struct {
	Metrics []string            // names; none for the usual metrics
	FailIf  []string            // limits; their metrics are compared as well
	Unlike  bool                // runs of different plans are compared as well
	Clean   func(string) string // makes texts of results fit to print
}

// Comparison holds sets against the first of them.
type Comparison struct {
	Sets        []Set
	Rows        []Row // a metric that no result has is left out
	Differences []Difference

	limits []Limit
}

// New compares sets. It sifts them.
func New(sets []Set, metrics []threshold.Metric) *Comparison {
	c := &Comparison{Sets: sets, Differences: differences(sets)}
	for i := range sets {
		sets[i].Sift()
	}
	c.Rows = rowsOf(sets, metrics)
	return c
}

// Compare reads the sets in folders and compares them. It returns all mistakes.
func Compare(paths []string, o Options) (*Comparison, []error) {
	metrics, limits, errs := o.parse()
	sets, more := read(paths)
	if errs = append(errs, more...); len(errs) > 0 {
		return nil, errs
	}
	c := New(safetext.Each(sets, o.Clean), metrics)
	c.Differences, c.limits = safetext.Each(c.Differences, o.Clean), limits
	if unlike := Unlike(c.Differences); len(unlike) > 0 && !o.Unlike {
		return nil, []error{refused(unlike)}
	}
	if len(c.Rows) == 0 && len(o.Metrics) == 0 { // the runs open connections alone
		c.Rows = rowsOf(c.Sets, metricsOf("open.p50", "open.p99", "login.p99"))
	}
	if len(c.Rows) == 0 {
		return nil, []error{&plan.Mistake{Text: "the results have none of these figures", Hint: "--metric names others"}}
	}
	return c, nil
}

// parse returns the metrics, including the metrics of the limits.
func (o *Options) parse() (metrics []threshold.Metric, limits []Limit, errs []error) {
	if len(o.Metrics) == 0 {
		metrics = Usual()
	}
	add := func(flag string, m threshold.Metric, err error) {
		if err != nil {
			errs = append(errs, &plan.Mistake{Text: flag + ": " + err.Error(), Hint: "perfmq compare --help shows examples"})
		} else if !slices.Contains(metrics, m) {
			metrics = append(metrics, m)
		}
	}
	for _, name := range o.Metrics {
		m, err := Find(name)
		add("--metric", m, err)
	}
	for _, text := range o.FailIf {
		l, err := ParseLimit(text)
		add("--fail-if", l.Metric, err)
		limits = append(limits, l)
	}
	return metrics, limits, errs
}

// read reads the sets.
func read(paths []string) (sets []Set, errs []error) {
	if len(paths) < 2 {
		return nil, []error{&plan.Mistake{Text: "at least two results are needed", Hint: "perfmq compare BEFORE AFTER"}}
	}
	for i, name := range NamesOf(paths) {
		s, err := Read(paths[i])
		if err != nil {
			errs = append(errs, err)
		}
		s.Name = name
		sets = append(sets, s)
	}
	return sets, errs
}

// maxRefused is the maximum number of differences in the error about unlike plans; --unlike prints all.
const maxRefused = 5

// refused returns the error about the differences of plans.
func refused(unlike []Difference) error {
	var list []string
	for _, d := range unlike {
		list = append(list, d.Name+": "+d.joined())
	}
	return plan.Wrong("compare runs of one plan, or add --unlike, which lists what differs", "the plans differ in %s",
		words.First(list, maxRefused, "; "))
}

// Notes returns what to know of the sets.
func (c *Comparison) Notes() (list []string) {
	if first := bounded(c.Sets); first != "" {
		list = append(list, first)
	}
	return append(list, notes(c.Sets)...)
}

// Judge holds the comparison against its limits. It returns which are exceeded or unjudged, and the exit status.
func (c *Comparison) Judge() (errs []error, status int) {
	found := func(as int, hint, format string, args ...any) {
		errs = append(errs, plan.Wrong(hint, "--fail-if"+format, args...))
		status = result.Graver(status, as)
	}
	for i := 1; i < len(c.Sets) && len(c.limits) > 0; i++ {
		if s := &c.Sets[i]; len(s.Failed) > 0 {
			found(result.StatusFailed, "", ": %s: %d of the runs failed, whatever their figures: %s", s.Name, len(s.Failed),
				Failed(s.Failed[0]))
		}
	}
	for _, l := range c.limits {
		at := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Metric.Name == l.Metric.Name })
		if at < 0 {
			found(result.StatusUsage, "name a metric of these runs", " %s: no result has that figure", l.Text)
			continue
		}
		cells := c.Rows[at].Cells
		for i := 1; i < len(cells); i++ {
			exceeded, unknown := l.exceeded(&cells[0], &cells[i])
			hint := fmt.Sprintf("%d repeats of each are enough, if perfmq is not the limit", Enough(len(c.Rows)))
			switch {
			case unknown != "":
				found(result.StatusUsage, hint, " %s: it cannot be told: %s", l.Text, unknown)
			case exceeded:
				found(result.StatusThreshold, "", " %s: %s changed by %s", l.Text, c.Sets[i].Name, cells[i].String())
			}
		}
	}
	return errs, status
}
