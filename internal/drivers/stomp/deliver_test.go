package stomp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// TestHeldMemory: memory for texts is used again, without an allocation, except memory for large bodies.
func TestHeldMemory(t *testing.T) {
	var h held
	empty := func(size int) int {
		h.add(&message{Delivery: driver.Delivery{Body: make([]byte, size)}})
		h = h.emptied()
		return cap(h.text)
	}
	kept := empty(holdLimit / 2)
	require.Equal(t, kept, empty(1<<10), "memory that a backlog of small messages would need again")
	small := &message{Delivery: driver.Delivery{Body: make([]byte, 1<<10)}}
	require.Zero(t, testing.AllocsPerRun(100, func() { h.add(small); h = h.emptied() }))
	require.Zero(t, empty(keptTexts+1))
}

// Values of properties stand behind the prepared headers, escaped, and cost no allocation.
func TestPropertiesOfMessages(t *testing.T) {
	p := producer{
		heads: [][]byte{[]byte("SEND\nJMSXGroupID:g\ntime:")}, bodies: [][]byte{[]byte("body")},
		groups: []int{len("SEND\nJMSXGroupID:")}, varying: [][]string{{"a:b", "order"}},
	}
	m := driver.Message{Time: 5, Group: "h", Values: [][]byte{[]byte("1:2"), {}}}
	b := p.appendSend(make([]byte, 0, 1000), &m, nil)
	require.Equal(t, "SEND\nJMSXGroupID:h\ntime:5\na\\cb:1\\c2\norder:\n\nbody\x00", string(b))
	require.Zero(t, testing.AllocsPerRun(100, func() { p.appendSend(b[:0], &m, nil) }))
}
