package verify

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// half is a run with one queue, with a window or without.
type half struct {
	ledgers  []*Ledger
	tracker  *Tracker
	checkers []*Checker
}

func newHalf(producers, consumers int, window bool) *half {
	h := &half{tracker: NewTracker()}
	for i := range producers {
		h.ledgers = append(h.ledgers, NewLedger(1, i, driver.Destination{Name: "Q"}, BodySum(nil)))
	}
	for range consumers {
		h.checkers = append(h.checkers, NewChecker(h.tracker, 1))
	}
	if window {
		h.tracker.Window()
		for _, l := range h.ledgers {
			l.Window()
		}
	}
	return h
}

// turn lets a second pass.
func (h *half) turn(window time.Duration) (lost uint64) {
	lost, _ = Turn(window, h.ledgers, []Watched{{Tracker: h.tracker, Elapsed: time.Second}})
	return lost
}

func (h *half) side() *Side {
	side := &Side{ID: 1, Role: "client"}
	for _, l := range h.ledgers {
		side.Sent = append(side.Sent, l.Seal(nil))
	}
	r := h.tracker.Seal()
	r.SetName(driver.Destination{Name: "Q"}, "")
	r.Drained, r.Ended = true, 1
	side.Received = []*Received{r}
	return side
}

// Whatever happens to messages, with a window the counts are the same as without, and messages that came after it are
// counted as that.
func TestWindowIsTheWhole(t *testing.T) {
	const window, seconds = 3, 40
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			chance := func(p float64) bool { return random.Float64() < p }
			both := [2]*half{newHalf(2, 3, false), newHalf(2, 3, true)}
			type event func(*half)
			events := make([][]event, seconds+20)
			at := func(second int, e event) { events[second] = append(events[second], e) }
			lost, late, copies := uint64(0), uint64(0), uint64(0)
			for second := range seconds {
				for p := range 2 {
					for range 10 + random.IntN(50) {
						var n int64
						var id driver.ID
						for _, h := range both {
							id = h.ledgers[p].Next(0)
						}
						n = id.Number
						o := driver.Outcome{}
						if chance(.2) {
							o = []driver.Outcome{{State: driver.Rejected}, {State: driver.Unknown}, {Withheld: true}}[random.IntN(3)]
						}
						ends := second + random.IntN(3)
						if chance(.01) {
							ends += 10
						}
						at(ends, func(h *half) { h.ledgers[p].Done(n, o) })
						deliver := func(second int, marked bool) {
							c := random.IntN(3)
							at(second, func(h *half) { h.checkers[c].Check(&driver.Delivery{ID: id, Redelivered: marked}, 1) })
						}
						switch {
						case o == driver.Outcome{} && chance(.1):
							lost++
							continue
						case o == driver.Outcome{} && chance(.1):
							deliver(ends+window+2, false)
							deliver(ends+window+4, true) // and once more
							late++
							copies++
							continue
						case o.State == driver.Unknown && chance(.5):
							deliver(ends+random.IntN(2*window), false)
						case o == driver.Outcome{}, chance(.3):
							deliver(second+random.IntN(2), false)
						default:
							continue
						}
						for chance(.2) {
							deliver(ends+random.IntN(2), chance(.5))
						}
						if o.State == driver.Accepted && chance(.05) {
							deliver(ends+window+3, true)
							copies++
						}
					}
				}
			}
			found := uint64(0)
			for _, list := range events {
				for _, e := range list {
					e(both[0])
					e(both[1])
				}
				found += both[1].turn(window * time.Second)
			}
			p := both[1].tracker.Progress(1, both[1].ledgers...)
			require.Equal(t, result.Progress{Lost: lost, ArrivedLate: late, Expected: p.Expected}, result.Progress{
				Lost: p.Lost, ArrivedLate: p.ArrivedLate, Expected: p.Expected,
			})
			require.Equal(t, lost+late, found)
			require.Zero(t, both[1].tracker.Open(both[1].ledgers, nil))
			for _, s := range both[1].tracker.own {
				require.True(t, s.arrived.IsEmpty() && s.doubled.IsEmpty() && s.late.IsEmpty() && s.Window.open.IsEmpty())
			}
			for _, l := range both[1].ledgers {
				require.True(t, l.refused.IsEmpty() && l.unconfirmed.IsEmpty() && l.withheld.IsEmpty())
			}
			want, got := Judge(both[0].side()), Judge(both[1].side())
			require.Equal(t, late, got.Total.ArrivedLate)
			// A copy that comes after the window changes nothing about the marks and the order of earlier ones.
			require.InDelta(t, want.Total.Redelivered, got.Total.Redelivered, float64(copies))
			require.InDelta(t, want.Total.Disordered, got.Total.Disordered, float64(copies))
			require.InDelta(t, want.Total.DisorderedRedelivered, got.Total.DisorderedRedelivered, float64(copies))
			want.Total.ArrivedLate, want.Total.Redelivered = late, got.Total.Redelivered
			want.Total.Disordered, want.Total.DisorderedRedelivered = got.Total.Disordered, got.Total.DisorderedRedelivered
			require.Equal(t, want.Total, got.Total)
			require.Equal(t, lost, got.Total.Lost)
			require.Len(t, got.Scopes[0].Examples[Lost], 5)
			data, err := Encode(both[1].side())
			require.NoError(t, err)
			back, err := Decode(data)
			require.NoError(t, err)
			require.Equal(t, want.Total.Lost, Judge(back).Total.Lost)
		})
	}
}

