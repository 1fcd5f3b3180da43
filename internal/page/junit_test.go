package page

import (
	"bytes"
	"encoding/xml"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/pkg/result"
)

// junitOf returns the JUnit of a page, after a check for the rule of GitLab: no two cases have the same class and name.
func junitOf(t *testing.T, p *Page) *parsed {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.JUnit(&b))
	var j parsed
	require.NoError(t, xml.Unmarshal(b.Bytes(), &j))
	names := map[string]bool{}
	for _, s := range j.Suites {
		for _, c := range s.Cases {
			name := c.Class + "\n" + c.Name
			require.False(t, names[name], name)
			names[name] = true
		}
	}
	require.Len(t, names, j.Tests)
	return &j
}

// parsed is JUnit as CI reads it.
type parsed struct {
	Tests  int `xml:"tests,attr"`
	Suites []struct {
		Name  string `xml:"name,attr"`
		Time  string `xml:"time,attr"`
		Cases []struct {
			Class string    `xml:"classname,attr"`
			Name  string    `xml:"name,attr"`
			Fail  *struct{} `xml:"failure"`
			Error *struct{} `xml:"error"`
			Skip  *struct{} `xml:"skipped"`
			Out   string    `xml:"system-out"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// outcomes returns a line for each case: how it ended, class and name.
func (j *parsed) outcomes() (list []string) {
	for _, s := range j.Suites {
		for _, c := range s.Cases {
			end := "pass"
			for kind, f := range map[string]*struct{}{"fail": c.Fail, "error": c.Error, "skip": c.Skip} {
				if f != nil {
					end = kind
				}
			}
			list = append(list, end+" "+c.Class+": "+c.Name)
		}
	}
	return list
}

func TestJUnit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	write(t, dir, told(t))
	p := musttest.Get(Read(dir))(t)
	var b bytes.Buffer
	require.NoError(t, p.JUnit(&b))
	golden(t, "report.junit.xml", b.String())
	assert.Equal(t, []string{
		"pass perfmq: run", "pass perfmq: ack.p99 < 50ms", "fail perfmq: completed.avg > 1000",
		"fail perfmq: lost", "pass perfmq: duplicated", "pass perfmq: damaged", "pass perfmq: out-of-order",
	}, junitOf(t, p).outcomes())
}

// TestJUnitOutcomes: no run that did not succeed is all green, nor is one red that did; what is unknown is skipped.
func TestJUnitOutcomes(t *testing.T) {
	t.Parallel()
	problem := func(kind, text string) result.Finding {
		return result.Finding{Kind: kind, Severity: result.Problem, Text: text}
	}
	kept := result.Threshold{Threshold: "sent > 1", Kept: true}
	for name, c := range map[string]struct {
		r    result.Result
		want []string
	}{
		"success":     {result.Result{Complete: true, Outcome: result.Outcome{Success: true}}, []string{"pass gate: run"}},
		"killed":      {result.Result{Outcome: result.Outcome{Success: true}}, []string{"error gate: run"}},
		"interrupted": {result.Result{Complete: true, Outcome: result.Outcome{Success: true, Interrupted: true}}, []string{"error gate: run"}},
		"no reason":   {result.Result{Complete: true}, []string{"fail gate: run"}},
		"no broker":   {result.Result{Findings: []result.Finding{problem("error", "refused")}}, []string{"error gate: run"}},
		"of a merge":  {result.Result{Complete: true, Outcome: result.Outcome{Problems: []string{"shard 2 failed"}}}, []string{"pass gate: run", "fail gate: problem"}},
		"problems": {
			result.Result{Complete: true, Findings: []result.Finding{problem("rejected", "1"), problem("left", "2"), problem("left", "3")}},
			[]string{"pass gate: run", "fail gate: left", "fail gate: rejected"},
		},
		"steps": {
			result.Result{Complete: true, Outcome: result.Outcome{Success: true}, Thresholds: []result.Threshold{
				kept, kept, {Step: "drain", Threshold: "sent > 1"},
			}}, []string{"pass gate: run", "pass gate: sent > 1", "pass gate: sent > 1 (2)", "fail gate/drain: sent > 1"},
		},
		"one side": {
			result.Result{Complete: true, Outcome: result.Outcome{Success: true}, Verification: &result.Verification{Subscriptions: []result.Subscription{{}}}},
			[]string{"pass gate: run", "skip gate: lost", "pass gate: duplicated", "pass gate: damaged", "pass gate: out-of-order"},
		},
		"allowed": {
			result.Result{
				Complete: true, Outcome: result.Outcome{Success: true}, Findings: []result.Finding{{Kind: "lost", Severity: result.Note, Text: "lost: 2"}},
				Verification: &result.Verification{Known: true, Subscriptions: []result.Subscription{{}}},
			},
			[]string{"pass gate: run", "pass gate: lost", "pass gate: duplicated", "pass gate: damaged", "pass gate: out-of-order"},
		},
	} {
		c.r.Scenario = "gate"
		assert.Equal(t, c.want, junitOf(t, &Page{Runs: []*Run{{Result: &c.r}}}).outcomes(), name)
	}
}

// TestJUnitHostile: whatever texts a result has, the XML is valid, and names keep their line.
func TestJUnitHostile(t *testing.T) {
	t.Parallel()
	const evil = "a]]><!-- --><failure/>&amp;\x00\x1b\n\ufffe\xff\u202e\"'"
	r := told(t)
	r.Scenario, r.Host.Name, r.Outcome.Reason, r.Limit.Text = evil, evil, evil, evil
	r.Findings[0].Text, r.Findings[0].Kind, r.Thresholds[1].Threshold, r.Thresholds[1].Step = evil, evil, evil, evil
	j := junitOf(t, &Page{Runs: []*Run{{Name: evil, Result: r}, {Name: evil + evil, Result: r}}})
	require.Len(t, j.Suites, 2)
	assert.Equal(t, `fail `+j.Suites[0].Name+`/a]]><!-- --><failure/>&amp;\x00\x1b; \ufffe\xff\u202e"': a]]><!-- --><failure/>&amp;\x00\x1b; \ufffe\xff\u202e"'`, j.outcomes()[2])
}

