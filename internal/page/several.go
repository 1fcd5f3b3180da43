package page

import (
	"fmt"
	"math"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

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
		t.add(r.Name, verdict, limit, findings)
	}
	return t
}

// comparison has a table of the sets against the first, or of the noise of the repeats of a single set, one of the
// differences of plans, labels, versions and machines, and sentences about them.
func (p *Page) comparison() (tables []Table, summaries []string) {
	var sets []compare.Set
	for _, r := range p.Runs {
		if r.group == len(sets) {
			sets = append(sets, compare.Set{Name: r.of})
		}
		sets[r.group].Repeats = append(sets[r.group].Repeats, r.Result)
	}
	all := compare.New(sets, compare.Usual())
	rows := all.Table(inUnit)
	t := Table{
		Title: "Side by side", Head: rows[0], Rows: rows[1:],
		Note: "Median of the repeats, with the distance to its 95% confidence limits; of fewer than six repeats, to " +
			"their lowest and highest.",
	}
	if len(all.Sets) == 1 {
		t.Title = "Noise of the repeats"
	}
	differs := Table{Title: "What differs", Head: []string{""}, Words: true}
	for i := range all.Sets {
		differs.Head = append(differs.Head, all.Sets[i].Name)
	}
	for _, d := range all.Differences {
		differs.add(append([]string{d.Kind + " " + d.Name}, d.Values...)...)
	}
	for _, note := range all.Notes() {
		summaries = append(summaries, sentence(note)+".")
	}
	for i := 1; i < len(all.Sets); i++ {
		summaries = append(summaries, all.Summary(i)+".")
	}
	return []Table{t, differs}, summaries
}

// inUnit writes a rate or a latency as the other tables do.
func inUnit(unit threshold.Unit, v float64) string {
	if unit == threshold.Time {
		return words.Duration(int64(math.Round(v)))
	}
	return number(v) + "/s"
}
