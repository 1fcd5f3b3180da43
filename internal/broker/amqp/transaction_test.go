//go:build unix

package amqp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// until reads frames up to one of a kind.
func (c *raw) until(descriptor uint64) fields {
	c.b.Helper()
	require.NoError(c.b, c.SetReadDeadline(time.Now().Add(10*time.Second)))
	for {
		got, list, _, err := c.next(make([]byte, 4096))
		require.NoError(c.b, err)
		if got == descriptor {
			return list
		}
	}
}

func (c *raw) say(frame []byte) {
	c.b.Helper()
	_, err := c.Write(frame)
	require.NoError(c.b, err)
}

// TestTransactions: sends and settlements happen when the transaction is committed, and not when it is rolled back or
// its coordinator goes.
func TestTransactions(t *testing.T) {
	s := store.New(store.Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	ended := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			err = New(s, Options{}).Serve(t.Context(), nc)
		}
		ended <- err
	}()
	q := s.Queue("Q")
	dest := s.Destination(store.Address{Name: "Q"})
	for _, body := range []string{"a", "b"} {
		dest.Send(&store.Message{Content: foreign{body: []byte(body)}, Priority: 4})
	}
	target := terminus{kind: descTarget, address: "Q", hasAddress: true, expiry: expireSessionEnd}
	source := target
	source.kind = descSource
	c := connectRaw(t, l.Addr().String(), frameOf(0, descAttach, nil, str("s"), u(0), no, ub(2), ub(0), null, term(target), null, null, u(0)))
	c.say(frameOf(0, descAttach, nil, str("c"), u(1), no, ub(0), ub(0), null, term(terminus{kind: descCoordinator}), null, null, u(0)))
	c.say(frameOf(0, descAttach, nil, str("r"), u(2), yes, ub(0), ub(0), term(source), term(target)))
	next := uint32(0)
	transfer := func(handle uint32, payload []byte, state func([]byte) []byte) outcome {
		c.say(frameOf(0, descTransfer, payload, u(handle), u(next), func(b []byte) []byte { return appendBinary(b, []byte{1}) },
			u(0), no, no, null, state))
		next++
		d := outcomeOf(t, c.until(descDisposition))
		return d
	}
	value := func(list []byte) []byte { return append(appendDescriptor(nil, descValue), list...) }
	var txn []byte
	declare := func() {
		b, at := beginDescribed(nil, descDeclare)
		c.say(frameOf(0, descTransfer, value(finish(b, at, 0)), u(1), u(next), func(b []byte) []byte { return appendBinary(b, []byte{1}) }))
		next++
		list := c.until(descDisposition)
		d := list.disposition()
		f := values(d.state)
		require.Equal(t, uint64(descDeclared), f.described())
		declared, _ := f.list()
		txn = append([]byte(nil), declared.binary()...)
	}
	discharge := func(rollback bool) outcome {
		b, at := beginDescribed(nil, descDischarge)
		return transfer(1, value(finish(appendBool(appendBinary(b, txn), rollback), at, 2)), null)
	}
	inTxn := func(provisional []byte) func([]byte) []byte {
		return func(b []byte) []byte { return appendTxState(b, txn, provisional) }
	}
	receive := func(credit uint32) (id uint32) {
		c.say(frameOf(0, descFlow, nil, u(0), u(1<<30), u(0), u(1<<30), u(2), u(credit-1), u(1)))
		list := c.until(descTransfer)
		got := list.transfer()
		return got.id
	}
	body := appendBinary(appendDescriptor(nil, descData), []byte("x"))

	declare()
	o := transfer(0, body, inTxn(nil))
	assert.True(t, o.inTxn)
	id := receive(1)
	c.say(frameOf(0, descDisposition, nil, yes, u(id), u(id), yes, inTxn(acceptedState())))
	o = discharge(true)
	assert.Equal(t, uint64(descAccepted), o.kind)
	assert.Equal(t, uint64(2), dest.Stats().Sent, "the send was rolled back")
	assert.Equal(t, uint64(1), q.Stats().Returned, "and so was the acknowledgement")

	declare()
	transfer(0, body, inTxn(nil))
	assert.Equal(t, uint64(2), dest.Stats().Sent)
	id = receive(2)
	c.say(frameOf(0, descDisposition, nil, yes, u(id), u(id), yes, inTxn(acceptedState())))
	discharge(false)
	assert.Equal(t, uint64(3), dest.Stats().Sent)
	assert.Equal(t, uint64(1), q.Stats().Settled)
	o = discharge(false)
	assert.Equal(t, uint64(descRejected), o.kind, "it is over")

	declare()
	id = receive(3)
	c.say(frameOf(0, descDisposition, nil, yes, u(id), u(id), yes, inTxn(acceptedState())))
	c.say(frameOf(0, descDetach, nil, u(1), yes))
	c.until(descDetach)
	assert.Equal(t, uint64(2), q.Stats().Returned, "the coordinator is gone")
	c.say(frameOf(0, descClose, nil))
	c.until(descClose)
	require.NoError(t, c.Close())
	require.NoError(t, <-ended)
	assert.Equal(t, int64(2), q.Stats().Depth)
}

func outcomeOf(t testing.TB, list fields) outcome {
	t.Helper()
	o, ok := readOutcome(list.disposition().state)
	require.True(t, ok)
	return o
}
