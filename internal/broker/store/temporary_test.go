package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestTemporary: a deleted destination leaves nothing but its counts.
func TestTemporary(t *testing.T) {
	s := New(Config{})
	d := musttest.Get(s.Temporary())(t)
	other := musttest.Get(s.Temporary())(t)
	require.NotEqual(t, d.Address(), other.Address())
	c := musttest.Get(s.ConsumeQueue(d.Address().Name, nil, func() {}))(t)
	sendNumbers(t, d, 1, 5)
	_, list := take(c, 2)
	require.Len(t, list, 2)
	require.True(t, c.Settle(list[0].ID, Accepted))

	d.Delete()
	d.Delete()
	require.Equal(t, Stored, d.Send(message("6")), "to nowhere")
	assert.EqualValues(t, 1, d.Stats().Unrouted)
	assert.True(t, d.Room())
	require.True(t, c.Settle(list[1].ID, Released))
	_, list = take(c, 10)
	assert.Empty(t, list)
	c.Close(true)
	_, err := s.Open(d.Address())
	require.ErrorIs(t, err, ErrGone)
	_, err = s.ConsumeQueue(d.Address().Name, nil, func() {})
	require.ErrorIs(t, err, ErrGone)

	sendNumbers(t, other, 1, 1)
	_, total, _ := s.Page(10)
	assert.EqualValues(t, 6, total.Sent)
	assert.Equal(t, 1, total.Destinations)
	assert.EqualValues(t, 1, total.Settled)
	other.Delete()
	used, _ := s.Memory()
	assert.Zero(t, used)
}

// TestTemporaries: the memory of the broker bounds them.
func TestTemporaries(t *testing.T) {
	s := New(Config{})
	d := musttest.Get(s.Temporary())(t)
	s.Charge(1 << 40)
	_, err := s.Temporary()
	require.ErrorIs(t, err, ErrNoMemory)
	d.Delete()
}
