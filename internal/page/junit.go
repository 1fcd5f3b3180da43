package page

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// junit is a report for CI, in the format that Jenkins, GitLab and GitHub's actions read: a suite for each run. A suite
// has a test case for the run, for each threshold, and for each kind of problem. The kinds of a verification have their
// cases without a problem, too. The names stay the same from run to run.
type junit struct {
	Suites []testSuite
	Count  map[string]int // of the cases of all suites by their ends, and of "all"; write sets it
}

type testSuite struct {
	Name, Time, Timestamp, Host string
	Cases                       []testCase
	Count                       map[string]int
}

type testCase struct {
	Class, Name, Time string
	End               string // failure, error or skipped; empty if it passed
	Type              string // of the end
	Text, Out         []string
}

// JUnit writes the outcomes of the runs, or of the search.
func (p *Page) JUnit(w io.Writer) error {
	j, results, took, scenario := &junit{}, map[string]*result.Result{}, int64(0), ""
	for _, r := range p.Runs {
		results[r.folder], took, scenario = r.Result, took+r.Result.End-r.Result.Start, r.Result.Scenario
	}
	switch {
	case p.search != nil:
		j.addSearch(scenario, p.search, took)
	case p.sweep != nil:
		j.addSweep(p.sweep, results)
	case len(p.Runs) == 1 && len(p.absent) == 0:
		j.add("", p.Runs[0].Result)
	default:
		for _, r := range append(slices.Clone(p.Runs), p.absent...) {
			j.add(r.Name, r.Result)
		}
	}
	return j.write(w)
}

// add adds a run. The name distinguishes it from other runs of the report. A result without rows and workers will do.
func (j *junit) add(name string, res *result.Result) {
	s := j.suite(res.Scenario, name, res.End-res.Start)
	if s.Host = res.Host.Name; res.Start > 0 {
		s.Timestamp = time.UnixMicro(res.Start).UTC().Format("2006-01-02T15:04:05")
	}
	verdict := words.VerdictOf(res).String()
	c, problems := testCase{Name: "run", Out: []string{verdict}}, map[string][]string{} // texts by kind
	if res.Outcome.Reason != "" {
		c.Out = append(c.Out, res.Outcome.Reason)
	}
	for _, limit := range (&Run{Result: res}).limits() {
		c.Out = append(c.Out, "limit: "+limit)
	}
	for _, f := range res.Findings {
		if c.Out = append(c.Out, f.Text); f.Failure || f.Severity == result.Problem {
			problems[f.Kind] = append(problems[f.Kind], f.Text)
		}
	}
	for _, text := range res.Outcome.Problems { // a merge has some beside its findings
		if !slices.Contains(c.Out, text) {
			problems["problem"] = append(problems["problem"], text)
		}
	}
	switch errs := problems["error"]; {
	case len(errs) > 0:
		c.end("error", "error", errs...)
	case !res.Complete || res.Outcome.Interrupted:
		c.end("error", "interrupted", verdict+": the run has not come to its end")
	case !res.Outcome.Success && len(problems) == 0:
		c.end("failure", "failed", verdict)
	}
	s.add("", c)
	for _, t := range res.Thresholds {
		c := testCase{Name: t.Threshold, Out: []string{t.Threshold + ": " + measured(&t)}}
		if !t.Kept {
			c.end("failure", "threshold", c.Out...)
		}
		s.add(t.Step, c)
	}
	s.addKinds(res.Verification, problems)
}

// addKinds adds a case for each kind that a verification judges, and for each other kind of problem.
func (s *testSuite) addKinds(v *result.Verification, problems map[string][]string) {
	var kinds []string
	if v != nil {
		kinds = []string{"lost", "duplicated", "damaged", "out-of-order"}
	}
	for _, kind := range slices.Sorted(maps.Keys(problems)) {
		if kind != "error" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		c := testCase{Name: kind}
		switch texts := problems[kind]; {
		case len(texts) > 0:
			c.end("failure", kind, texts...)
		case len(v.Subscriptions) == 0 || kind == "lost" && !v.Known:
			c.end("skipped", "unknown", append([]string{"unknown"}, v.Notes...)...)
		}
		s.add("", c)
	}
}

// addSweep adds the runs of a sweep, with the results by their folders. Of a run without, sweep.json says how it ended.
func (j *junit) addSweep(s *record.Sweep, results map[string]*result.Result) {
	for i := range s.Runs {
		r := &s.Runs[i]
		name := s.Title(r.Values)
		if s.Repeats > 1 {
			name = strings.TrimPrefix(fmt.Sprintf("%s / %d", name, r.Repeat), " / ")
		}
		one := *cmp.Or(results[r.Folder], withoutResult(r))
		one.Complete = one.Complete && r.State == record.Done
		one.Scenario = s.Name
		j.add(name, &one)
	}
}

