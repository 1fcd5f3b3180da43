package page

import (
	"math"
	"strings"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/words"
)

// compared holds the sets against the first, or has the noise of the repeats of a single set.
func (p *Page) compared() *compare.Comparison {
	var sets []compare.Set
	for _, r := range p.Runs {
		if r.group == len(sets) {
			sets = append(sets, compare.Set{Name: r.of})
		}
		sets[r.group].Repeats = append(sets[r.group].Repeats, r.Result)
	}
	return compare.New(sets, compare.Usual())
}

// compare sets the sentences of a comparison, and returns a table of the sets side by side and one of the differences
// of plans, labels, versions and machines.
func (v *view) compare(all *compare.Comparison) []Table {
	rows := all.Table(inUnit)
	t := Table{
		Title: "Side by side", Head: rows[0], Rows: rows[1:],
	}
	if len(all.Sets) == 1 {
		t.Title = "Noise of the repeats"
	}
	differs := Table{Title: "What differs", Head: []string{""}, Words: true}
	for _, s := range all.Sets {
		differs.Head = append(differs.Head, s.Name)
	}
	for _, d := range all.Differences {
		differs.add(append([]string{d.Kind + " " + d.Name}, d.Values...)...)
	}
	for i := 1; i < len(all.Sets); i++ {
		mark, text := all.Headline(i)
		if i == 1 {
			v.Lead = &story{Mark: mark}
			v.Lead.Verdict, v.Lead.Reason, _ = strings.Cut(text, ": ")
			continue
		}
		v.Summaries = append(v.Summaries, text+".")
	}
	for _, note := range all.Notes() {
		v.Summaries = append(v.Summaries, sentence(note)+".")
	}
	return []Table{t, differs}
}

// inUnit writes a figure as the other tables do.
func inUnit(unit threshold.Unit, v float64) string {
	switch unit {
	case threshold.Time:
		return words.Duration(int64(math.Round(v)))
	case threshold.PerSecond:
		return number(v) + "/s"
	case threshold.Percent:
		return number(v) + "%"
	case threshold.Bytes:
		return number(v/1e6) + " MB"
	case threshold.BytesPerSecond:
		return number(v/1e6) + " MB/s"
	}
	return number(v)
}
