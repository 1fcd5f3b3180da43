package compare

import (
	"encoding/csv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

// testdata/recorded.csv has runs of 3 s each with 10 messages in flight over AMQP, made in turn on a machine with two
// processors that had other work to do: of the embedded broker told to serve 5000 msg/s (fast), told to serve 4000
// (slow), and of Artemis as fast as it goes.
const recorded = "testdata/recorded.csv"

// TestRecordedRuns: of 100 pairs of sets of ten runs drawn from those of one broker, at most 10 show a difference; of
// 100 with one set from a broker that is slower by 20%, at least 95 do.
func TestRecordedRuns(t *testing.T) {
	runs := readRuns(t)
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // must be repeatable
	draw := func(from []*result.Result, n int) (list []*result.Result) {
		for _, i := range random.Perm(len(from))[:n] {
			list = append(list, from[i])
		}
		return list
	}
	different := func(pair func() (a, b []*result.Result)) (n int) {
		for range 100 {
			a, b := pair()
			rows := New([]Set{{Repeats: a}, {Repeats: b}}, Usual()).Rows
			for i := range rows {
				if v := rows[i].Cells[1].Verdict; v == Better || v == Worse {
					n++
					break
				}
			}
		}
		return n
	}
	for _, name := range []string{"fast", "slow", "artemis"} {
		require.Len(t, runs[name], 100)
		require.LessOrEqual(t, different(func() (a, b []*result.Result) {
			both := draw(runs[name], 20)
			return both[:10], both[10:]
		}), 10, name)
	}
	require.GreaterOrEqual(t, different(func() (a, b []*result.Result) {
		return draw(runs["fast"], 10), draw(runs["slow"], 10)
	}), 95)
}

// readRuns returns the recorded runs by broker, as results that have these figures and no other.
func readRuns(t *testing.T) map[string][]*result.Result {
	t.Helper()
	f, err := os.Open(recorded)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	for i, m := range Usual() {
		require.Equal(t, m.Name, lines[0][i+1])
	}
	runs := map[string][]*result.Result{}
	for _, line := range lines[1:] {
		value := func(column int) *float64 {
			if line[column] == "" {
				return nil
			}
			v, err := strconv.ParseFloat(line[column], 64)
			require.NoError(t, err)
			return &v
		}
		latency := func(p50, p99 *float64) *result.Latency {
			if p99 == nil {
				return nil
			}
			p := &result.Percentiles{P99: int64(*p99)}
			if p50 != nil {
				p.P50 = int64(*p50)
			}
			return &result.Latency{Count: 1, Percentiles: p}
		}
		runs[line[0]] = append(runs[line[0]], &result.Result{
			Complete: true,
			Figures:  &result.Figures{Completed: value(1), Received: value(2)},
			Latencies: result.Latencies{
				result.Ack: latency(value(3), value(4)), result.Response: latency(nil, value(5)), result.Transfer: latency(nil, value(6)),
			},
		})
	}
	return runs
}
