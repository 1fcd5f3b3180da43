package merge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/verify"
)

// TestFollowWrongClocks: seconds between a clock of 1970 and one of a distant future are not judged one by one.
func TestFollowWrongClocks(t *testing.T) {
	const second, distant = 1_000_000, 9_000_000_000
	f := Follower{Say: func(string) {}, feeds: map[string]*feed{}}
	for i, at := range []int64{1, distant} {
		side := &verify.Side{ID: 1, Turn: true, Last: true, Window: second, At: at * second}
		f.feeds[string(rune('a'+i))] = &feed{number: i, queue: []*verify.Side{side}, at: side.At, ended: true}
	}
	require.Nil(t, f.judge())
	require.EqualValues(t, distant+1, f.turned)
	for _, d := range f.feeds {
		require.Empty(t, d.queue)
	}
}
