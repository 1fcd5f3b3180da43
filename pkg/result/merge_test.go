package result

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// split deals the messages of a run out to several runs, as several load hosts would have seen them.
func split(t *testing.T, whole *Result, n int) []*Result {
	t.Helper()
	random := rand.New(rand.NewPCG(9, 9))
	parts := make([]*Result, n)
	for i := range parts {
		p := &Result{
			Head: whole.Head, Complete: true, End: whole.End + int64(i), Measured: &Counts{}, Outcome: Outcome{Success: true, Reason: "duration reached"},
		}
		p.Shard, p.Host.Name = &Shard{i + 1, n}, "host-"+string(rune('1'+i))
		p.Expected, p.Missing = new(uint64), new(uint64)
		parts[i] = p
	}
	for r := range whole.Rows {
		row := &whole.Rows[r]
		rows := make([]Row, n)
		for i := range rows {
			rows[i] = Row{
				Step: row.Step, Phase: row.Phase, Time: row.Time, Elapsed: row.Elapsed, Length: row.Length,
				Counts: Counts{Producers: &Producers{}, Consumers: &Consumers{}}, Tester: Tester{CPU: 10, Cores: 1},
			}
		}
		for m := range row.Producers.Sent {
			p := rows[m%uint64(n)].Producers
			p.Sent++
			p.Completed++
		}
		for m := range row.Consumers.Received {
			rows[m%uint64(n)].Consumers.Received++
		}
		for k, from := range row.Latencies {
			if from == nil {
				continue
			}
			hists, longest := make([]*Histogram, n), make([]int64, n)
			for i := range hists {
				hists[i] = &Histogram{}
			}
			for _, bar := range from.Histogram.Bars() {
				for range bar.Count {
					i := random.IntN(n)
					hists[i].Record(bar.UpTo, 1)
					longest[i] = min(bar.UpTo, from.Max)
				}
			}
			for i := range rows {
				sum := from.Sum / int64(n)
				if i == 0 {
					sum += from.Sum % int64(n)
				}
				rows[i].Latencies[k] = ofHistogram(hists[i], sum, longest[i])
			}
		}
		for i, p := range parts {
			p.Total.Add(&rows[i].Counts)
			if row.Phase != Warmup {
				p.Measured.Add(&rows[i].Counts)
				p.Latencies.add(&rows[i].Latencies)
			}
			p.Rows = append(p.Rows, rows[i])
		}
	}
	for _, p := range parts {
		p.Steps = []Step{{Name: "load", Start: p.Start, End: p.End, Counts: p.Total, Measured: p.Measured, Latencies: p.Latencies}}
	}
	return parts
}

// Five parts of one run, written, read and merged, are that run: counts, histograms and rows.
func TestMergeOfPartsIsTheWhole(t *testing.T) {
	t.Parallel()
	whole := sample(t, 11, 5, 500)
	for i := range whole.Rows {
		whole.Rows[i].Leftover, whole.Rows[i].Consumers.Redelivered, whole.Rows[i].Producers.Blocked = nil, 0, 0
	}
	var parts []*Result
	for i, p := range split(t, whole, 5) {
		p.Start += int64(i) * 90_000 // they do not begin at the same moment
		for r := range p.Rows {
			p.Rows[r].Time += int64(i) * 90_000
		}
		read := musttest.Get(ReadHistograms(write(t, p)))(t)
		parts = append(parts, read)
	}
	before := asJSON(t, parts)
	got := musttest.Get(Merge(parts...))(t)
	require.Equal(t, before, asJSON(t, parts), "the parts stay as they are")
	require.Equal(t, whole.Total.Producers.Sent, got.Total.Producers.Sent)
	require.Equal(t, whole.Total.Consumers.Received, got.Total.Consumers.Received)
	require.Equal(t, asJSON(t, whole.Latencies), asJSON(t, got.Latencies))
	require.Equal(t, asJSON(t, whole.Latencies), asJSON(t, got.Steps[0].Latencies))
	require.Equal(t, asJSON(t, whole.Measured.Producers.Sent), asJSON(t, got.Steps[0].Measured.Producers.Sent))
	require.Len(t, got.Rows, len(whole.Rows))
	for i := range got.Rows {
		require.Equal(t, asJSON(t, whole.Rows[i].Producers.Sent), asJSON(t, got.Rows[i].Producers.Sent))
		require.Equal(t, asJSON(t, whole.Rows[i].Latencies), asJSON(t, got.Rows[i].Latencies))
		require.EqualValues(t, second, got.Rows[i].Length)
		require.Equal(t, whole.Rows[i].Time, got.Rows[i].Time, "the parts' clocks are shifted to the same second")
		require.Equal(t, Tester{CPU: 50, Cores: 5}, got.Rows[i].Tester)
	}
	require.Len(t, got.Parts, 5)
	require.True(t, got.Outcome.Success)
	require.Equal(t, "duration reached", got.Outcome.Reason)
	require.Equal(t, whole.Start, got.Start)

	again := musttest.Get(Merge(parts[4], parts[2], parts[0], parts[1], parts[3]))(t)
	require.Equal(t, asJSON(t, got), asJSON(t, again), "in whatever order")
}