// withoutResult returns what sweep.json says of a run that left no result.
func withoutResult(r *record.Run) *result.Result {
	res := &result.Result{Complete: r.State == record.Done, End: r.End}
	res.Start = r.Start
	if res.Outcome.Success = r.Status == result.StatusOK; r.Problem != "" {
		res.Outcome.Problems = []string{r.Problem}
	}
	return res
}

// addSearch adds a search of that length as one test case. Its loads are no cases: some must fail.
func (j *junit) addSearch(scenario string, s *record.Search, took int64) {
	c := testCase{Name: "find-max", Out: append([]string{s.String()}, s.Thresholds...)}
	for _, p := range s.Points {
		c.Out = append(c.Out, fmt.Sprintf("%s msg/s: %s; %s; limit: %s", record.PerSecond(p.Rate), p.Verdict(),
			cmp.Or(p.Why, "-"), cmp.Or(p.Limit, result.LimitNone)))
	}
	switch kind := s.Kind(); kind {
	case record.Maximum, record.AtLeast:
	case record.Nothing, record.NotSteady:
		c.end("failure", kind, s.String())
	default:
		c.end("error", kind, s.String())
	}
	j.suite(scenario, "", took).add("", c)
}

// suite adds a suite. Its name, the class of its cases, is that of the scenario and of the run.
func (j *junit) suite(scenario, run string, took int64) *testSuite {
	name, seconds := strings.TrimSuffix(cmp.Or(scenario, "perfmq")+"/"+run, "/"), float64(max(0, took))/1e6
	j.Suites = append(j.Suites, testSuite{Name: name, Time: fmt.Sprintf("%.3f", seconds)})
	return &j.Suites[len(j.Suites)-1]
}

// add adds a case of the suite, or of a step. The first one took the time of the run; to judge it takes none.
func (s *testSuite) add(step string, c testCase) {
	if len(s.Cases) == 0 {
		c.Time = s.Time
	}
	c.Class = strings.TrimSuffix(s.Name+"/"+step, "/")
	s.Cases = append(s.Cases, c)
}

// end sets how a case ended that did not pass. The first text is the message.
func (c *testCase) end(end, kind string, texts ...string) { c.End, c.Type, c.Text = end, kind, texts }

// write writes the report. CI takes cases with the same class and name for one, so that others get a number.
func (j *junit) write(w io.Writer) error {
	j = safetext.Each(j, safetext.Line)
	seen := map[string]int{}
	j.Count = map[string]int{}
	for i := range j.Suites {
		s := &j.Suites[i]
		s.Count = map[string]int{}
		for k := range s.Cases {
			c := &s.Cases[k]
			name := c.Class + "\n" + c.Name
			if seen[name]++; seen[name] > 1 {
				c.Name += fmt.Sprintf(" (%d)", seen[name])
			}
			for _, count := range []map[string]int{s.Count, j.Count} {
				count["all"]++
				count[c.End]++
			}
		}
	}
	var m markup
	m.WriteString(xml.Header + mark)
	m.suites(j)
	_, err := w.Write(m.Bytes())
	return err
}

// suites writes the XML of the suites.
func (m *markup) suites(j *junit) {
	counts := func(of map[string]int) {
		m.put(` tests="%d" failures="%d" errors="%d"`, of["all"], of["failure"], of["error"])
	}
	m.put(`<testsuites name="perfmq"`)
	counts(j.Count)
	m.put(">")
	for _, s := range j.Suites {
		m.put("\n  <testsuite name=\"%s\"", s.Name)
		counts(s.Count)
		m.put(` skipped="%d" time="%s"`, s.Count["skipped"], s.Time)
		if s.Timestamp != "" {
			m.put(` timestamp="%s"`, s.Timestamp)
		}
		if s.Host != "" {
			m.put(` hostname="%s"`, s.Host)
		}
		m.put(">")
		for i := range s.Cases {
			m.testCase(&s.Cases[i])
		}
		m.put("\n  </testsuite>")
	}
	m.put("\n</testsuites>\n")
}

func (m *markup) testCase(c *testCase) {
	m.put("\n    <testcase classname=\"%s\" name=\"%s\"", c.Class, c.Name)
	if c.Time != "" {
		m.put(` time="%s"`, c.Time)
	}
	m.put(">")
	if c.End != "" {
		m.put("\n      <%s type=\"%s\" message=\"%s\">", c.End, c.Type, c.Text[0])
		m.put("%s</%s>", strings.Join(c.Text, "\n"), c.End)
	}
	if len(c.Out) > 0 {
		m.put("\n      <system-out>%s</system-out>", strings.Join(c.Out, "\n"))
	}
	m.put("\n    </testcase>")
}

// mark is a comment of Markdown and of JUnit's XML that says where they are from.
const mark = "<!-- perfmq report -->\n"
