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
		"1 outage, after which no message came through.":                                           {open},
		"2 outages, together 2.80 s, the longest 2.00 s.":                                          {longer, ended},
		"2 outages; no message came through after 2 of them.":                                      {open, open},
		"3 outages, together 2.80 s, the longest 2.00 s; no message came through after 1 of them.": {longer, ended, open},
	} {
		assert.Equal(t, want, outageSentence(list, nil))
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
	table := outageTable(run)
	assert.Len(t, table.Rows, 50)
	assert.Contains(t, table.Note, "The first 50 of 600.")
	assert.Len(t, run.outageBands(), 500)
	run.Result.MoreOutages = &result.MoreOutages{Count: 5000, Length: 9_400_000, Longest: 3_000_000}
	assert.Contains(t, outageTable(run).Note, "The first 50 of 5600.")
	assert.Equal(t, "5600 outages, together 10.00 s, the longest 3.00 s.", outageSentence(r.Outages, run.Result.MoreOutages))
}

// TestSentencesOfSteps: rates are those of each step, since an average over sending and receiving tells nothing.
func TestSentencesOfSteps(t *testing.T) {
	t.Parallel()
	r := resultOf(t, usual())
	fast, slow := 2000.0, 500.0
	r.Total = result.Counts{Producers: &result.Producers{Sent: 2000, Completed: 2000}, Consumers: &result.Consumers{Received: 2000}}
	r.Steps = []result.Step{{
		Name: "fill", Start: r.Start, End: r.Start + 1_000_000, Figures: &result.Figures{Averages: result.Averages{Completed: &fast}},
		Counts: result.Counts{Producers: &result.Producers{Sent: 2000, Completed: 2000}},
	}, {
		Name: "read", Start: r.Start, End: r.Start + 4_000_000, Figures: &result.Figures{Averages: result.Averages{Received: &slow}},
		Counts: result.Counts{Consumers: &result.Consumers{Received: 2000}},
	}}
	run, err := newRun("run", r, 1)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"Sent 2,000 messages in 7.10 s; 2,000 were confirmed.",
		"Received 2,000.",
		"Step fill: sent 2,000 messages in 1.00 s; 2,000 were confirmed, 2,000/s on average.",
		"Step read: received 2,000, 500/s on average.",
	}, run.sentences()[:4])
}