// Runs that began seconds apart are aligned by the wall clock, also where a row is cut a little early or late.
func TestMergeAligns(t *testing.T) {
	t.Parallel()
	part := func(number int, start, jitter int64, seconds int) *Result {
		r := &Result{Head: sampleHead(), Complete: true, Outcome: Outcome{Success: true}}
		r.Shard, r.Start = &Shard{number, 2}, sampleStart().UnixMicro()+start
		last := int64(0)
		for i := range seconds {
			end := int64(i+1)*second + jitter*int64(1-2*(i%2))
			r.Rows = append(r.Rows, Row{
				Step: "load", Phase: Measure, Elapsed: end, Length: end - last, Time: r.Start + end, Counts: Counts{Producers: &Producers{Sent: 10}}, Disconnected: i,
				Groups: []RowGroup{{Name: fmt.Sprint("of ", number), Counts: Counts{Producers: &Producers{Sent: 4}}}, {Name: "both", Counts: Counts{Producers: &Producers{Sent: 6}}}},
			})
			last = end
		}
		return r
	}
	got := musttest.Get(Merge(part(1, 0, 200_000, 5), part(2, 2_490_000, -200_000, 5)))(t)
	var sent []uint64
	for _, row := range got.Rows {
		sent = append(sent, row.Producers.Sent)
	}
	require.Equal(t, []uint64{10, 10, 20, 20, 20, 10, 10}, sent)
	var disconnected []int
	for _, row := range got.Rows {
		disconnected = append(disconnected, row.Disconnected)
	}
	require.Equal(t, []int{0, 1, 2, 4, 6, 3, 4}, disconnected)
	groups := map[string]uint64{}
	for _, g := range got.Rows[2].Groups {
		groups[g.Name] = g.Producers.Sent
	}
	require.Equal(t, map[string]uint64{"of 1": 4, "of 2": 4, "both": 12}, groups)
	require.Nil(t, got.Measured, "where one does not know it")
}

// A part that a threshold ended early shows.
func TestMergeAborted(t *testing.T) {
	t.Parallel()
	parts := []*Result{
		{Head: sampleHead(), Complete: true, Outcome: Outcome{Success: true}},
		{Head: sampleHead(), Complete: true, Outcome: Outcome{Success: true, Aborted: true}},
	}
	parts[0].Shard, parts[1].Shard, parts[1].Host.Name = &Shard{1, 2}, &Shard{2, 2}, "other"
	got := musttest.Get(Merge(parts...))(t)
	require.True(t, got.Outcome.Aborted)
	require.Equal(t, "other (shard 2): ended early by a threshold, so that a part of its load was not offered", got.Outcome.Warnings[0])
}

// Results that do not belong together are refused; a value that is not known of one is not known of all.
func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	a, b := sample(t, 1, 2, 10), sample(t, 2, 2, 10)
	_, err := Merge()
	require.ErrorIs(t, err, ErrUnlike)
	_, err = Merge(a, b)
	require.ErrorContains(t, err, "is not divided into shards")
	a.Shard, b.Shard = &Shard{1, 3}, &Shard{1, 3}
	_, err = Merge(a, b)
	require.ErrorContains(t, err, "shard 1/3 is there twice")
	b.Shard = &Shard{2, 3}
	merged := musttest.Get(Merge(a, b))(t)
	require.Nil(t, merged.Verification)
	require.EqualValues(t, 4, *merged.Missing)
	require.Len(t, merged.Workers, 4)
	require.Len(t, merged.Findings, 2)
	require.EqualValues(t, 6, merged.Errors[0].Count)
	require.EqualValues(t, 14, merged.Protocol["tx-checks"])
	require.Equal(t, []string{"host-1 (shard 1): messages lost: 2", "host-1 (shard 2): messages lost: 2"}, merged.Outcome.Problems)
	require.Equal(t, "shards are missing: 3/3", merged.Outcome.Warnings[len(merged.Outcome.Warnings)-1])

	b.Expected = nil
	merged = musttest.Get(Merge(a, b))(t)
	require.Nil(t, merged.Expected)

	b.PlanHash = "other"
	_, err = Merge(a, b)
	require.ErrorIs(t, err, ErrUnlike)
	require.ErrorContains(t, err, "has another plan than")

	// Rows without histograms: percentiles of the second are not known any more, all else is.
	c := sample(t, 3, 2, 10)
	c.Shard = &Shard{3, 3}
	c.Rows[1] = *c.Rows[1].Bare()
	merged = musttest.Get(Merge(a, c))(t)
	require.NotNil(t, merged.Rows[0].Latencies[Ack].Percentiles)
	require.Nil(t, merged.Rows[1].Latencies[Ack].Percentiles)
	require.EqualValues(t, 20, merged.Rows[1].Latencies[Ack].Count)
}

// The limit of merged results is the limit that held longest, with its host.
func TestMergedLimit(t *testing.T) {
	none := &Limit{Kind: LimitNone, Share: 1, Text: "the rate was reached"}
	little := &Limit{Kind: "credit", Share: 0.5, Text: "waited", Hint: "try"}
	much := &Limit{Kind: "max-pending", Share: 0.75, Text: "waited more"}
	for _, tt := range []struct {
		name  string
		parts []*Limit
		want  *Limit
	}{
		{"not judged", []*Limit{nil, nil}, nil},
		{"one was not judged", []*Limit{none, nil}, none},
		{"none", []*Limit{none, none}, none},
		{"one has one", []*Limit{none, little, none}, &Limit{Kind: "credit", Share: 0.5, Text: "host: waited", Hint: "try"}},
		{"the longest", []*Limit{little, much, little}, &Limit{Kind: "max-pending", Share: 0.75, Text: "host: waited more"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got *Limit
			for _, part := range tt.parts {
				got = mergedLimit(got, part, "host")
			}
			require.Equal(t, tt.want, got)
		})
	}
	require.Equal(t, "waited", little.Text, "the parts stay")
}

// Any failure is graver than a broken threshold, and that than an interruption.
func TestGraver(t *testing.T) {
	order := []int{StatusOK, StatusInterrupted, StatusUndecided, StatusThreshold, StatusFailed, StatusConnect, StatusUsage}
	for i, a := range order {
		for j, b := range order {
			require.Equal(t, order[max(i, j)], Graver(a, b))
		}
	}
}