// A subscription without its consumers, or after its end, judges nothing, and keeps what the end of the run needs.
func TestWindowStandsStill(t *testing.T) {
	h := newHalf(1, 1, true)
	pass := func(seconds int, elapsed time.Duration) (lost uint64) {
		for range seconds {
			n, first := Turn(2*time.Second, h.ledgers, []Watched{{Tracker: h.tracker, Elapsed: elapsed}})
			require.Len(t, first, int(n))
			lost += n
		}
		return lost
	}
	for n := range int64(3) {
		h.ledgers[0].Next(0)
		h.ledgers[0].Done(n, driver.Outcome{})
		require.Zero(t, pass(1, 0))
	}
	require.Zero(t, pass(100, 0))
	require.EqualValues(t, 3, h.tracker.Open(h.ledgers, nil))
	h.checkers[0].Check(&driver.Delivery{ID: driver.ID{Run: 1, Sum: Sum(driver.ID{Run: 1}, BodySum(nil))}}, 1)
	require.Zero(t, pass(1, time.Second))
	require.EqualValues(t, 2, pass(1, time.Second))
	require.Zero(t, h.tracker.Open(h.ledgers, nil))
	h.ledgers[0].Next(0)
	h.ledgers[0].Done(3, driver.Outcome{Withheld: true})
	pass(5, 0)
	v := Judge(h.side())
	require.Equal(t, result.Verified{Expected: 3, Received: 1, Once: 1, Lost: 2}, v.Total)
}

// A delayed message is lost a window after its delay.
func TestWindowOfDelayedMessages(t *testing.T) {
	h := newHalf(1, 1, true)
	h.ledgers[0].Delay(5 * time.Second)
	h.ledgers[0].Next(0)
	h.ledgers[0].Done(0, driver.Outcome{})
	for second := range 7 {
		require.Zero(t, h.turn(2*time.Second), second)
	}
	require.EqualValues(t, 1, h.turn(2*time.Second))
}

