package page

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/compare"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// story is a run in words: the verdict, the findings, the limits and the tables.
type story struct {
	Name string
	// Mark is good, bad, warn or live. It selects the colour and the sign of the verdict.
	Mark    string
	Verdict string
	Reason  string
	Numbers []string // the run in two or three sentences
	// Problems fail the run; Findings and Warnings do not.
	Problems, Findings, Warnings []string
	Limits                       []Fact
	Tables                       []Table
	Facts                        []Fact
	Plan                         []Fact
	Commands                     []Fact
}

// Fact is a name with its value.
type Fact struct{ Name, Value string }

func (r *Run) story() story {
	s := story{Name: r.Name, Numbers: r.sentences(), Facts: r.facts(), Plan: r.plan()}
	s.Mark, s.Verdict = r.verdict()
	o := &r.Result.Outcome
	s.Reason = o.Reason
	if !r.Live || r.Result.Complete {
		s.Problems = o.Problems
	}
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
		if f.Severity == "" && f.Subject != "" && !strings.Contains(text, f.Subject) { // of an older version
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
		groupTable(r), thresholdTable(r), outageTable(r), stallTable(r), verified(r),
		hostTable(r), brokerCounts(r), sideTable(r), driftTable(r), marksTable(r), errorTable(r),
	}
	for i := range r.Result.Commands {
		c := &r.Result.Commands[i]
		status := "could not be run"
		if c.Status != nil {
			status = fmt.Sprintf("status %d", *c.Status)
		}
		took := span(c.Took)
		if c.Accepted > 0 {
			took += ", the broker accepted after " + span(c.Accepted)
		}
		s.Commands = append(s.Commands, Fact{c.When + " " + c.Step, fmt.Sprintf("%s (%s, %s) %s", c.Command, status, took,
			c.Output)})
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
func (r *Run) limits() (list []Fact) {
	add := func(step string, l *result.Limit) {
		if l != nil {
			of := stats.Limit{Kind: stats.LimitKind(l.Kind), Text: l.Text, Hint: l.Hint}
			name := "Limit"
			if step != "" {
				name += " of " + step
			}
			list = append(list, Fact{name, of.String()})
		}
	}
	if len(r.Result.Steps) < 2 {
		add("", r.Result.Limit)
		return list
	}
	for i := range r.Result.Steps {
		add(r.Result.Steps[i].Name, r.Result.Steps[i].Limit)
	}
	if len(list) == 0 {
		add("", r.Result.Limit)
	}
	return list
}

// sentences returns sentences with the figures of a run.
func (r *Run) sentences() (list []string) {
	lines := r.lines()
	whole := lines[0]
	if len(lines) > 1 { // an average over steps that do different things tells nothing
		whole.completed, whole.received = nil, nil
	}
	list = whole.sentences(list, "")
	for i := range lines[1:min(len(lines), 1+mostSentences)] {
		list = lines[1+i].sentences(list, "Step "+lines[1+i].step+": ")
	}
	var late []string
	for _, x := range []struct{ name, text string }{
		{"response", "confirmed within %s of their due time"},
		{"ack", "confirmed within %s"},
		{"transfer", "received within %s of their sending"},
	} {
		latency := r.Result.Latencies.Get(x.name)
		if latency == nil || latency.Percentiles == nil || x.name == "ack" && len(late) > 0 ||
			!result.Measured(latency.Count, r.leftOut(x.name)) {
			continue
		}
		late = append(late, fmt.Sprintf(x.text, span(latency.P99)))
	}
	if len(late) > 0 {
		list = append(list, "99% were "+strings.Join(late, ", and 99% ")+".")
	}
	if outages := r.Result.Outages; len(outages) > 0 {
		list = append(list, outageSentence(outages, r.Result.MoreOutages))
	} else if text := r.outagesSoFar(); text != "" {
		list = append(list, text)
	}
	return list
}

// mostSentences bounds how many steps are told in sentences: the tables have all.
const mostSentences = 8

// sentences appends what was sent and received, and how fast, each with a text in front.
func (l *line) sentences(list []string, front string) []string {
	add := func(text string) {
		if front != "" {
			text = strings.ToLower(text[:1]) + text[1:]
		}
		list = append(list, front+text+".")
	}
	rates := func(average *float64, best *extent) string {
		if average == nil {
			return ""
		}
		text := ", " + number(*average) + "/s on average"
		if best != nil {
			text += " (seconds from " + number(best.low) + " to " + number(best.high) + ")"
		}
		return text
	}
	if p := l.producers(); p != nil {
		text := fmt.Sprintf("Sent %s messages in %s; %s were confirmed%s", count(p.Sent), span(l.elapsed), count(p.Completed),
			rates(l.completed, l.bestCompleted))
		if lost := failed(p); lost > 0 {
			text += fmt.Sprintf("; %s were not", count(lost))
		}
		add(text)
	}
	if received, known := l.consumed(); known {
		add(fmt.Sprintf("Received %s%s", count(received), rates(l.received, l.bestReceived)))
	}
	return list
}

// facts returns labels, versions and machine.
func (r *Run) facts() (list []Fact) {
	add := func(name, value string) {
		if value != "" {
			list = append(list, Fact{name, value})
		}
	}
	res := r.Result
	for _, name := range slices.Sorted(maps.Keys(res.Labels)) {
		add(name, res.Labels[name])
	}
	add("scenario", res.Scenario)
	add("began", moment(res.Start))
	add("run", res.RunID)
	versions := compare.Versions(res)
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		add(name, versions[name])
	}
	machine := func(h *result.Host) string {
		text := fmt.Sprintf("%s, %s/%s, %d processors", h.Name, h.OS, h.Arch, h.CPUs)
		if h.Memory > 0 {
			text += ", " + megabytes(h.Memory) + " MB of memory"
		}
		return text
	}
	if len(res.Parts) == 0 {
		add("machine", machine(&res.Host))
	}
	for i := range res.Parts {
		add("machine "+strconv.Itoa(i+1), machine(&res.Parts[i].Host)+", from "+moment(res.Parts[i].Start))
	}
	return list
}

// maxPlan is the maximum number of settings of a plan on a page.
const maxPlan = 1000

// plan returns the settings, without the path to the only step and group.
func (r *Run) plan() (list []Fact) {
	settings := compare.Settings(r.Result)
	names := slices.Sorted(maps.Keys(settings))
	for _, name := range names[:min(len(names), maxPlan)] {
		list = append(list, Fact{strings.TrimPrefix(strings.TrimPrefix(name, "steps.load."), "groups.1."), settings[name]})
	}
	if more := len(names) - len(list); more > 0 {
		list = append(list, Fact{"...", fmt.Sprintf("and %d more", more)})
	}
	return list
}
