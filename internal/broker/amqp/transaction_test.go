package amqp

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// raw is a client that sends and reads frames.
type raw struct {
	net.Conn
	b testing.TB
	r *wire.FrameReader
}

func connectRaw(b testing.TB, addr string, attach []byte) *raw {
	b.Helper()
	nc := musttest.Get(net.Dial("tcp", addr))(b)
	c := &raw{Conn: nc, b: b, r: wire.NewFrameReader(bufio.NewReaderSize(nc, 64<<10), 64<<10)}
	_, err := nc.Write(append(append([]byte(wire.HeaderAMQP),
		frameOf(0, wire.DescOpen, nil, str("bench"), null, u(128<<10))...), frameOf(0, wire.DescBegin, nil, null, u(0), u(1<<30), u(1<<30))...))
	require.NoError(b, err)
	musttest.Get(nc.Write(attach))(b)
	musttest.Get(c.r.ReadProtocolHeader())(b)
	return c
}

// until reads frames up to one of a kind.
func (c *raw) until(kind wire.Descriptor) *wire.Decoder {
	c.b.Helper()
	require.NoError(c.b, c.SetReadDeadline(time.Now().Add(time.Minute)))
	for {
		f := musttest.Get(c.r.Next())(c.b)
		if len(f.Body) == 0 { // a heartbeat
			continue
		}
		p := musttest.Get(wire.ParseBody(f.Body))(c.b)
		if p.Kind == kind {
			return &p.Fields
		}
	}
}

// state reads frames up to a disposition, and returns its state.
func (c *raw) state() wire.State {
	c.b.Helper()
	var d wire.Disposition
	require.NoError(c.b, d.Decode(c.until(wire.DescDisposition)))
	return musttest.Get(wire.ParseState(d.State))(c.b)
}

func (c *raw) say(frame []byte) {
	c.b.Helper()
	musttest.Get(c.Write(frame))(c.b)
}

// TestTransactions: sends and settlements happen when the transaction is committed, and not when it is rolled back or
// its coordinator goes.
func TestTransactions(t *testing.T) {
	s := store.New(store.Config{})
	l := musttest.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if nc, err := l.Accept(); err == nil {
			Server{Store: s}.Serve(nc)
		}
	}()
	q := s.Queue("Q")
	dest := s.Destination(driver.Destination{Name: "Q"})
	for _, body := range []string{"a", "b"} {
		dest.Send(&store.Message{Content: storetest.Content{Data: body}, Priority: 4})
	}
	c := connectRaw(t, l.Addr().String(), attachSender("s", 0, atQ(wire.DescTarget)))
	c.say(attachSender("c", 1, wire.Terminus{Kind: wire.DescCoordinator}))
	c.say(attachReceiver("r", 2, atQ(wire.DescSource), atQ(wire.DescTarget)))
	next := uint32(0)
	transfer := func(handle uint32, payload []byte, state func([]byte) []byte) wire.State {
		c.say(frameOf(0, wire.DescTransfer, payload, u(handle), u(next), tag, u(0), no, no, null, state))
		next++
		return c.state()
	}
	var txn []byte
	declare := func() {
		s := transfer(1, wire.AppendDeclare(nil), null)
		require.Equal(t, wire.DescDeclared, s.Kind)
		txn = append([]byte(nil), s.TxnID...)
	}
	discharge := func(rollback bool) wire.State {
		return transfer(1, (&wire.Discharge{TxnID: txn, Fail: rollback}).AppendMessage(nil), null)
	}
	receive := func(credit uint32) (id uint32) {
		c.say(frameOf(0, wire.DescFlow, nil, u(0), u(1<<30), u(0), u(1<<30), u(2), u(credit-1), u(1)))
		var got wire.Transfer
		require.NoError(t, got.Decode(c.until(wire.DescTransfer)))
		return got.DeliveryID.V
	}
	body := wire.AppendData(nil, []byte("x"))

	declare()
	o := transfer(0, body, inTxn(txn, 0))
	assert.True(t, o.Transactional)
	id := receive(1)
	c.say(frameOf(0, wire.DescDisposition, nil, yes, u(id), u(id), yes, inTxn(txn, wire.DescAccepted)))
	o = discharge(true)
	assert.Equal(t, wire.DescAccepted, o.Kind)
	assert.Equal(t, uint64(2), dest.Stats().Sent, "the send was rolled back")
	assert.Equal(t, uint64(1), q.Stats().Returned, "and so was the acknowledgement")

	declare()
	transfer(0, body, inTxn(txn, 0))
	assert.Equal(t, uint64(2), dest.Stats().Sent)
	id = receive(2)
	c.say(frameOf(0, wire.DescDisposition, nil, yes, u(id), u(id), yes, inTxn(txn, wire.DescAccepted)))
	discharge(false)
	assert.Equal(t, uint64(3), dest.Stats().Sent)
	assert.Equal(t, uint64(1), q.Stats().Settled)
	o = discharge(false)
	assert.Equal(t, wire.DescRejected, o.Kind, "it is over")

	declare()
	id = receive(3)
	c.say(frameOf(0, wire.DescDisposition, nil, yes, u(id), u(id), yes, inTxn(txn, wire.DescAccepted)))
	c.say(frameOf(0, wire.DescDetach, nil, u(1), yes))
	c.until(wire.DescDetach)
	assert.Equal(t, uint64(2), q.Stats().Returned, "the coordinator is gone")
	c.say(frameOf(0, wire.DescClose, nil))
	c.until(wire.DescClose)
	require.NoError(t, c.Close())
	<-ended
	assert.Equal(t, int64(2), q.Stats().Depth)
}
