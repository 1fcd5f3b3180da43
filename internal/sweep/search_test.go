package sweep

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/sweep/record"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// shown records the output.
type shown struct{ printed, failed []string }

func (s *shown) progress() Progress {
	return Progress{
		Print: func(line string) { s.printed = append(s.printed, line) },
		Fail:  func(err error) { s.failed = append(s.failed, err.Error()) },
	}
}

// TestThresholdsOf: a load may miss the target of all groups by two messages if these are more than 1%. Given thresholds do
// not change.
func TestThresholdsOf(t *testing.T) {
	for messages, want := range map[float64]float64{0: 0, 1: 0, 2: 0, 4: 50, 136.8: 98.53, 199: 98.99, 200: 99, 201: 99, 1e6: 99} {
		assert.InDelta(t, want, shareOf(messages), 1e-9, messages)
	}
	group := func(role plan.Role, rate string) *plan.Group {
		s := musttest.Get(load.ParseSchedule(rate))(t)
		return &plan.Group{Role: role, Rate: plan.Rate{Schedule: s}}
	}
	asked := musttest.Get(threshold.Parse("received.avg >= 99% of target"))(t)
	for _, c := range []struct {
		duration time.Duration
		want     string
		groups   []*plan.Group
	}{
		{3 * time.Second, "95%", []*plan.Group{group(plan.Client, "20")}},
		{7 * time.Second, "98.33%", []*plan.Group{group(plan.Client, "20")}},
		{3 * time.Second, "97.5%", []*plan.Group{group(plan.Client, "10 for 1s, 60 for 1s, 20 for 1s"), group(plan.Producer, "10"), {Role: plan.Consumer}}},
	} {
		step := plan.Step{Duration: c.duration, Warmup: time.Second, Groups: c.groups}
		s := Search{First: &run.Run{Plan: &plan.Plan{Steps: []plan.Step{step}}}, asked: []threshold.Threshold{asked}}
		var texts []string
		list := s.thresholdsOf(&step)
		for i := range list {
			texts = append(texts, list[i].String())
		}
		assert.Equal(t, []string{
			"received.avg >= 99% of target", "completed.avg >= " + c.want + " of target", "delay.p99 < 100ms", "received.avg >= " + c.want + " of target",
		}, texts)
	}
}

// TestJudge: failed thresholds are the reason, then the problems of the load. A load that reached its rate has no limit.
func TestJudge(t *testing.T) {
	outcome := func(text string, measured, target float64) result.Threshold {
		d := musttest.Get(threshold.Parse(text))(t)
		return d.Judge(measured, target)
	}
	late := outcome("ack.p99 < 5ms", 7000, 0)
	few := outcome("received.avg >= 80% of target", 2.4, 2.5)
	behind := outcome("received.avg >= 99% of target", 2400, 2500)
	kept := result.Outcome{Success: true}
	none, machine := &result.Limit{Kind: result.LimitNone, Text: "the rate was reached"}, &result.Limit{Kind: result.LimitMachine, Text: "others"}
	for name, c := range map[string]struct {
		summary stats.Summary
		want    record.Point
	}{
		"kept":   {stats.Summary{Result: result.Result{Outcome: kept, Limit: none, Thresholds: []result.Threshold{few}}}, record.Point{Kept: true}},
		"late":   {stats.Summary{Result: result.Result{Outcome: kept, Limit: none, Thresholds: []result.Threshold{late}}}, record.Point{Why: "ack.p99 < 5ms: 7ms"}},
		"behind": {stats.Summary{Result: result.Result{Outcome: kept, Limit: none, Thresholds: []result.Threshold{behind}}}, record.Point{Why: "received.avg >= 99% of target: 2400/s (96%)"}},
		"failed": {stats.Summary{Result: result.Result{Findings: []result.Finding{{Severity: result.Problem, Text: "lost"}}, Limit: none}}, record.Point{Why: "lost"}},
		"late and failed": {
			stats.Summary{Result: result.Result{Findings: []result.Finding{{Severity: result.Problem, Text: "lost"}}, Limit: none, Thresholds: []result.Threshold{late}}},
			record.Point{Why: "ack.p99 < 5ms: 7ms, lost"},
		},
		"the machine": {stats.Summary{Result: result.Result{Outcome: kept, Limit: machine, Thresholds: []result.Threshold{late}}}, record.Point{Why: "ack.p99 < 5ms: 7ms", Tester: true, Limit: "the machine (others)"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, judge(&c.summary)) })
	}
}

// TestConclude: each outcome of a search has its exit status; with perfmq as the limit it is undecided.
func TestConclude(t *testing.T) {
	t.Parallel()
	tester := record.Point{Rate: 1000, Tester: true, Limit: "the machine (others took 90%)"}
	slow := record.Point{Rate: 1000, Why: "ack.p99 < 5ms: 7ms"}
	for name, c := range map[string]struct {
		found           record.Search
		err             error
		status          int
		printed, failed string
	}{
		"maximum": {record.Search{Rate: 900, Above: 1000, Held: true, Failed: slow}, nil, result.StatusOK, "--- maximum: 900 msg/s", ""},
		"bound":   {record.Search{Rate: 900, Above: 1000, Held: true, Failed: tester}, nil, result.StatusOK, "--- at least 900 msg/s: ", ""},
		"nothing": {record.Search{Above: 1000, Failed: slow}, errNothing, result.StatusThreshold, "", "not even 1,000 msg/s passes"},
		"undecided": {
			record.Search{Above: 1000, Failed: tester, Points: []record.Point{tester, tester}}, errUndecided, result.StatusUndecided, "", "undecided: perfmq was the limit of 2 of 2 loads",
		},
	} {
		shown := new(shown)
		c.found.Complete = true
		require.Equal(t, c.status, (&Search{Progress: shown.progress()}).conclude(&c.found, c.err), name)
		require.Equal(t, []bool{c.printed == "", c.failed == ""}, []bool{shown.printed == nil, shown.failed == nil}, name)
		require.Contains(t, strings.Join(shown.printed, ""), c.printed)
		require.Contains(t, strings.Join(shown.failed, ""), c.failed)
	}
}
