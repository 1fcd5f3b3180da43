package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
	"github.com/perfmq/perfmq/pkg/result/resulttest"
)

// groupRun returns a run of three seconds; the first is a warm-up. Each second, group i of n sends 10*(i+1) messages
// that take (i+1) ms each, and one of them fails. An additional group receives in the last second.
func groupRun(n int) *fakeRun {
	run := clientRun()
	run.Scenario, run.Steps, run.Warmup = "groups", []string{"load"}, time.Second
	f := &fakeRun{run: run, summary: summary(stats.Counters{}, noLatencies())}
	for i := range n {
		f.run.Groups = append(f.run.Groups, stats.RunGroup{Name: fmt.Sprintf("senders-%d", i), Sends: true})
	}
	f.run.Groups = append(f.run.Groups, stats.RunGroup{Name: "readers", Receives: true})
	totals := make([]stats.Counters, len(f.run.Groups))
	var whole stats.Counters
	for second := range 3 {
		phase, all := stats.Measure, noLatencies()
		if second == 0 {
			phase = stats.Warmup
		}
		var delta stats.Counters
		var rows result.Row
		for i, g := range f.run.Groups {
			var own stats.Counters
			var latencies result.Latencies
			l := result.NewLatency()
			switch {
			case g.Sends:
				sent := uint64(10 * (i + 1))
				own = stats.Counters{result.Sent: sent, result.Completed: sent - 1, result.Failed: 1}
				for range sent - 1 {
					l.Record(time.Duration(i+1) * time.Millisecond)
				}
				latencies[result.Ack] = l
			case second == 2:
				own = stats.Counters{result.Received: 7, result.Redelivered: 2}
				l.Record(3 * time.Second)
				latencies[result.Transfer] = l
			}
			all.Merge(latencies)
			totals[i], delta = totals[i].Add(own), delta.Add(own)
			name := g.Name
			if i >= result.MaxRowGroups {
				name = result.OtherGroups
			}
			if latencies.Seal(); len(f.run.Groups) > 1 && own != (stats.Counters{}) {
				rows.AddGroup(&result.RowGroup{Name: name, Counts: own.Counts(g.Sends, g.Receives), Latencies: &latencies})
			}
		}
		from := loadStart().Add(time.Duration(second) * time.Second)
		s := between("load", phase, from, from.Add(time.Second), delta, all)
		whole = whole.Add(delta)
		s.Total, s.Groups = whole.Counts(true, true), rows.Groups
		f.snapshots = append(f.snapshots, s)
	}
	f.summary.Total = whole.Counts(true, true)
	for i, g := range f.run.Groups {
		f.summary.Groups = append(f.summary.Groups, stats.Summary{
			Name: g.Name, Sends: g.Sends, Receives: g.Receives,
			Result: result.Result{Total: totals[i].Counts(g.Sends, g.Receives), Measured: &result.Counts{}},
		})
	}
	return f
}

// Rows have the counts and latencies of each group that did something; they add up to the row.
func TestRowsOfGroups(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 2, 30} {
		r, dir := newTestResult(t, ResultOptions{})
		f := groupRun(n)
		f.feed(t, nil, r)
		require.NoError(t, r.Close())
		resulttest.Compile(t, result.Schema(), result.SchemaID).Validate(t, dir)
		got := musttest.Get(result.Read(dir))(t)
		require.Len(t, got.Rows, 3)
		for i := range got.Rows {
			row := &got.Rows[i]
			var names []string
			var sent, completed, failed, received uint64
			var acks int64
			for j := range row.Groups {
				g := &row.Groups[j]
				names = append(names, g.Name)
				if p := g.Producers; p != nil {
					sent, completed, failed = sent+p.Sent, completed+p.Completed, failed+p.Failed
					require.Nil(t, g.Latencies[result.Ack].Histogram)
					acks += g.Latencies[result.Ack].Count
				}
				if c := g.Consumers; c != nil {
					received += c.Received
				}
				if j < min(n, result.MaxRowGroups) {
					require.EqualValues(t, 10*(j+1), g.Producers.Sent)
					require.Nil(t, g.Consumers)
					require.EqualValues(t, 1000*(j+1), g.Latencies[result.Ack].Max)
					require.NotNil(t, g.Latencies[result.Ack].Percentiles)
				}
			}
			switch {
			case n == 0:
				require.Empty(t, names, "one group is the row")
				continue
			case n == 2 && i < 2:
				require.Equal(t, []string{"senders-0", "senders-1"}, names, "readers did nothing")
			case n == 2:
				require.Equal(t, []string{"senders-0", "senders-1", "readers"}, names)
				require.EqualValues(t, 2, row.Groups[2].Consumers.Redelivered)
				require.EqualValues(t, 3_000_000, row.Groups[2].Latencies[result.Transfer].Max)
			default:
				require.Len(t, names, result.MaxRowGroups+1)
				require.Equal(t, result.OtherGroups, names[result.MaxRowGroups])
			}
			require.Equal(t, []uint64{row.Producers.Sent, row.Producers.Completed, row.Producers.Failed, row.Consumers.Received},
				[]uint64{sent, completed, failed, received})
			require.Equal(t, row.Latencies[result.Ack].Count, acks)
		}
	}
}

// Each group has its series; groups without a name in rows have none.
func TestPrometheusGroups(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 30} {
		p, url := startPrometheus(t, groupRun(n).run)
		scrape(t, url).require(t, map[string]float64{
			"group_messages_sent_total group=senders-0": 0, "group_sends_failed_total group=senders-0": 0, "group_in_flight group=senders-0": 0,
		})
		f := groupRun(n)
		for _, s := range f.snapshots {
			require.NoError(t, p.Interval(s))
		}
		for _, ended := range []bool{false, true} {
			if ended {
				require.NoError(t, p.Summary(f.summary))
			}
			m := scrape(t, url)
			m.require(t, map[string]float64{
				"group_messages_sent_total group=senders-0": 30, "group_messages_completed_total group=senders-0": 27,
				"group_sends_failed_total group=senders-0": 3, "group_in_flight group=senders-0": 0,
			})
			if n < result.MaxRowGroups {
				m.require(t, map[string]float64{
					"group_messages_received_total group=readers": 7, "group_messages_redelivered_total group=readers": 2, "messages_received_total": 7,
				})
				require.EqualValues(t, 1, m.histograms["perfmq_group_transfer_seconds group=readers phase=measure"].GetSampleCount())
			}
			require.NotContains(t, m.values, "perfmq_group_messages_received_total group=senders-0")
			ack := m.histograms["perfmq_group_send_ack_seconds group=senders-0 phase=measure"]
			require.EqualValues(t, 18, ack.GetSampleCount(), "without the warm-up")
			require.InDelta(t, 0.018, ack.GetSampleSum(), 1e-9)
			series := 0
			for name := range m.values {
				if len(name) > 13 && name[:13] == "perfmq_group_" {
					series++
				}
			}
			require.LessOrEqual(t, series, 6*result.MaxRowGroups)
		}
	}
	// A run with one group, as from a command line, has no metrics per group.
	_, url := startPrometheus(t, groupRun(0).run)
	for name := range scrape(t, url).values {
		require.NotContains(t, name, "perfmq_group_")
	}
}