// TestJUnitOfSweepAndSearch: each run of a sweep is a suite, also one that did not come to its end, or is not begun; of
// a search only the outcome counts.
func TestJUnitOfSweepAndSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := swept(t, dir)
	p := musttest.Get(Read(dir))(t)
	list := junitOf(t, p).outcomes()
	require.Len(t, slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.HasSuffix(s, ": run") }), 12)
	assert.Contains(t, list, "pass demo/matrix/threads=16 queues=8 / 2: run")

	p.Runs = nil // above the limit of a page
	s.Runs[1].State, s.Runs[2].State, s.Runs[3].State, s.Runs[3].Status = record.Waiting, record.Unfinished, record.Done, 3
	p.sweep = s
	j := junitOf(t, p)
	assert.Equal(t, []string{
		"fail demo/matrix/threads=16 queues=8 / 1: run", "error demo/matrix/threads=16 queues=32 / 1: run", "error demo/matrix/threads=64 queues=8 / 1: run",
		"fail demo/matrix/threads=64 queues=32 / 1: run", "pass demo/matrix/threads=128 queues=8 / 1: run",
	}, j.outcomes()[:5])

	first := s.Runs[0].Folder
	absent := filepath.Join(t.TempDir(), "before") // runs that only repeat, one of which left no result
	s = &record.Sweep{Format: record.Format, Version: record.Version, ID: "x", Name: "demo", Repeats: 2}
	s.Arrange(record.Cells(nil))
	s.Runs[0].State, s.Runs[1].State, s.Runs[1].Problem = record.Done, record.Done, "no broker"
	write(t, filepath.Join(absent, s.Runs[0].Folder), told(t))
	require.NoError(t, s.Write(absent))
	p = musttest.Get(Read(absent, filepath.Join(dir, first)))(t)
	assert.Contains(t, junitOf(t, p).outcomes(), "fail demo/before / 2: problem")

	alone := t.TempDir() // neither of two sweeps left a result but for one
	require.NoError(t, s.Write(alone))
	p = musttest.Get(Read(absent, alone))(t)
	require.Len(t, p.Runs, 1)
	assert.Len(t, junitOf(t, p).Suites, 4)

	search := searchedIn(t, filepath.Join(dir, "search"))
	p = musttest.Get(Read(filepath.Join(dir, "search")))(t)
	j = junitOf(t, p)
	assert.Equal(t, []string{"pass perfmq: find-max"}, j.outcomes())
	assert.Contains(t, j.Suites[0].Cases[0].Out, "400 msg/s: undecided; ack.p99 < 250ms: 400ms; limit: perfmq's processors\n")
	assert.Equal(t, "35.500", j.Suites[0].Time)
	search.Held = false
	assert.Equal(t, []string{"fail perfmq: find-max"}, junitOf(t, &Page{search: &search}).outcomes())
	search.Complete = false
	assert.Equal(t, []string{"error perfmq: find-max"}, junitOf(t, &Page{search: &search}).outcomes())
}
