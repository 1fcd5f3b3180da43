package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

func TestOutageSentence(t *testing.T) {
	t.Parallel()
	ended, longer, open := result.Outage{Length: 800_000}, result.Outage{Length: 2 * second}, result.Outage{}
	for want, list := range map[string][]result.Outage{
		"1 outage of 800 ms.":                                                                      {ended},
		"1 outage; no message came through after 1 of them.":                                       {open},
		"2 outages, together 2.80 s, the longest 2.00 s.":                                          {longer, ended},
		"2 outages; no message came through after 2 of them.":                                      {open, open},
		"3 outages, together 2.80 s, the longest 2.00 s; no message came through after 1 of them.": {longer, ended, open},
	} {
		assert.Equal(t, want, (&Run{series: &series{}, Result: &result.Result{Complete: true, Outages: list}}).outages())
	}
}

// TestManyOutages: the numbers of outages in table and charts are bounded, and the table says so.
func TestManyOutages(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	for i := range 600 {
		r.Outages = append(r.Outages, result.Outage{Elapsed: int64(i) * 10_000, Length: 1000, Workers: []string{"producer-0"}, Class: "connection-lost"})
	}
	run, err := newRun("run", r, 1)
	require.NoError(t, err)
	table := cutTables([]Table{outageTable(run)})[0]
	assert.Len(t, table.Rows, maxItems)
	assert.Contains(t, table.Note, "The first 200 of 600.")
	assert.Len(t, run.outageBands(), maxItems)
	run.Result.MoreOutages = &result.MoreOutages{Count: 5000, Length: 9_400_000, Longest: 3_000_000}
	assert.Contains(t, cutTables([]Table{outageTable(run)})[0].Note, "The first 200 of 5600.")
	assert.Equal(t, "5600 outages, together 10.00 s, the longest 3.00 s.", run.outages())
}
