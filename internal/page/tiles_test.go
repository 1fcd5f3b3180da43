package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/result"
)

// TestTiles: the tiles have the numbers of a run, and an unknown number is never 0.
func TestTiles(t *testing.T) {
	t.Parallel()
	tiles := func(change func(*result.Result)) []tile {
		r := resultOf(t, usual())
		change(r)
		return newRun("run", r, 1).tiles()
	}
	assert.Equal(t, []tile{
		{"completed", "100/s", ""},
		{"ack p50", "923 µs", ""},
		{"ack p99", "2.25 ms", ""},
		{"ack max", "2.29 ms", ""},
		{"lost", unmeasured, ""},
		{"duplicated", unmeasured, ""},
		{"thresholds", "none", ""},
		{"limit", "none", ""},
	}, tiles(func(*result.Result) {}))
	assert.Equal(t, []tile{
		{"lost", "0", "good"}, {"duplicated", "2", "warn"}, {"thresholds", "1/2", "bad"}, {"limit", "outage", "warn"},
	}, tiles(func(r *result.Result) {
		r.Verification = &result.Verification{Known: true, Total: result.Verified{Duplicates: 2}}
		r.Thresholds = []result.Threshold{{Kept: true}, {}}
		r.Outages = []result.Outage{{Length: second}}
	})[4:])
	assert.Equal(t, []tile{
		{"lost", "3", "bad"}, {"duplicated", "0", "good"}, {"thresholds", "1/1", "good"}, {"limit", "the machine", "warn"},
	}, tiles(func(r *result.Result) {
		r.Verification = &result.Verification{Known: true, Total: result.Verified{Lost: 3}}
		r.Findings = []result.Finding{{Kind: "lost", Failure: true}}
		r.Thresholds = []result.Threshold{{Kept: true}}
		r.Limit = &result.Limit{Kind: result.LimitMachine}
	})[4:])
	nothing := (&Run{Result: &result.Result{}}).tiles()
	for _, x := range nothing[:6] {
		assert.Equal(t, tile{x.Label, unmeasured, ""}, x)
	}
}

// TestUnconfirmed: messages in doubt are no failed ones, and only tables with some have a column of them.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	p := r.Total.Producers
	p.Rejected, p.Released, p.Modified, p.Failed = 1, 2, 3, 4
	run := newRun("run", r, 1)
	assert.NotContains(t, messages([]*Run{run}).Head, unconfirmed)
	p.Unconfirmed = 15
	table := messages([]*Run{run})
	assert.Equal(t, []string{"total", "succeeded", "failed", unconfirmed}, table.Head[2:6])
	assert.Equal(t, []string{"650", "650", "10", "15"}, table.Rows[0][2:6])
	assert.Equal(t, "Sent 650 messages in 7.10 s; 650 completed, 10 failed, 15 unconfirmed, 650 received.", run.lines()[0].counted())
}

// TestRepeat: a page has the commands that repeat a run, as its plan has them.
func TestRepeat(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a run")
	write(t, dir, resultOf(t, usual()))
	for plan, want := range map[string][]string{
		"": {"perfmq run '" + dir + "'"},
		"# perfmq v1 (go1)\n# perfmq amqp client queue://A\nversion: 1\n":        {"perfmq run '" + dir + "'", "perfmq amqp client queue://A"},
		"# perfmq v1 (go1)\n# note: this was --shard 1/2 of run 7\nversion: 1\n": {"perfmq run '" + dir + "'"},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, result.PlanFile), []byte(plan), 0o600))
		p := musttest.Get(Read(dir))(t)
		assert.Equal(t, want, p.view().Stories[0].Repeat)
	}
}

// TestVerdict: a success with an outage is amber, and a run that was killed is neither a success nor failed.
func TestVerdict(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	run := newRun("run", r, 1)
	mark, v := run.verdict()
	assert.Equal(t, []string{"good", "success"}, []string{mark, v.String()})
	run.Result.Outages = []result.Outage{{Length: 40 * second, InDoubt: 15, Recovered: 1}}
	run.Result.Verification = &result.Verification{Known: true, Total: result.Verified{Duplicates: 2}}
	mark, v = run.verdict()
	assert.Equal(t, []string{"warn", "success after 1 outage of 40 s: 0 lost, 15 in doubt, 2 duplicated"}, []string{mark, v.String()})
	assert.Equal(t, []string{"1 outage of 40 s; over the whole run none: the rate was reached"}, run.limits())
	run.Result.Complete, run.Result.Outages = false, nil
	run.Result.Outcome = result.Outcome{Problems: []string{"there is no result.json"}}
	mark, v = run.verdict()
	assert.Equal(t, []string{"bad", "unfinished"}, []string{mark, v.String()})
}