// As many messages as a month has at 10,000 a second, some lost, doubled, refused and late, needs no more memory than some windows.
func TestWindowBoundsMemory(t *testing.T) {
	const perSecond, window = 2000, 10 // the memory is that of a window
	h := newHalf(1, 1, true)
	l, c := h.ledgers[0], h.checkers[0]
	check := func(n int64) {
		id := driver.ID{Run: 1, Number: n}
		id.Sum = l.sums.sum(&id, BodySum(nil))
		c.Check(&driver.Delivery{ID: id}, 1)
	}
	second := func() {
		from := int64(l.Count())
		for n := from; n < from+perSecond; n++ {
			l.Next(0)
			switch n % 1000 {
			case 7:
				l.Done(n, driver.Outcome{State: driver.Rejected})
				continue
			case 8:
				l.Done(n, driver.Outcome{Withheld: true})
				continue
			}
			l.Done(n, driver.Outcome{})
			if n%1000 != 9 {
				check(n)
			}
			if n%1000 == 10 {
				check(n)
			}
		}
		if late := from - 20*perSecond + 9; late > 0 && late%1000 == 9 {
			check(late)
		}
		h.turn(window * time.Second)
	}
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range 3 * window {
		second()
	}
	before := used()
	for skipped := 0; skipped < 26; skipped++ { // a thousand million messages each, all well
		from := l.Count()
		l.next.Store(int64(from + 1e9))
		l.ended.AddRange(from, from+1e9)
		h.tracker.merge([]span{{stream: h.tracker.own[0], from: from, to: from + 1e9}})
		for range 3 * window {
			second()
		}
	}
	require.Greater(t, l.Count(), uint64(26e9))
	require.Less(t, used(), before+8<<20)
	require.Less(t, used(), uint64(64<<20))
	v := Judge(h.side())
	require.Equal(t, l.Count(), v.Sent)
	t.Log(used()>>10, "KiB", v.Total)
	require.InDelta(t, 27*30*2, float64(v.Total.Lost+v.Total.ArrivedLate), 30)
	require.Greater(t, v.Total.ArrivedLate, uint64(26*10))
	require.Zero(t, v.Total.Left)
}

// What is lost for long is forgotten by number, not by count.
func TestWindowForgetsRecords(t *testing.T) {
	h := newHalf(1, 1, true)
	l, lost := h.ledgers[0], uint64(0)
	for range 20 {
		from := l.Count()
		l.next.Store(int64(from + 40_000_000))
		for n := from; n < from+40_000_000; n += 1000 {
			l.Done(int64(n), driver.Outcome{}) // the others never end
		}
		lost += h.turn(time.Second)
	}
	lost += h.turn(time.Second)
	require.EqualValues(t, 800_000, lost)
	w := h.tracker.own[0].Window
	require.Less(t, w.lost.GetSerializedSizeInBytes(), uint64(maxRecords))
	require.Positive(t, w.Forgotten)
	require.EqualValues(t, 800_000, w.Counts.Lost)
	require.EqualValues(t, 800_000-w.Forgotten, w.lost.GetCardinality())
}

// A message that comes for the first time after its window is no duplicate, even if it is not to come, or if a selector
// decides.
func TestFirstDeliveryAfterWindow(t *testing.T) {
	for _, c := range []struct {
		name      string
		outcome   driver.Outcome
		selective bool
		want      result.Verified
	}{
		{"selected", driver.Outcome{}, true, result.Verified{}},
		{"unconfirmed, selected", driver.Outcome{State: driver.Unknown}, true, result.Verified{}},
		{"refused", driver.Outcome{State: driver.Rejected}, false, result.Verified{RefusedArrived: 1}},
		{"withheld", driver.Outcome{Withheld: true}, false, result.Verified{WithheldArrived: 1}},
		{"unconfirmed", driver.Outcome{State: driver.Unknown}, false, result.Verified{UnconfirmedArrived: 1}},
		{"lost", driver.Outcome{}, false, result.Verified{Expected: 1, ArrivedLate: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHalf(1, 1, true)
			h.ledgers[0].Next(0)
			h.ledgers[0].Done(0, c.outcome)
			turn := func() {
				Turn(time.Second, h.ledgers, []Watched{{Tracker: h.tracker, Elapsed: time.Second, Selective: c.selective}})
			}
			turn()
			turn()
			for copies := range uint64(3) {
				h.checkers[0].Check(&driver.Delivery{ID: driver.ID{Run: 1, Sum: Sum(driver.ID{Run: 1}, BodySum(nil))}}, 1)
				turn()
				w := h.tracker.own[0].Window.Counts
				require.EqualValues(t, 1, w.Received)
				require.Equal(t, copies, h.tracker.own[0].Duplicates)
			}
			side := h.side()
			side.Received[0].Selective = c.selective
			c.want.Received, c.want.Duplicates = 1, 2
			require.Equal(t, c.want, Judge(side).Total)
		})
	}
}
