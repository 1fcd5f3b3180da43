package verify

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// What processes pass on each second is judged as in one process, through files, too.
func TestJoinedIsOneProcess(t *testing.T) {
	const window, seconds = 3 * time.Second, 40
	dest := driver.Destination{Name: "Q"}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			chance := func(p float64) bool { return random.Float64() < p }
			one, apart := newHalf(2, 4, true), newHalf(2, 0, true)
			var trackers []*Tracker // of two processes with two consumers each
			for range 2 {
				tracker := NewTracker()
				tracker.Window()
				for range 2 {
					apart.checkers = append(apart.checkers, NewChecker(tracker, 0))
				}
				trackers = append(trackers, tracker)
			}
			type event func(*half)
			events := make([][]event, seconds+30)
			at := func(second int, e event) { events[second] = append(events[second], e) }
			for second := range seconds {
				for p := range 2 {
					for range 10 + random.IntN(50) {
						var id driver.ID
						for _, h := range []*half{one, apart} {
							id = h.ledgers[p].Next(0)
						}
						o := driver.Outcome{}
						if chance(.2) {
							o = []driver.Outcome{{State: driver.Rejected}, {State: driver.Unknown}, {Withheld: true}}[random.IntN(3)]
						}
						ends := second + random.IntN(3)
						at(ends, func(h *half) { h.ledgers[p].Done(id.Number, o) })
						deliver := func(second int, marked bool) {
							c := random.IntN(4)
							at(second, func(h *half) { h.checkers[c].Check(&driver.Delivery{ID: id, Redelivered: marked}, 1) })
						}
						switch {
						case chance(.1):
							continue
						case chance(.1):
							deliver(ends+6, false)
						default:
							deliver(second+random.IntN(2), false)
						}
						for chance(.2) {
							deliver(ends+random.IntN(2), chance(.5))
						}
					}
				}
			}
			j := NewJoined(window)
			pass := func(side *Side, number int, add func(*Side, int)) {
				data, err := Encode(side)
				require.NoError(t, err)
				back, err := Decode(data)
				require.NoError(t, err)
				add(back, number)
			}
			sent := func(side *Side, _ int) { require.NoError(t, j.AddSent(side, false)) }
			for second, list := range events {
				for _, e := range list {
					e(one)
					e(apart)
				}
				side := &Side{ID: 1, Role: "producer", Turn: true, At: int64(second+1) * 1e6, Window: window.Microseconds()}
				for _, l := range apart.ledgers {
					side.Sent = append(side.Sent, l.Take())
				}
				pass(side, 0, sent)
				for i, tracker := range trackers {
					r := tracker.Take()
					r.SetName(dest, "")
					r.Receiving, r.Ended, r.Drained = true, 1, second == len(events)-1
					pass(&Side{ID: int64(i + 2), Role: "consumer", Turn: true, At: side.At, Received: []*Received{r}}, i+1, j.AddReceived)
				}
				lost, _ := j.Turn(side.At)
				if second > 0 { // the first turn has no length
					require.Equal(t, one.turn(window), lost, second)
				} else {
					Turn(window, one.ledgers, []Watched{{Tracker: one.tracker}})
				}
				want := one.tracker.Progress(1, one.ledgers...)
				got := j.Progress()
				got.Redelivered, want.Redelivered = 0, 0
				require.Equal(t, want, got)
			}
			want, got := Judge(one.side()), j.Judge()
			require.NotZero(t, want.Total.Lost)
			require.NotZero(t, want.Total.ArrivedLate)
			require.InDelta(t, want.Total.Redelivered, got.Total.Redelivered, 50, "marks after the window")
			got.Total.Redelivered = want.Total.Redelivered
			require.Equal(t, want.Total, got.Total)
		})
	}
}

// A consumer whose connection is lost, or whose process is gone, lets the window stand still; a side that is read later
// is judged from there on; messages of runs that nobody names are foreign.
func TestJoinedWaitsForSides(t *testing.T) {
	l, tracker := NewLedger(1, 0, driver.Destination{Name: "Q"}, BodySum(nil)), NewTracker()
	l.Window()
	c := NewChecker(tracker, 0)
	j := NewJoined(2 * time.Second)
	second := 0
	round := func(receiving, late bool) (lost uint64) {
		second++
		side := &Side{ID: 1, Turn: true, At: int64(second) * 1e6}
		require.NoError(t, j.AddSent(&Side{ID: 1, Sent: []*Sent{l.Take()}}, late))
		r := tracker.Take()
		r.SetName(driver.Destination{Name: "Q"}, "")
		r.Receiving, side.Received = receiving, []*Received{r}
		j.AddReceived(side, 1)
		lost, _ = j.Turn(side.At)
		return lost
	}
	send := func() {
		id := l.Next(0)
		l.Done(id.Number, driver.Outcome{})
	}
	send()
	require.Zero(t, round(true, true), "sent before it was read")
	send()
	for range 10 {
		require.Zero(t, round(false, false))
	}
	j.Gone(1)
	for range 3 {
		second++
		lost, _ := j.Turn(int64(second) * 1e6)
		require.Zero(t, lost)
	}
	stranger := NewLedger(99, 0, driver.Destination{Name: "Q"}, BodySum(nil))
	c.Check(&driver.Delivery{ID: stranger.Next(0)}, 1)
	require.Zero(t, round(true, false))
	require.EqualValues(t, 1, round(true, false)+round(true, false))
	for range 5 {
		require.Zero(t, round(true, false))
	}
	require.Equal(t, result.Progress{Expected: 1, Lost: 1, Foreign: 1}, j.Progress())
	require.EqualValues(t, 1, j.Judge().Total.Lost)
}
