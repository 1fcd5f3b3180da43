package compare

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/result"
)

// run is a result with that rate of completions and that median of ack.
func run(rate, ack float64) *result.Result {
	p := int64(ack)
	return &result.Result{
		Complete: true, Outcome: result.Outcome{Success: true},
		Figures:   &result.Figures{Completed: &rate},
		Latencies: result.Latencies{result.Ack: &result.Latency{Count: 10, Sum: 10 * p, Max: p, Percentiles: &result.Percentiles{P50: p, P99: p}}},
	}
}

func metrics(t *testing.T, names ...string) (list []threshold.Metric) {
	t.Helper()
	for _, name := range names {
		m, err := Find(name)
		require.NoError(t, err)
		list = append(list, m)
	}
	return list
}

// TestNames: what runs may lack, or has a baseline of 0, is not compared.
func TestNames(t *testing.T) {
	for _, name := range []string{"stall.max", "outage.max", "recovery.max", "completed.min", "received.max"} {
		_, err := Find(name)
		require.ErrorContains(t, err, "unknown metric", name)
	}
	metrics(t, "sent.avg", "ack.max", "transfer.p99.9")
}

// TestEnough: the least probability of n against n values is 2/C(2n,n).
func TestEnough(t *testing.T) {
	assert.Equal(t, 4, Enough(1)) // 2/70
	assert.Equal(t, 5, Enough(2)) // 2/252
	assert.Equal(t, 5, Enough(6)) // 0.0079 against 0.0083
	assert.Equal(t, 6, Enough(7))
}

// TestVerdicts: of a rate more is better, of a latency less; too few repeats are no equality.
func TestVerdicts(t *testing.T) {
	repeats := func(n int, rate, ack float64) (list []*result.Result) {
		for i := range n {
			list = append(list, run(rate+float64(i), ack+float64(i)))
		}
		return list
	}
	for name, c := range map[string]struct {
		a, b      []*result.Result
		rate, ack string
	}{
		"faster":        {repeats(5, 1000, 100), repeats(5, 2000, 50), Better, Better},
		"one of two":    {repeats(5, 1000, 100), repeats(5, 900, 100), Worse, Same},
		"the same":      {repeats(9, 1000, 100), repeats(9, 1000, 100), Same, Same},
		"four runs":     {repeats(4, 1000, 100), repeats(4, 2000, 50), TooFew, TooFew},
		"four of seven": {repeats(4, 1000, 100), repeats(7, 2000, 50), Better, Better},
	} {
		t.Run(name, func(t *testing.T) {
			rows := New([]Set{{Repeats: c.a}, {Repeats: c.b}}, metrics(t, "completed.avg", "ack.p99")).Rows
			assert.Equal(t, c.rate, rows[0].Cells[1].Verdict)
			assert.Equal(t, c.ack, rows[1].Cells[1].Verdict)
		})
	}
}

// TestHeadline: one sentence says which set is faster, by how much, and how sure that is.
func TestHeadline(t *testing.T) {
	repeats := func(name string, n int, rate, ack float64) (s Set) {
		s.Name = name
		for i := range n {
			s.Repeats = append(s.Repeats, run(rate+float64(i), ack+float64(i)))
		}
		return s
	}
	old := func(n int) Set { return repeats("old", n, 1000, 100) }
	for want, sets := range map[[2]string][]Set{
		{"good", "new is faster than old: completed.avg +99.8% (95% interval +99.4% to +100.2%, p=0.008), ack.p99 -49.0%"}:                                                      {old(5), repeats("new", 5, 2000, 50)},
		{"bad", "new is slower than old: completed.avg -10.0% (95% interval -10.3% to -9.7%, p=0.008)"}:                                                                         {old(5), repeats("new", 5, 900, 100)},
		{"warn", "new is better than old: completed.avg +99.8% (95% interval +99.4% to +100.2%, p=0.008); and worse: ack.p99 +98.0% (95% interval +94.2% to +102.0%, p=0.008)"}: {old(5), repeats("new", 5, 2000, 200)},
		{"live", "No difference found between new and old in 2 metrics"}:                                                                                                        {old(9), repeats("new", 9, 1000, 100)},
		{"warn", "Too few repeats to tell between new and old: 5 runs of each are enough"}:                                                                                      {old(2), repeats("new", 2, 2000, 50)},
		{"warn", "new and old have no metric in common"}:                                                                                                                        {old(2), {Name: "new", Repeats: []*result.Result{{}}}},
	} {
		mark, text := New(sets, metrics(t, "completed.avg", "ack.p99")).Headline(1)
		assert.Equal(t, want, [2]string{mark, text})
	}
	memory := metrics(t, "ack.p99")
	memory[0].Unit = threshold.Bytes
	_, text := New([]Set{old(5), repeats("new", 5, 1000, 200)}, memory).Headline(1)
	assert.Contains(t, text, "new is worse than old: ack.p99")
	low, high := changes([]float64{100, 102, 104}, []float64{150})
	assert.InDeltaSlice(t, []float64{46. / 104, 0.5}, []float64{low, high}, 1e-12, "of few, all pairs")
}

