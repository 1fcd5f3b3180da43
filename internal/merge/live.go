package merge

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// Live joins the rows of shards while their folders grow, and judges thresholds by them.
type Live struct {
	Tails  result.Tails
	Page   Page // nil for none
	Broken bool // a threshold ends the run

	plan  planned
	begun bool
	sums  map[part]*tally
}

// Page shows the joined rows, with the run so far.
type Page interface {
	Start(head result.Head) error
	Look(s *stats.Snapshot)
	Row(row result.Row) error
}

// part is a step or, without a name, all of them, and a group in it or all of them.
type part struct{ step, group string }

// tally is what has come of a part.
type tally struct {
	sum   result.Result
	rates stats.Rates
}

// Turn takes the rows that have come. It returns why the run must end, or "": one of the thresholds failed, or a shard
// sent no rows.
func (l *Live) Turn(aborts []threshold.Abort, ended func(shard int) bool) string {
	var came bool
	err := l.Tails.Next(ended, func(row *result.Row) {
		l.begin()
		if stepNamed(l.plan.Steps, row.Step) < 0 {
			return // a peer may send anything
		}
		l.add(row)
		came = true
		if l.Page != nil {
			l.Page.Look(&stats.Snapshot{Row: *row, SoFar: l.soFar()})
			_ = l.Page.Row(*row)
		}
	})
	if err != nil {
		return "what a shard sent is no result: " + err.Error()
	}
	if !came {
		return ""
	}
	for _, a := range aborts {
		t, err := threshold.Parse(a.Threshold)
		t.Abort = err == nil // a peer may send anything
		broken := threshold.Broken([]threshold.Threshold{t}, l.targets(a.Step), l.values(a.Step, t.Metric.Group))
		if broken != nil {
			l.Broken = true
			return "threshold failed: " + broken.String()
		}
	}
	return ""
}

// begin takes the head of the first shard, without what is of that alone.
func (l *Live) begin() {
	if l.begun {
		return
	}
	l.begun, l.sums = true, map[part]*tally{}
	i := slices.IndexFunc(l.Tails, func(t *result.Tail) bool { return t.Head != nil })
	head := *l.Tails[i].Head
	if c := head.Clock; c != nil {
		head.Start -= int64(c.Ahead)
	}
	head.Shard, head.Clock = nil, nil
	_ = json.Unmarshal(head.Plan, &l.plan) // it was read before, and the merge says what is wrong
	if l.Page != nil {
		_ = l.Page.Start(head)
	}
}

// add adds a row to the sums of its step and its groups, and to those of the run.
func (l *Live) add(row *result.Row) {
	planned := &l.plan.Steps[stepNamed(l.plan.Steps, row.Step)]
	for _, step := range []string{"", row.Step} {
		l.addTo(part{step, ""}, row)
		for i := range row.Groups {
			g := &row.Groups[i]
			if planned.has(g.Name) == 0 {
				continue
			}
			of := result.Row{
				Step: row.Step, Phase: row.Phase, Time: row.Time, Elapsed: row.Elapsed, Length: row.Length,
				Counts: g.Counts,
			}
			if g.Latencies != nil {
				of.Latencies = *g.Latencies
			}
			l.addTo(part{step, g.Name}, &of)
		}
	}
}

func stepNamed(steps []plannedStep, name string) int {
	return slices.IndexFunc(steps, func(s plannedStep) bool { return s.Name == name })
}

func (l *Live) addTo(p part, row *result.Row) {
	t := l.sums[p]
	if t == nil {
		t = &tally{sum: *result.NewSum(result.Head{Start: row.Time - row.Length})}
		t.sum.Measured = &result.Counts{}
		l.sums[p] = t
	}
	t.sum.AddRow(row)
	if row.Phase != result.Warmup { // with messages due before that end later
		t.sum.Measured.Add(&row.Counts)
	}
	t.rates.Add(row, time.Duration(row.Length)*time.Microsecond, 0)
	if row.Verified != nil {
		t.sum.Verification = &result.Verification{Total: row.Verified.Verified()}
	}
}

// result returns a part so far, with its rates.
func (l *Live) result(p part) *result.Result {
	t := l.sums[p]
	if t == nil {
		return &result.Result{}
	}
	r := t.sum
	r.Figures = t.rates.FiguresOf(r.Total.Producers != nil, r.Total.Consumers != nil)
	return &r
}

// values returns the metrics of a step and a group in it. Stalls and outages are known at the end.
func (l *Live) values(step, group string) map[string]float64 {
	all := l.result(part{step, ""}).Metrics()
	if group == "" {
		return all
	}
	of := part{step, group}
	if !slices.ContainsFunc(l.plan.Steps, func(s plannedStep) bool { return len(s.Groups) > 1 }) {
		of.group = "" // rows do not list the only group
	}
	for name, v := range l.result(of).Metrics() {
		all[threshold.GroupPrefix+group+"."+name] = v
	}
	return all
}

// targets returns the planned rates of a step, or of a run of one step, on average so far.
func (l *Live) targets(step string) func(group string) float64 {
	steps := l.plan.Steps
	if i := stepNamed(steps, step); i >= 0 {
		steps = steps[i : i+1]
	}
	return func(group string) float64 {
		if len(steps) != 1 {
			return 0
		}
		return steps[0].target(l.result(part{steps[0].Name, ""}).Figures, group)
	}
}

// soFar returns the run so far with its thresholds as they stand.
func (l *Live) soFar() *stats.Summary {
	s := &stats.Summary{Result: *l.result(part{})}
	judge := func(step string, texts []string) {
		var list []threshold.Threshold
		values := map[string]float64{}
		for _, text := range texts {
			if t, err := threshold.Parse(text); err == nil { // the merge says it
				list = append(list, t)
				maps.Copy(values, l.values(step, t.Metric.Group))
			}
		}
		for _, t := range threshold.Judge(list, l.targets(step), values) {
			t.Step = step
			s.Thresholds = append(s.Thresholds, t)
		}
	}
	judge("", l.plan.Thresholds)
	for i := range l.plan.Steps {
		judge(l.plan.Steps[i].Name, l.plan.Steps[i].Thresholds)
	}
	return s
}
