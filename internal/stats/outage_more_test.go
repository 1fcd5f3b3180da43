package stats_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// flap lets so many outages begin and end, each with two messages in doubt, a failed attempt and a worst response of
// its number; then so many seconds pass at that rate.
func (s *seconds) flap(outages, seconds int, completed uint64) {
	for range outages {
		number := s.outages.Lost("p", true, false, errors.New("gone"), s.now.Add(200*time.Millisecond))
		s.outages.InDoubt(number, 2)
		s.outages.Attempt(errors.New("refused"), time.Now())
		s.up()
		s.pass(completed, completed, seconds)
	}
}

// TestManyOutages: of more than 200 outages the first and the last hundred are listed, and all sums are exact.
func TestManyOutages(t *testing.T) {
	t.Parallel()
	const each = 201 * time.Millisecond
	s := newSeconds()
	s.pass(100, 100, 10)
	s.flap(200, 4, 100)
	require.Len(t, s.outages.List(time.Unix(1000, 0)), 200)
	require.Nil(t, s.outages.More())

	s.flap(300, 4, 100)
	list, more := s.outages.List(time.Unix(1000, 0)), s.outages.More()
	require.Len(t, list, 200)
	start := func(i int) time.Duration { return time.UnixMicro(list[i].Time).Sub(time.Unix(1010, 2e8)) }
	require.Equal(t, 99*4*time.Second, start(99))
	require.Equal(t, 400*4*time.Second, start(100))
	require.Equal(t, 499*4*time.Second, start(199))
	require.Equal(t, &result.MoreOutages{
		Count: 300, Length: 300 * each.Microseconds(), Longest: each.Microseconds(), InDoubt: 600,
	}, more)

	// What becomes of messages later counts for the same outage.
	for _, number := range []int{1, 100, 101, 400, 401, 500} {
		s.outages.InDoubt(number, 10)
		s.outages.Resent(number)
	}
	list, more = s.outages.List(time.Unix(1000, 0)), s.outages.More()
	require.EqualValues(t, 620, more.InDoubt)
	for _, i := range []int{0, 99, 100, 199} {
		require.EqualValues(t, 12, list[i].InDoubt)
		require.EqualValues(t, 1, list[i].Resent)
	}
	progress := s.pass(100, 100, 1).Outage
	require.Equal(t, 500, progress.Count)
	require.Equal(t, 500*each, progress.Length)
	require.EqualValues(t, 1060, progress.InDoubt)
	require.Equal(t, 501, s.outages.Lost("p", true, false, errors.New("gone"), s.now))
}
