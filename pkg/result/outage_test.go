package result

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMergeOutages: the outages that hosts do not list add up, and a warning says that there are some.
func TestMergeOutages(t *testing.T) {
	t.Parallel()
	one := &MoreOutages{Count: 3, Length: 30, Longest: 20, InDoubt: 2}
	other := &MoreOutages{Count: 4, Length: 40, Longest: 15, InDoubt: 5}
	r := &Result{}
	for _, more := range []*MoreOutages{nil, one, nil, other} {
		r.mergeOutages(&Result{Head: Head{Shard: &Shard{1, 2}}, MoreOutages: more})
	}
	require.Equal(t, &MoreOutages{Count: 7, Length: 70, Longest: 20, InDoubt: 7}, r.MoreOutages)
	require.Len(t, r.Outcome.Warnings, 2)
	require.Contains(t, r.Outcome.Warnings[0], "3 outages are not listed")
	require.EqualValues(t, 3, one.Count, "the parts stay as they are")
}
