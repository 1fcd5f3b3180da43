package stomp

import (
	"strings"
	"testing"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

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
