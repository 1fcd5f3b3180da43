// Package compare compares results of runs: the differences of their figures, and whether these are more than chance.
//
// # Method
//
// Each side is a set of repeats of a run. A figure of a set is the median of its repeats, with a confidence interval of
// 95%. Whether two sets differ is decided by the Mann-Whitney U test, which assumes nothing of how the figures are
// distributed; as several figures are tested at once, the level of 5% is shared among them after Holm, so that of sets
// of the same broker one pair in twenty at most shows any difference at all. With few repeats no difference, however
// large, can reach that level: then it says so, instead of "no difference".
package compare

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/perfmq/perfmq/internal/nearest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

const (
	level      = 0.05 // of all figures of a pair together
	confidence = 0.95
)

// The verdicts of a comparison.
const (
	Same    = "no difference"
	Better  = "better"
	Worse   = "worse"
	TooFew  = "too few repeats to tell"
	Bound   = "inconclusive: perfmq was the limit, so this rate is a lower bound"
	Unknown = "" // a side does not have the figure, or it is the first set, which the others are held against
)

// Cell is a figure of a set.
type Cell struct {
	// Values are the figures of the repeats that have one.
	Values []float64
	// Median, and the interval in which the true one lies with a confidence of 95%. With few repeats that is infinitely
	// wide: Low and High are then the lowest and highest value.
	Median, Low, High float64
	// Change is the change of the median from the first set's, as a fraction of that.
	Change float64
	// ChangeLow and ChangeHigh bound the change with a confidence of 95%, by Hodges and Lehmann. Of few repeats they
	// are the smallest and largest change of any pair of repeats.
	ChangeLow, ChangeHigh float64
	// P is the probability of a difference like this, or larger, between sets of the same broker.
	P float64
	// AtLeast: perfmq was the limit of a run or a search of the set, so that this rate is a lower bound.
	AtLeast bool
	Verdict string
}

// Row is a figure of all sets; Cells has one for each.
type Row struct {
	Metric threshold.Metric
	Cells  []Cell
}

// rowsOf compares each of the sets with the first one by those metrics.
func rowsOf(sets []Set, metrics []threshold.Metric) []Row {
	var rows []Row
	values := make([][]map[string]float64, len(sets)) // of each repeat
	for i := range sets {
		for _, r := range sets[i].Repeats {
			values[i] = append(values[i], r.Metrics())
		}
	}
	for _, m := range metrics {
		row := Row{Metric: m}
		known := false
		for i := range sets {
			c := newCell(&sets[i], values[i], &m)
			known = known || len(c.Values) > 0
			row.Cells = append(row.Cells, c)
		}
		if known {
			rows = append(rows, row)
		}
	}
	for i := 1; i < len(sets); i++ {
		judge(rows, i)
	}
	return rows
}

func newCell(s *Set, values []map[string]float64, m *threshold.Metric) (c Cell) {
	for i, r := range s.Repeats {
		if v, ok := values[i][m.Name]; ok {
			c.Values = append(c.Values, v)
			c.AtLeast = c.AtLeast || m.Unit == threshold.PerSecond && r.LowerBound()
		}
	}
	if len(c.Values) == 0 {
		return c
	}
	of := benchmath.AssumeNothing.Summary(sample(c.Values), confidence)
	c.Median, c.Low, c.High = of.Center, of.Lo, of.Hi
	if math.IsInf(c.Low, 0) || math.IsInf(c.High, 0) {
		c.Low, c.High = slices.Min(c.Values), slices.Max(c.Values)
	}
	return c
}

func sample(values []float64) *benchmath.Sample {
	return benchmath.NewSample(slices.Clone(values), &benchmath.Thresholds{CompareAlpha: level})
}

// judge fills in the verdicts of set i, against the first.
func judge(rows []Row, i int) {
	var tested []*Row
	for r := range rows {
		a, c := &rows[r].Cells[0], &rows[r].Cells[i]
		if len(a.Values) == 0 || len(c.Values) == 0 {
			continue
		}
		tested = append(tested, &rows[r])
		c.P = benchmath.AssumeNothing.Compare(sample(a.Values), sample(c.Values)).P
		if a.Median != 0 {
			c.Change = (c.Median - a.Median) / a.Median
		}
		c.ChangeLow, c.ChangeHigh = changes(a.Values, c.Values)
	}
	slices.SortStableFunc(tested, func(a, b *Row) int { return cmp.Compare(a.Cells[i].P, b.Cells[i].P) })
	rejected := true // Holm: the first that is not ends it
	for k, row := range tested {
		a, c := &row.Cells[0], &row.Cells[i]
		rejected = rejected && c.P <= level/float64(len(tested)-k)
		switch {
		case least(len(a.Values), len(c.Values)) > level/float64(len(tested)):
			c.Verdict = TooFew
		case !rejected || c.Median == a.Median:
			c.Verdict = Same
			if a.AtLeast || c.AtLeast {
				c.Verdict = Bound
			}
		case c.Median > a.Median && a.AtLeast, c.Median < a.Median && c.AtLeast: // the other may be as high
			c.Verdict = Bound
		case c.Median > a.Median == (row.Metric.Unit == threshold.PerSecond):
			c.Verdict = Better
		default:
			c.Verdict = Worse
		}
	}
}

