package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	findings "github.com/perfmq/perfmq/pkg/result"
)

// inOutage explains each message while it is set.
type inOutage struct{ now, receiving bool }

func (o *inOutage) Explain() bool   { return o.now }
func (o *inOutage) Receiving() bool { return o.receiving }

// TestAfterOutage: of c copies of a message, e of them marked or after an outage, the lesser of e and c-1 are explained,
// if there was an outage, in whatever order the consumers hand their messages over.
func TestAfterOutage(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		const messages = 40
		tracker := NewTracker()
		outage := inOutage{receiving: i%4 > 0}
		var consumers []*Checker
		for range 3 {
			c := NewChecker(tracker, 1)
			tracker.Reconnecting(&outage)
			consumers = append(consumers, c)
		}
		var copies, marked, explained [messages]uint64
		for range 100 {
			n := random.Int64N(messages)
			d := driver.Delivery{ID: driver.ID{Run: 1, Number: n}, Redelivered: random.IntN(4) == 0}
			d.ID.Sum = Sum(d.ID, BodySum(nil))
			outage.now = outage.receiving && random.IntN(3) == 0
			require.Equal(t, Own, consumers[random.IntN(3)].Check(&d, 1))
			copies[n]++
			if d.Redelivered {
				marked[n]++
			}
			if d.Redelivered || outage.now {
				explained[n]++
			}
			if random.IntN(10) == 0 {
				consumers[random.IntN(3)].flush()
			}
		}
		var duplicates, redelivered, after uint64
		for n, c := range copies {
			more := max(c, 1) - 1
			duplicates += more
			redelivered += min(marked[n], more)
			after += min(explained[n], more)
		}
		if !outage.receiving {
			after = 0
		}
		p := tracker.Progress(1)
		require.Equal(t, []uint64{duplicates, redelivered, after}, []uint64{p.Duplicates, p.Redelivered, p.AfterOutage})
		s := tracker.Seal().Streams[0]
		require.Equal(t, []uint64{duplicates, redelivered, after}, []uint64{s.Duplicates, s.Redelivered, s.AfterOutage})
		outaged := uint64(0)
		for _, set := range s.Outaged {
			outaged += set.GetCardinality()
		}
		require.Equal(t, after, outaged)
	}
}

// TestLostBefore: each lost message counts for the first mark after it, over all subscriptions of a topic.
func TestLostBefore(t *testing.T) {
	t.Parallel()
	dest := driver.Destination{Kind: driver.Topic, Name: "t"}
	ledger := NewLedger(1, 0, dest, BodySum(nil))
	for range 50 {
		ledger.Next(0)
	}
	sent := ledger.Seal(nil)
	sent.Marks = []Bounds{{To: 10}, {To: 10}, {To: 30}}
	side := &Side{ID: 1, Sent: []*Sent{sent}}
	lost := map[string][]int64{"a": {3, 9, 12, 29, 30, 44}, "b": {9, 10, 49}}
	for _, name := range []string{"a", "b"} {
		tracker := NewTracker()
		c := NewChecker(tracker, 1)
		for n := range int64(50) {
			if slices.Contains(lost[name], n) {
				continue
			}
			id := driver.ID{Run: 1, Number: n}
			id.Sum = Sum(id, BodySum(nil))
			require.Equal(t, Own, c.Check(&driver.Delivery{ID: id}, 1))
		}
		r := tracker.Seal()
		r.SetName(dest, name)
		r.Drained, r.Ended = true, 1
		side.Received = append(side.Received, r)
	}
	result := Judge(side)
	require.EqualValues(t, 9, result.Total.Lost)
	require.Equal(t, []uint64{3, 0, 3}, result.LostBefore, "30, 44 and 49 were sent after the last mark")
}

// TestBounds: a message that a subscription gets although it was sent before, or after, the subscription existed does
// not hide the loss of one that was sent meanwhile.
func TestBounds(t *testing.T) {
	t.Parallel()
	dest := driver.Destination{Kind: driver.Topic, Name: "t"}
	for name, tt := range map[string]struct {
		others        []int64 // arrived, sent before or after
		doubtful      []int64 // sent without an answer
		lost, missing uint64
	}{
		"none":              {lost: 2},
		"before":            {others: []int64{3, 4, 5}, lost: 2},
		"after":             {others: []int64{40, 41, 42}, lost: 2},
		"in doubt, outside": {others: []int64{4, 45}, doubtful: []int64{4, 5, 45, 46}, lost: 2},
		"in doubt, in it":   {others: []int64{4}, doubtful: []int64{20, 22}, lost: 1, missing: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger, tracker := NewLedger(1, 0, dest, BodySum(nil)), NewTracker()
			c := NewChecker(tracker, 1)
			for n := range int64(50) {
				id := ledger.Next(0)
				if n != 10 && n != 20 && 10 <= n && n < 30 || slices.Contains(tt.others, n) {
					require.Equal(t, Own, c.Check(&driver.Delivery{ID: id}, 1))
				}
			}
			for _, n := range tt.doubtful {
				ledger.Done(n, driver.Outcome{State: driver.Unknown})
			}
			r := tracker.Seal()
			r.SetName(dest, "a")
			open := uint64(0)
			for n := uint64(10); n < 50; n++ {
				if !r.Streams[0].arrived.Contains(n) && !slices.Contains(tt.doubtful, int64(n)) {
					open++
				}
			}
			require.Equal(t, open, ledger.open(r.Streams[0], 10))
			sent := ledger.Seal(nil)
			r.Drained, r.Ended = true, 10
			r.Sent = map[Stream]Bounds{{1, 0}: {From: 10, To: 30}}
			total := Judge(&Side{ID: 1, Sent: []*Sent{sent}, Received: []*Received{r}}).Total
			require.Equal(t, tt.lost, total.Lost)
			require.Equal(t, tt.missing, total.UnconfirmedMissing)
		})
	}
}