// TestLimits: a limit is exceeded by a change that is no chance and goes its way.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		limit    string
		change   float64
		verdict  string
		exceeded bool
		unknown  bool
	}{
		{"ack.p99 +10%", 0.11, Worse, true, false},
		{"ack.p99 +10%", 0.09, Worse, false, false},
		{"ack.p99 +10%", 0.5, Same, false, false},
		{"ack.p99 +10%", -0.5, Better, false, false},
		{" completed.avg  -2.5% ", -0.026, Worse, true, false},
		{"completed.avg -2.5%", 0.3, Better, false, false},
		{"ack.p99 +10%", 0.5, TooFew, false, true},
		{"ack.p99 +10%", 0, Unknown, false, true},
	} {
		l, err := ParseLimit(c.limit)
		require.NoError(t, err)
		exceeded, unknown := l.exceeded(&Cell{}, &Cell{Change: c.change, Verdict: c.verdict})
		assert.Equal(t, c.exceeded, exceeded, c)
		assert.Equal(t, c.unknown, unknown != "", c)
	}
	for text, want := range map[string]string{
		"ack.p99":          `"ack.p99" must be a metric and a change, such as 'ack.p99 +10%'`,
		"ack.p99 10%":      `"ack.p99 10%" must be a metric and a change, such as 'ack.p99 +10%'`,
		"ack.p98 +10%":     `unknown metric "ack.p98"; did you mean ack.p90?`,
		"completd.avg -5%": `unknown metric "completd.avg"; did you mean completed.avg?`,
	} {
		_, err := ParseLimit(text)
		require.EqualError(t, err, want)
	}
}

// TestDifferences: what differs is shown, and of plans all counts but where the brokers were.
func TestDifferences(t *testing.T) {
	options := ""
	one := func(url, rate, heap string, cpus int) *result.Result {
		return &result.Result{Head: result.Head{
			Plan:   []byte(`{"steps":[{"name":"load","groups":[{"broker":{"url":"` + url + `"` + options + `},"rate":"` + rate + `"}]}]}`),
			Labels: map[string]string{"heap": heap}, Host: result.Host{CPUs: cpus},
		}}
	}
	a := Set{Name: "a", Repeats: []*result.Result{one("amqp://x", "5", "1g", 2), one("amqp://x", "5", "1g", 4)}}
	b := Set{Name: "b", Repeats: []*result.Result{one("amqp://y", "6", "2g", 2)}}
	list := differences([]Set{a, b})
	assert.Equal(t, []Difference{
		{Kind: "plan", Name: "steps.load.groups.1.broker.url", Values: []string{"amqp://x", "amqp://y"}},
		{Kind: "plan", Name: "steps.load.groups.1.rate", Values: []string{"5", "6"}},
		{Kind: "label", Name: "heap", Values: []string{"1g", "2g"}},
		{Kind: "machine", Name: "processors", Values: []string{"2, 4", "2"}},
	}, list)
	assert.Equal(t, list[1:2], Unlike(list))
	assert.Empty(t, differences([]Set{b, b}))

	options = `,"options":{"declare":"no","compress":"false"}` // of which b's version has none
	list = Unlike(differences([]Set{{Name: "a", Repeats: []*result.Result{one("amqp://x", "6", "2g", 2)}}, b}))
	assert.Equal(t, []Difference{
		{Kind: "plan", Name: "steps.load.groups.1.broker.options.declare", Values: []string{"no", ""}},
	}, list)
}

// TestBoundedRuns: with perfmq as the limit a rate is a lower bound: the first line counts these runs, the cell is marked,
// and a difference that a higher rate would end is inconclusive. Latencies are compared as usual.
func TestBoundedRuns(t *testing.T) {
	set := func(name string, rate float64, kind string, ofStep bool) Set {
		s := Set{Name: name}
		for i := range 5 {
			r := run(rate+float64(i), 1000/rate*float64(100+i))
			if r.Limit = (&result.Limit{Kind: kind}); ofStep {
				r.Limit, r.Steps = &result.Limit{Kind: "broker"}, []result.Step{{Limit: &result.Limit{Kind: "none"}}, {Limit: r.Limit}}
			}
			s.Repeats = append(s.Repeats, r)
		}
		return s
	}
	for _, c := range []struct {
		kind    string // of the limit of the slower set
		ofStep  bool
		verdict string // of the faster set, by its rate
	}{
		{"tester-worker", false, Bound}, {"machine", true, Bound}, {"broker", false, Better}, {"none", true, Better},
	} {
		sets := []Set{set("a", 1000, c.kind, c.ofStep), set("b", 2000, "none", false)}
		all := New(sets, metrics(t, "completed.avg", "ack.p99"))
		rows := all.Rows
		require.Equal(t, c.verdict, rows[0].Cells[1].Verdict, c.kind)
		require.Equal(t, Better, rows[1].Cells[1].Verdict, "a latency is no rate")
		bounded := c.verdict == Bound
		require.Equal(t, bounded, rows[0].Cells[0].AtLeast)
		require.False(t, rows[1].Cells[0].AtLeast)
		const first = "perfmq was the limit of 5 of 10 runs, so their rates are lower bounds\n"
		var text strings.Builder
		require.NoError(t, all.Write(&text))
		require.Equal(t, bounded, strings.HasPrefix(text.String(), first), text.String())
		require.Equal(t, bounded, strings.Contains(text.String(), "completed.avg   at least 1002/s"), text.String())
		if bounded {
			require.Contains(t, text.String(), "inconclusive: perfmq was the limit, so this rate is a lower bound: completed.avg")
		}
	}
}

func TestNamesOf(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"a", "b"}, NamesOf([]string{"x/a", "y/b/"}))
	assert.Equal(t, []string{"x/a", "y/a"}, NamesOf([]string{"x/a", "y/a"}))
	assert.Equal(t, []string{"a", "a"}, NamesOf([]string{"a", "a"}))
	assert.Equal(t, []string{"run"}, NamesOf([]string{"."}))
}
