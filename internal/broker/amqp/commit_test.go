package amqp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
)

// TestCommitIsAllOrNothing: where a full queue refuses messages, a transaction is stored as a whole or not at all, even
// if it is larger than the room there was.
func TestCommitIsAllOrNothing(t *testing.T) {
	s := store.New(store.Config{Limit: 2, Full: store.Reject})
	c := newConn(New(s, Options{}), nil)
	dest, q := s.Destination(store.Address{Name: "Q"}), s.Queue("Q")
	for _, want := range []struct {
		fits   bool
		stored uint64
	}{{true, 3}, {false, 3}} {
		x := &txn{}
		for range 3 {
			x.sends, x.to = append(x.sends, &store.Message{Content: storetest.Content{Text: "x"}, Priority: 4}), append(x.to, dest)
		}
		_, refused := x.commit(c)
		require.Equal(t, want.fits, refused == nil)
		assert.Equal(t, want.stored, q.Stats().Stored)
	}
	assert.EqualValues(t, 3, dest.Stats().Refused, "all messages of the second transaction")
}

// TestCommitCountsFull: a transaction that is refused by the fault of being full is counted with all its messages.
func TestCommitCountsFull(t *testing.T) {
	s := store.New(store.Config{Full: store.Reject})
	c := newConn(New(s, Options{}), nil)
	commit := func(dest *store.Destination) *failure {
		x := &txn{}
		for range 3 {
			x.sends, x.to = append(x.sends, &store.Message{Content: storetest.Content{Text: "x"}, Priority: 4}), append(x.to, dest)
		}
		_, refused := x.commit(c)
		return refused
	}
	dest := s.Destination(store.Address{Name: "Q"})
	s.SetFaults(store.Faults{Full: true})
	assert.ErrorContains(t, commit(dest), "queue://Q is full")
	assert.Equal(t, store.FaultCounts{Full: 3}, s.FaultCounts())
	s.SetFaults(store.Faults{})
	assert.Nil(t, commit(dest))
}