// TestCutOff: messages that consumers of one process could not settle, as their connections were lost, may be given to
// another process. Of the copies that came to both, those are explained that the broker marks, where the other process
// was cut off.
func TestCutOff(t *testing.T) {
	t.Parallel()
	dest := driver.Destination{Name: "q"}
	for name, tt := range map[string]struct {
		first, second bool // cut off
		explained     uint64
	}{
		"none":   {},
		"first":  {first: true, explained: 2},
		"second": {second: true, explained: 1},
		"both":   {first: true, second: true, explained: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ledger := NewLedger(1, 0, dest, BodySum(nil))
			var ids []driver.ID
			for range 20 {
				ids = append(ids, ledger.Next(0))
			}
			side := func(cutOff bool, marked []int64, numbers ...int64) *Side {
				tracker := NewTracker()
				c := NewChecker(tracker, 1)
				for _, n := range numbers {
					require.Equal(t, Own, c.Check(&driver.Delivery{ID: ids[n], Redelivered: slices.Contains(marked, n)}, 1))
				}
				r := tracker.Seal()
				r.SetName(dest, "")
				r.Drained, r.Ended, r.CutOff = true, 10, cutOff
				return &Side{ID: 1, Received: []*Received{r}}
			}
			// 7 came to both, and no broker marks it; 8 and 9 were marked at the second process, 10 at the first.
			first := side(tt.first, []int64{10}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
			second := side(tt.second, []int64{8, 9, 11}, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)
			first.Sent = []*Sent{ledger.Seal(nil)}
			for i, s := range []*Side{first, second} {
				s.Shard, s.Shards = i+1, 2
				text, err := Encode(s)
				require.NoError(t, err)
				back, err := Decode(text)
				require.NoError(t, err)
				*s = *back
			}
			for _, sides := range [][]*Side{{first, second}, {second, first}} {
				r := Judge(sides...)
				require.EqualValues(t, 20, r.Total.Received)
				require.EqualValues(t, 4, r.Total.Duplicates)
				require.Equal(t, tt.explained, r.Total.AfterOutage)
			}
		})
	}
}

// TestExamplesOfCopies: the named copies are unexplained ones, if there are any.
func TestExamplesOfCopies(t *testing.T) {
	t.Parallel()
	dest := driver.Destination{Name: "q"}
	for _, own := range []bool{false, true} { // the broker makes copies of its own
		ledger, tracker := NewLedger(1, 0, dest, BodySum(nil)), NewTracker()
		var outage inOutage
		c := NewChecker(tracker, 1)
		tracker.Reconnecting(&outage)
		var ids []driver.ID
		check := func(numbers ...int) {
			for _, n := range numbers {
				require.Equal(t, Own, c.Check(&driver.Delivery{ID: ids[n]}, 1))
			}
		}
		for range 40 {
			ids = append(ids, ledger.Next(0))
		}
		check(0, 1, 2, 3, 4, 5, 6, 7)
		outage.now, outage.receiving = true, true
		check(5, 6, 7, 8)
		outage.now = false
		check(9, 10)
		want := "producer-0 5, 6, 7"
		if own {
			check(10)
			want = "producer-0 10"
		}
		for range 2 { // a stranger's message, twice
			id := driver.ID{Run: 9, Number: 1}
			id.Sum = Sum(id, BodySum(nil))
			require.Equal(t, Foreign, c.Check(&driver.Delivery{ID: id}, 1))
		}
		r := tracker.Seal()
		r.SetName(dest, "")
		r.Ended = 10
		result := Judge(&Side{ID: 1, Sent: []*Sent{ledger.Seal(nil)}, Received: []*Received{r}})
		require.Equal(t, want, result.First(Duplicated))
		found := result.Findings(Allow{}, 0)
		problem := "messages received more than once: 1 duplicates, 0 marked as redelivered; " +
			"first: producer-0 10"
		require.Equal(t, own, slices.ContainsFunc(found, func(f findings.Finding) bool { return f.Text == problem }), "%v", found)
		for _, m := range result.Scopes[0].Examples[Duplicated] {
			require.EqualValues(t, 1, m.Run, "no stranger's")
		}
	}
}
