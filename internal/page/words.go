package page

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/inputfile"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// story is a run in words: the verdict, the findings, the limits and the tables.
type story struct {
	Name   string
	Head   []string // what ran, see [words.Head]
	Repeat []string // commands that repeat the run
	// Mark is good, bad, warn or live. It selects the colour and the sign of the verdict.
	Mark    string
	Verdict string
	Reason  string
	Tiles   []tile
	Numbers []string // the run in a few sentences
	// Problems fail the run; Findings and Warnings do not.
	Problems, Findings, Warnings []string
	Limits                       []string
	Tables                       []Table
}

func (r *Run) story() story {
	s := story{Name: r.Name, Head: words.Head(r.Result), Repeat: r.repeats(), Tiles: r.tiles()}
	s.Numbers = []string{r.lines()[0].counted()}
	mark, verdict := r.verdict()
	s.Mark, s.Verdict = mark, sentence(verdict.String())
	o := &r.Result.Outcome
	s.Reason, s.Problems = o.Reason, o.Problems
	for _, t := range r.Result.Thresholds {
		if !t.Kept {
			s.Problems = append(s.Problems, "threshold failed: "+t.Threshold+": "+measured(&t))
		}
	}
	s.Warnings = append(slices.Clone(o.Warnings), o.LeftBehind...)
	for _, f := range r.Result.Findings {
		if f.Severity == result.Problem || f.Severity == result.Warning {
			continue // they are in the outcome, too
		}
		text := f.Text
		if f.Severity == "" && f.Subject != "" && !strings.Contains(text, f.Subject) { // of an earlier version
			text = f.Subject + ": " + text
		}
		if len(f.Examples) > 0 && !strings.Contains(text, f.Examples[0]) {
			text += " (first: " + strings.Join(f.Examples[:min(3, len(f.Examples))], ", ") + ")"
		}
		if !slices.Contains(s.Problems, text) {
			s.Findings = append(s.Findings, text)
		}
	}
	s.Limits = r.limits()
	s.Tables = []Table{ // the first three are above the charts of a single run
		thresholdTable(r), verified(r), outageTable(r), groupTable(r), stallTable(r), brokerCounts(r), sideTable(r),
		marksTable(r), errorTable(r), facts(r), planTable(r),
	}
	return s
}

// verdict returns the mark and the words of a verdict.
func (r *Run) verdict() (mark string, v words.Verdict) {
	v = words.VerdictOf(r.Result)
	switch {
	case r.Live && !r.Result.Complete:
		return "live", words.Verdict{Word: "running"}
	case !r.Result.Complete:
		v.Word = "unfinished"
	}
	mark = map[words.VerdictMark]string{
		words.MarkSuccess: "good", words.MarkOutage: "warn", words.MarkInterrupted: "warn",
	}[v.Mark]
	return cmp.Or(mark, "bad"), v
}

// limits returns the outages and the limit of the rate; if there are several steps, one for each.
func (r *Run) limits() (list []string) {
	add := func(step string, l *result.Limit) {
		if l != nil {
			list = append(list, step+words.Limit(l))
		}
	}
	if len(r.Result.Steps) > 1 {
		for _, s := range r.Result.Steps {
			add(s.Name+": ", s.Limit)
		}
	}
	if len(list) == 0 {
		add("", r.Result.Limit)
	}
	switch outages := words.Outages(r.Result.Outages, r.Result.MoreOutages); {
	case outages == "":
	case len(list) == 1:
		list[0] = outages + "; over the whole run " + list[0]
	default:
		list = append([]string{outages}, list...)
	}
	return list
}

// repeats returns the commands that repeat the run: its folder, and the command line that its plan has in the second
// line.
func (r *Run) repeats() (list []string) {
	if r.path == "" {
		return nil
	}
	text, err := inputfile.Read(filepath.Join(r.path, result.PlanFile), 1<<20)
	if err != nil { // a merged result has no plan
		return nil
	}
	list = []string{"perfmq run " + safetext.Shell(r.path)}
	_, second, _ := strings.Cut(string(text), "\n")
	second, _, _ = strings.Cut(second, "\n")
	if command, found := strings.CutPrefix(second, "# perfmq "); found {
		list = append(list, "perfmq "+command)
	}
	return list
}

// counted returns the counts of a line in a sentence.
func (l *line) counted() (text string) {
	values := l.values()
	for _, name := range []string{"sent", "completed", "failed", unconfirmed, "received"} {
		switch v, known := values[name]; {
		case !known, v == 0 && (name == "failed" || name == unconfirmed):
		case text == "":
			text = sentence(name) + " " + number(v) + " messages in " + words.Duration(l.elapsed()) + ";"
		default:
			text += " " + number(v) + " " + name + ","
		}
	}
	return strings.TrimRight(text, ";,") + "."
}

// facts has labels, versions and machine.
func facts(r *Run) Table {
	t := Table{Title: "Labels, versions and machine", Head: []string{"", ""}, Words: true}
	res := r.Result
	for _, name := range slices.Sorted(maps.Keys(res.Labels)) {
		t.add(name, res.Labels[name])
	}
	if res.Scenario != "" {
		t.add("scenario", res.Scenario)
	}
	t.add("began", moment(res.Start))
	t.add("run", res.RunID)
	versions := compare.Versions(res)
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		t.add(name, versions[name])
	}
	machine := func(h *result.Host) string {
		text := fmt.Sprintf("%s, %s/%s, %d processors", h.Name, h.OS, h.Arch, h.CPUs)
		if h.Memory > 0 {
			text += ", " + megabytes(h.Memory) + " MB of memory"
		}
		return text
	}
	if len(res.Parts) == 0 {
		t.add("machine", machine(&res.Host))
	}
	for i, p := range res.Parts {
		text := machine(&p.Host) + ", from " + moment(p.Start)
		if p.Limit != nil {
			text += ", limit: " + words.LimitTitle(p.Limit.Kind)
		}
		t.add(fmt.Sprint("machine ", i+1), text)
	}
	return t
}

// planTable has the settings, without the path to the only step and group.
func planTable(r *Run) Table {
	t := Table{Title: "Plan", Head: []string{"", ""}, Words: true, Folded: true}
	settings := compare.Settings(r.Result)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		t.add(strings.TrimPrefix(strings.TrimPrefix(name, "steps.load."), "groups.1."), settings[name])
	}
	return t
}
