package stomp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestHeldMemory: memory for texts is used again, without an allocation, but that of large bodies goes when they have
// passed.
func TestHeldMemory(t *testing.T) {
	text := func(size int) *message { return &message{Delivery: driver.Delivery{Body: make([]byte, size)}} }
	small, usual, large := text(1<<10), text(holdLimit/2), text(2*holdLimit)
	var h held
	empty := func(m *message, times int) {
		for range times {
			h.add(m)
			h = h.emptied()
		}
	}
	empty(usual, 1)
	kept := cap(h.text)
	empty(small, 10*usualPieces)
	require.Equal(t, kept, cap(h.text), "memory that a backlog of small messages would need again")

	empty(large, 1)
	kept = cap(h.text)
	require.GreaterOrEqual(t, kept, 2*holdLimit)
	for range 3 {
		empty(small, usualPieces-1)
		require.Equal(t, kept, cap(h.text), "memory while large bodies come now and then")
		empty(large, 1)
	}
	require.Zero(t, testing.AllocsPerRun(2*usualPieces, func() { empty(large, 1) }), "allocations for large bodies")
	empty(small, usualPieces)
	require.LessOrEqual(t, cap(h.text), usualTexts, "memory when large bodies have passed")
	require.Zero(t, testing.AllocsPerRun(10*usualPieces, func() { empty(small, 1) }), "allocations for small bodies")

	empty(text(keptTexts+1), 1)
	require.LessOrEqual(t, cap(h.text), usualTexts, "memory of a body that is too large for it to be kept")
}
