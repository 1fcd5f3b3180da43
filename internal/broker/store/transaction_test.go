package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCommitIsAllOrNothing: where a full queue refuses messages, a transaction is stored as a whole or not at all, even
// if it is larger than the room there was.
func TestCommitIsAllOrNothing(t *testing.T) {
	s := New(Config{Limit: 2, Reject: true})
	d, q := queue(s, "Q")
	account := s.NewAccount()
	for i, fits := range []bool{true, false} {
		x := account.Begin()
		for range 3 {
			require.True(t, x.Send(d, message("x")))
		}
		_, full := x.Commit()
		assert.Equal(t, fits, full == nil, i)
		assert.EqualValues(t, 3, q.Stats().Stored)
	}
	assert.EqualValues(t, 3, d.Stats().Refused, "all messages of the second transaction")
	assert.Zero(t, account.held.Load())
}

func TestTransactionsAreBounded(t *testing.T) {
	s := New(Config{})
	d, q := queue(s, "Q")
	account := s.NewAccount()
	x := account.Begin()
	for range 3 {
		x.Send(d, message(strings.Repeat("x", maxTransaction/3)))
	}
	assert.True(t, x.Failed)
	assert.False(t, x.Hold(1))
	assert.Zero(t, account.held.Load())
	assert.Zero(t, q.Stats().Stored)
}