// changes returns the interval of the change between any two repeats; 0 without a pair.
func changes(from, to []float64) (low, high float64) {
	var pairs []float64
	for _, a := range from {
		for _, b := range to {
			if a != 0 {
				pairs = append(pairs, (b-a)/a)
			}
		}
	}
	if len(pairs) == 0 {
		return 0, 0
	}
	slices.Sort(pairs)
	n := float64(len(pairs))
	const deviations = 1.96 // of U, which is about normal, for 95%
	rank := n/2 - deviations*math.Sqrt(n*float64(len(from)+len(to)+1)/12)
	k := max(0, int(rank)-1)
	return pairs[k], pairs[len(pairs)-1-k]
}

// least is the smallest probability that the test can come to, with so many values: that all of one side are above all
// of the other.
func least(n, m int) float64 {
	ways := 1.0 // n+m over n
	for k := 1; k <= n; k++ {
		ways *= float64(m+k) / float64(k)
	}
	return 2 / ways
}

// Enough is the least number of repeats of each set with which a difference can be told by that many metrics.
func Enough(metrics int) int {
	n := 2
	for least(n, n) > level/float64(max(1, metrics)) {
		n++
	}
	return n
}

// String returns the change as text: +12.3%.
func (c *Cell) String() string { return fmt.Sprintf("%+.1f%%", 100*c.Change) }

// Limit is a change that a set must not show: ack.p99 +10%.
type Limit struct {
	Text   string
	Metric threshold.Metric
	// Change is the fraction: 0.1 fails a figure that is more than 10% above the first set's, -0.05 one that is more than
	// 5% below.
	Change float64
}

var limitText = regexp.MustCompile(`^\s*(\S+)\s+([+-])\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*$`)

// ParseLimit reads a limit such as "ack.p99 +10%".
func ParseLimit(text string) (Limit, error) {
	parts := limitText.FindStringSubmatch(text)
	if parts == nil {
		return Limit{}, fmt.Errorf("%q must be a metric and a change, such as 'ack.p99 +10%%'", text)
	}
	m, err := Find(parts[1])
	if err != nil {
		return Limit{}, err
	}
	change, _ := strconv.ParseFloat(parts[3], 64) // infinite if it is too large
	if parts[2] == "-" {
		change = -change
	}
	return Limit{Text: strings.TrimSpace(text), Metric: m, Change: change / 100}, nil
}

// exceeded reports whether a value changed by more than the limit from the first set's, and not by chance; or why that
// is unknown.
func (l *Limit) exceeded(first, c *Cell) (exceeded bool, unknown string) {
	exceeded = l.Change < 0 && c.Change < l.Change || l.Change >= 0 && c.Change > l.Change
	switch lower := c.AtLeast || first.AtLeast; {
	case c.Verdict == TooFew:
		return false, fmt.Sprintf("%d and %d repeats are too few", len(first.Values), len(c.Values))
	case c.Verdict == Unknown:
		return false, "a side has no value"
	case c.Verdict == Same:
		return false, ""
	case c.Verdict == Bound, lower && !exceeded && c.Change*l.Change > 0: // the true change is larger
		return false, Bound
	}
	return exceeded, ""
}

// Usual returns the metrics that are compared if none are named.
func Usual() []threshold.Metric { return metricsOf(record.Usual()...) }

func metricsOf(names ...string) (list []threshold.Metric) {
	for _, name := range names {
		if m, _ := threshold.Find(name); m.Unit != threshold.Count { // a count is neither fast nor slow
			list = append(list, m)
		}
	}
	return list
}

// Names returns the names of all metrics that can be compared: average rates, latencies, and the use of the broker's
// process.
func Names() []string {
	names := []string{"sent.avg", "completed.avg", "received.avg"}
	for _, kind := range result.KindNames() {
		for _, s := range result.Statistics() {
			names = append(names, kind+"."+s.Name)
		}
	}
	return append(names, "broker.cpu", "broker.memory")
}

// Find returns the metric of a name: of a rate more is better, of others less.
func Find(name string) (threshold.Metric, error) {
	names := Names()
	i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	if i >= 0 {
		m, _ := threshold.Find(names[i])
		return m, nil
	}
	return threshold.Metric{}, fmt.Errorf("unknown metric %q; %s", name,
		nearest.Hint(name, names, "%s", "known are "+strings.Join(names, ", ")))
}
