package stomp

import (
	"math"
	"strings"
	"testing"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestSends: the end of each send is claimed once, under its own generation, whatever the broker names.
func TestSends(t *testing.T) {
	s := newSends(300)
	one, again := driver.NewSlot(299, math.MaxUint32), driver.NewSlot(299, 0)
	require.False(t, s.claim(one), "nothing was sent")
	s.begin(one)
	for _, other := range []driver.Slot{again, driver.NewSlot(298, math.MaxUint32), driver.NewSlot(1, 1), driver.NewSlot(math.MaxUint32, 1)} {
		require.False(t, s.claim(other), "%x", other)
	}
	require.True(t, s.claim(one))
	require.False(t, s.claim(one), "twice")
	require.False(t, s.undo(one), "its end is being reported")
	s.begin(again) // as soon as Done is called
	s.free(one)
	require.True(t, s.claim(again), "it was freed as the one before it")
	require.False(t, s.overtaken(again), "it is the present one")
	s.free(again)
	require.False(t, s.overtaken(again), "nothing has followed it")
	require.False(t, s.overtaken(one), "its end was reported")
	require.False(t, s.overtaken(driver.NewSlot(299, 1)), "it was never sent")
	require.False(t, s.overtaken(driver.NewSlot(math.MaxUint32, 1)), "there is no such place")
	require.True(t, s.await(nil, nil))

	s.begin(one)
	require.True(t, s.undo(one))
	require.False(t, s.claim(one), "it was not sent")

	s.begin(driver.NewSlot(7, 1))
	s.begin(driver.NewSlot(7, 3)) // the engine has given the first one up
	require.False(t, s.claim(driver.NewSlot(7, 1)))
	require.False(t, s.overtaken(driver.NewSlot(7, 3)), "it is the present one")
	require.False(t, s.overtaken(driver.NewSlot(299, 5)), "it was never sent")
	require.True(t, s.overtaken(driver.NewSlot(7, 1)))
	require.False(t, s.overtaken(driver.NewSlot(7, 1)), "it was answered already")
	require.True(t, s.claim(driver.NewSlot(7, 3)))
	s.free(driver.NewSlot(7, 3))

	s.begin(driver.NewSlot(0, 0))
	s.begin(driver.NewSlot(256, 7))
	require.True(t, s.claim(driver.NewSlot(256, 7)))
	require.Equal(t, []driver.Slot{driver.NewSlot(0, 0)}, s.claimAll())
	ended := make(chan struct{})
	close(ended)
	require.False(t, s.await(nil, ended))
}

// groups records how sends were reported.
type groups struct {
	*outcomes
	sizes []int
}

// DoneAll implements [driver.Completions].
func (g *groups) DoneAll(slots []driver.Slot, o driver.Outcome) {
	g.mu.Lock()
	g.sizes = append(g.sizes, len(slots))
	g.mu.Unlock()
	g.outcomes.DoneAll(slots, o)
}

// TestReceiptsTogether: receipts that come together are reported together, each once, and an ERROR between them is of
// its send.
func TestReceiptsTogether(t *testing.T) {
	const n = 200
	b, g := newFakeBroker(t), &groups{outcomes: newOutcomes()}
	spec := plainSpec()
	spec.MaxPending = n
	p, _ := b.producer(b.open(), connected12, spec, g)
	send(t, p, n)
	var answers strings.Builder
	for i := range n {
		id := b.next(frame.SEND).Header.Get(frame.Receipt)
		if i == 100 {
			answers.WriteString("ERROR\nreceipt-id:" + id + "\nmessage:no\n\n\x00")
		} else {
			answers.WriteString("RECEIPT\nreceipt-id:" + id + "\n\n\x00\n")
		}
	}
	b.write(answers.String())
	for s, o := range g.wait(t, n) {
		if s == slot(100) {
			require.Equal(t, driver.Failed, o.State)
		} else {
			require.Equal(t, driver.Outcome{}, o)
		}
	}
	require.NoError(t, p.Close(t.Context()))
	for _, size := range g.sizes {
		require.LessOrEqual(t, size, maxConfirmations)
	}
}
