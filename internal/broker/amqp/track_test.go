package amqp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestUnsettled: numbers are serial, and one that stays does not keep the rest.
func TestUnsettled(t *testing.T) {
	var s session
	u := &s.unsettled
	u.Next, u.First = 1<<32-3, 1<<32-3
	l := &outLink{}
	ids := func(first, last uint32) (list []uint64) {
		s.eachUnsettled(first, last, func(n uint64) { list = append(list, u.Get(n).id) })
		return list
	}
	for i := range uint64(6) {
		u.Add(delivered{l, i})
	}
	assert.Equal(t, []uint64{1, 2, 3, 4}, ids(1<<32-2, 1))
	assert.Equal(t, []uint64{3, 4, 5}, ids(0, 1<<31-1), "a range with an end far away")
	assert.Empty(t, ids(5, 0), "an end before the beginning")
	assert.Empty(t, ids(3, 100), "the future")
	for i := range uint64(10_000) {
		n := u.Next
		u.Add(delivered{l, 100 + i})
		u.Remove(n)
	}
	assert.LessOrEqual(t, u.Next-u.First, uint64(64))
	assert.ElementsMatch(t, []uint64{0, 1, 2, 3, 4, 5}, ids(1<<32-3, uint32(u.Next)-1))
	u.Remove(1<<32 - 3)
	s.forget(l)
	assert.Empty(t, ids(1<<32-3, uint32(u.Next)-1))
}
