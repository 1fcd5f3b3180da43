package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{
		"2/5": {2, 5}, "1/1": {1, 1}, " 3 / 3 ": {3, 3}, "5": {0, 5}, "1000/1000": {1000, 1000},
		"0/5": {}, "6/5": {}, "0": {}, "-1/5": {}, "2/0": {}, "1001": {}, "": {}, "a/5": {}, "2/": {}, "/5": {}, "2/5/1": {},
	} {
		got, err := ParseShard(text)
		require.Equal(t, want, got, text)
		require.Equal(t, want == Shard{}, err != nil, text)
	}
	s, err := Shard{Of: 3}.At("0")
	require.NoError(t, err)
	require.Equal(t, Shard{1, 3}, s)
	require.Equal(t, "1/3", s.String())
	for _, index := range []string{"3", "-1", "", "x"} {
		_, err = Shard{Of: 3}.At(index)
		require.EqualError(t, err, "is not from 0 to 2", index)
	}
}

// Every worker is in one shard.
func TestShardsShareTheWorkers(t *testing.T) {
	for worker := range 23 {
		owners := 0
		for number := 1; number <= 5; number++ {
			if (Shard{number, 5}).Has(worker) {
				owners++
			}
		}
		require.Equal(t, 1, owners)
		require.True(t, Shard{}.Has(worker))
	}
}

func TestParseMoment(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-03-01T12:00:00Z": at, "2026-03-01T13:00:00+01:00": at, "2026-03-01T12:00:00.5Z": at.Add(500 * time.Millisecond),
		"1772366400": at,
	} {
		m, err := ParseMoment(text)
		require.NoError(t, err, text)
		require.True(t, want.Equal(m.At), "%s: %s", text, m.At)
	}
	for text, want := range map[string]time.Duration{"+10s": 10 * time.Second, "+90": 90 * time.Second, "+1m30s": 90 * time.Second} {
		m, err := ParseMoment(text)
		require.NoError(t, err)
		require.Equal(t, at.Add(want), m.Of(at))
	}
	for _, text := range []string{"", "now", "12:00", "+0", "+-5s", "-10s", "2026-03-01", "2026-03-01T12:00:00", "1772366400.5", "1e9", "99999999999999"} {
		_, err := ParseMoment(text)
		require.Error(t, err, text)
	}
	require.Nil(t, Moment{}.Mistake(at))
	require.Nil(t, Moment{At: at.Add(time.Second)}.Mistake(at))
	require.Contains(t, Moment{At: at.Add(-2 * time.Second)}.Mistake(at).Text, "--start-at 2026-03-01T11:59:58Z is not within 24h0m0s from now")
	require.Contains(t, Moment{In: 25 * time.Hour}.Mistake(at).Text, "not within")
}

func TestRunNumber(t *testing.T) {
	require.EqualValues(t, 42, RunNumber("42"))
	for _, name := range []string{"0", "-1", "job-7", "9223372036854775808", "007x"} {
		n := RunNumber(name)
		require.Positive(t, n, name)
		require.Equal(t, n, RunNumber(name))
		require.NotEqual(t, n, RunNumber(name+" "))
	}
}
