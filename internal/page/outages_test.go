package page

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestManyOutages: the numbers of outages in table and charts are bounded, and the table says so.
func TestManyOutages(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	for i := range 600 {
		r.Outages = append(r.Outages, result.Outage{Elapsed: int64(i) * 10_000, Length: 1000, Workers: []string{"producer-0"}, Class: "connection-lost"})
	}
	run := newRun("run", r, 1)
	table := cutTables([]Table{outageTable(run)})[0]
	assert.Len(t, table.Rows, maxItems)
	assert.Contains(t, table.Note, "The first 200 of 600.")
	assert.Len(t, run.outageBands(), maxItems)
	run.Result.MoreOutages = &result.MoreOutages{Count: 5000, Length: 9_400_000, Longest: 3_000_000}
	assert.Contains(t, cutTables([]Table{outageTable(run)})[0].Note, "The first 200 of 5600.")
	assert.Equal(t, []string{"5600 outages, 10 s in all, the longest 3 s; the rate was not seen to recover after 600; over the whole run none: the rate was reached"}, run.limits())
}
