package page

import (
	"fmt"
	"math"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// sets returns the groups as sets of repeats.
func (p *Page) sets() []compare.Set {
	sets := make([]compare.Set, 0, len(p.Groups))
	for i := range p.Groups {
		s := compare.Set{Name: p.Groups[i].Name}
		if dir := p.Groups[i].search; dir != "" {
			if of, err := compare.Read(dir, nil); err == nil {
				of.Name = s.Name
				sets = append(sets, of)
				continue
			}
		}
		for _, r := range p.Groups[i].Runs {
			s.Repeats = append(s.Repeats, compare.Repeats(r.figures())...)
		}
		sets = append(sets, s)
	}
	return sets
}

// figures returns the result. While a run goes on, its rates are those of its rows.
func (r *Run) figures() *result.Result {
	w := &r.tally.whole
	if r.Result.Figures != nil || w.length <= 0 {
		return r.Result
	}
	c := *r.Result
	c.Figures = &result.Figures{Averages: w.averages(r)}
	return &c
}

// verdicts has a row for each run.
func verdicts(runs []*Run) Table {
	t := Table{Title: "Verdicts", Head: []string{"run", "verdict", "limit", "findings"}, Words: true}
	for _, r := range runs {
		_, verdict := r.verdict()
		limit := "-"
		if l := r.Result.Limit; l != nil {
			limit = l.Kind + ": " + l.Text
		}
		findings := "none"
		if n := len(r.Result.Findings); n > 0 {
			findings = fmt.Sprintf("%d, the first: %s", n, r.Result.Findings[0].Text)
		}
		t.Rows = append(t.Rows, []string{r.Name, verdict, limit, findings})
	}
	return t
}

// comparison compares the sets with the first, or returns the noise of the repeats of a single set.
func (p *Page) comparison() (t Table, summaries []string) {
	var metrics []compare.Metric
	for _, name := range compare.Usual() {
		if m, err := compare.Find(name); err == nil {
			metrics = append(metrics, m)
		}
	}
	all := compare.New(p.sets(), metrics)
	rows := all.Table(inUnit)
	t = Table{Title: "Side by side", Head: rows[0], Rows: rows[1:]}
	if len(all.Sets) == 1 {
		t.Title = "Noise of the repeats"
	}
	t.Note = "The median of the repeats, with how far its 95% confidence interval reaches; of less than six repeats, " +
		"how far they reach themselves."
	for _, note := range all.Notes() {
		summaries = append(summaries, sentence(note)+".")
	}
	for i := 1; i < len(all.Sets); i++ {
		summaries = append(summaries, all.Summary(i)+".")
	}
	return t, summaries
}

// inUnit writes a rate or a latency as the other tables do.
func inUnit(unit threshold.Unit, v float64) string {
	if unit == threshold.Time {
		return span(int64(math.Round(v)))
	}
	return number(v) + "/s"
}

// differences returns the differences of plans, labels, versions and machines.
func (p *Page) differences() Table {
	t := Table{Title: "What differs", Head: []string{""}, Words: true}
	sets := p.sets()
	for i := range sets {
		t.Head = append(t.Head, sets[i].Name)
	}
	for _, d := range compare.New(sets, nil).Differences {
		t.Rows = append(t.Rows, append([]string{d.Kind + " " + d.Name}, d.Values...))
	}
	return t
}
