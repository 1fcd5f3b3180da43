package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// story is a run in words: the verdict, the findings, the limits and the tables.
type story struct {
	Name string
	// Mark is good, bad, warn or live. It selects the colour and the sign of the verdict.
	Mark    string
	Verdict string
	Reason  string
	Numbers []string // the run in a few sentences
	// Problems fail the run; Findings and Warnings do not.
	Problems, Findings, Warnings []string
	Limits                       []string
	Tables                       []Table
}

func (r *Run) story() story {
	s := story{Name: r.Name, Numbers: r.sentences()}
	s.Mark, s.Verdict = r.verdict()
	o := &r.Result.Outcome
	s.Reason, s.Problems = o.Reason, o.Problems
	for i := range r.Result.Thresholds {
		if t := &r.Result.Thresholds[i]; !t.Kept {
			s.Problems = append(s.Problems, "threshold not kept: "+t.Threshold+": "+measured(t))
		}
	}
	s.Warnings = append(slices.Clone(o.Warnings), o.LeftBehind...)
	for i := range r.Result.Findings {
		f := &r.Result.Findings[i]
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
	s.Tables = []Table{
		groupTable(r), thresholdTable(r), outageTable(r), stallTable(r), verified(r), brokerCounts(r), sideTable(r),
		marksTable(r), errorTable(r), facts(r), planTable(r),
	}
	return s
}

// verdict returns the mark and the words of a verdict.
func (r *Run) verdict() (mark, text string) {
	o := &r.Result.Outcome
	switch {
	case r.Live && !r.Result.Complete:
		return "live", "Running"
	case !r.Result.Complete:
		return "bad", "Has not come to its end"
	case !o.Success:
		return "bad", "Failed"
	case slices.ContainsFunc(r.Result.Thresholds, func(t result.Threshold) bool { return !t.Kept }):
		return "bad", "A threshold was not kept"
	case o.Interrupted:
		return "warn", "Interrupted, else a success"
	default:
		return "good", "Success"
	}
}

// limits returns the limit of the rate; if there are several steps, one for each.
func (r *Run) limits() (list []string) {
	add := func(step string, l *result.Limit) {
		if l != nil {
			list = append(list, step+words.Limit(l))
		}
	}
	if len(r.Result.Steps) > 1 {
		for i := range r.Result.Steps {
			add(r.Result.Steps[i].Name+": ", r.Result.Steps[i].Limit)
		}
	}
	if len(list) == 0 {
		add("", r.Result.Limit)
	}
	return list
}

// sentences returns the run in a few sentences; the tables have the rates.
func (r *Run) sentences() (list []string) {
	if p := r.Result.Total.Producers; p != nil {
		text := fmt.Sprintf("Sent %s messages in %s; %s were confirmed", count(p.Sent),
			words.Duration(max(0, r.Result.End-r.Result.Start)), count(p.Completed))
		if lost := failed(p); lost > 0 {
			text += fmt.Sprintf("; %s were not", count(lost))
		}
		list = append(list, text+".")
	}
	if c := r.Result.Total.Consumers; c != nil {
		list = append(list, "Received "+count(c.Received)+".")
	}
	if text := words.Outages(r.Result.Outages, r.Result.MoreOutages); text != "" {
		list = append(list, text+".")
	}
	return list
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
	for i := range res.Parts {
		t.add(fmt.Sprint("machine ", i+1), machine(&res.Parts[i].Host)+", from "+moment(res.Parts[i].Start))
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
