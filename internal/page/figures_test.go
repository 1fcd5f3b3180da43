package page

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/result"
)

func pointer[T any](v T) *T { return &v }

// watched adds a broker's use to a result: in each row except the third half a processor, 3 MB written, and one more MB
// of memory and heap; in the fourth a warning.
func watched(r *result.Result) {
	for i := range r.Rows {
		if i == 2 { // no figures
			continue
		}
		length := uint64(r.Rows[i].Length) //nolint:gosec // not negative
		u := &result.BrokerUse{
			Span: r.Rows[i].Length, CPU: pointer(length / 2), CPUSpan: r.Rows[i].Length, CollectionTime: pointer(length / 50),
			DiskBusy: pointer(0.2), DiskWritten: pointer(3 * length), NetIn: pointer(length + length/2), Warnings: pointer(uint64(0)),
			Memory: pointer(uint64(501+i) * 1e6), Heap: pointer(uint64(247+i) * 1e6), Threads: pointer(uint64(40 + i)),
		}
		if i == 3 {
			*u.Warnings = 1
		}
		r.Rows[i].BrokerSide = u
	}
	r.BrokerSide = []result.BrokerSide{{
		Sources: []string{"process 7 (java)"}, CPUMost: pointer(0.5), FirstWarning: "a slow disk",
		Whole: result.BrokerUse{
			Span: 6_100_000, CPU: pointer(uint64(3_050_000)), CPUSpan: 6_100_000, Collections: pointer(uint64(4)), CollectionTime: pointer(uint64(122_000)),
			DiskBusy: pointer(0.2), DiskWritten: pointer(uint64(18_300_000)), NetIn: pointer(uint64(9_150_000)), Warnings: pointer(uint64(1)),
			Memory: pointer(uint64(508e6)), Heap: pointer(uint64(254e6)),
		},
		Events: []result.BrokerEvent{{Time: r.Start + 2_500_000, Text: "the broker's process 7 (java) has ended"}}, Notes: []string{"a note"},
	}}
	r.Marks = []result.Mark{{Step: "load", Of: "completed", Messages: 500, Elapsed: 5_750_000, Average: 86.96, Momentary: 200}}
}

// TestThinnedSide: in a point of several seconds, an amount is averaged over the time with figures, and a state is the
// highest; both keep the lowest and highest second.
func TestThinnedSide(t *testing.T) {
	t.Parallel()
	s := &series{limit: 2}
	for i, cpu := range []int64{250_000, 750_000, -1, 100_000, 300_000, -1, -1, -1} {
		row := rowsOf([]load{{step: "load", phase: result.Measure, backlog: -1}})[0]
		row.Elapsed = int64(i+1) * second
		if cpu >= 0 {
			row.BrokerSide = &result.BrokerUse{
				Span: second, CPU: pointer(uint64(cpu)), CPUSpan: second, Memory: pointer(uint64(cpu) * 1000), //nolint:gosec // not negative
			}
		}
		s.add(&row)
	}
	require.Len(t, s.points, 4)
	r := &Run{series: s, Result: &result.Result{}}
	list := map[string]curve{}
	for _, c := range r.curves() {
		list[c.Name] = c
	}
	for name, want := range map[string]curve{
		"process": {Value: []number64{0.5, 0.1, 0.3}, Low: []number64{0.25, 0.1, 0.3}, High: []number64{0.75, 0.1, 0.3}},
		"memory":  {Value: []number64{750, 100, 300}, Low: []number64{250, 100, 300}, High: []number64{750, 100, 300}},
	} {
		got := list[name]
		assert.Equal(t, want, curve{Value: got.Value[:3], Low: got.Low[:3], High: got.High[:3]}, name)
		assert.True(t, math.IsNaN(float64(got.Value[3])), "nothing is known")
	}
}
