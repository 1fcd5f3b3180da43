package amqp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// coordinatorPeer has a coordinator of transactions.
type coordinatorPeer struct {
	*peer
	// discharge returns the end of the n-th transaction: a state, or nil to hang up.
	discharge func(n int) *wire.State
	// refuse are messages, by their place, that it rejects before the commit.
	refuse map[int]bool

	declared, discharged, messages int
}

func newCoordinatorPeer(t *testing.T, discharge func(n int) *wire.State) *coordinatorPeer {
	t.Helper()
	p := &coordinatorPeer{peer: newPeer(t), discharge: discharge}
	p.on = func(_ *peer, b *wire.Body) bool {
		if b.Kind != wire.DescTransfer {
			return false
		}
		var f wire.Transfer
		require.NoError(t, f.Decode(&b.Fields))
		if f.Handle == 0 {
			state := musttest.Get(wire.ParseState(f.State))(t)
			require.True(t, state.Transactional, "a message outside of a transaction")
			answer := wire.State{Kind: wire.DescAccepted, Transactional: true, TxnID: state.TxnID}
			if p.refuse[p.messages] {
				answer = wire.State{Kind: wire.DescRejected, Error: &wire.Error{Condition: wire.CondResourceLimit, Description: "full"}}
			}
			p.messages++
			p.settle(f.DeliveryID.V, f.DeliveryID.V, answer)
			return true
		}
		p.control(t, f.DeliveryID.V, b.Payload)
		return true
	}
	return p
}

// control answers a declare or discharge.
func (p *coordinatorPeer) control(t *testing.T, id uint32, payload []byte) {
	t.Helper()
	var m wire.Message
	require.NoError(t, m.Decode(payload))
	value := wire.NewDecoder(m.Body)
	if kind := value.Descriptor(); kind == wire.DescDeclare {
		p.declared++
		p.settle(id, id, wire.State{Kind: wire.DescDeclared, TxnID: []byte{byte(p.declared)}})
		return
	}
	n := p.discharged
	p.discharged++
	state := p.discharge(n)
	if state == nil {
		p.hangUp()
		return
	}
	p.settle(id, id, *state)
}

// TestTransactions: the messages of each transaction end as its discharge does, but for messages refused before.
func TestTransactions(t *testing.T) {
	accepted := &wire.State{Kind: wire.DescAccepted}
	refused := &wire.State{Kind: wire.DescRejected, Error: &wire.Error{Condition: wire.CondTxnRollback, Description: "no"}}
	for name, c := range map[string]struct {
		discharge []*wire.State
		refuse    map[int]bool
		states    []driver.State // of messages, four to a transaction
		confirmed []bool
	}{
		"all are committed": {
			discharge: []*wire.State{accepted, accepted, accepted}, confirmed: []bool{true, true, true},
			states: []driver.State{0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		},
		"the second is refused": {
			discharge: []*wire.State{accepted, refused, accepted}, confirmed: []bool{true, false, true},
			states: []driver.State{
				0, 0, 0, 0, driver.Rejected, driver.Rejected, driver.Rejected, driver.Rejected, 0, 0,
			},
		},
		"a message is refused": {
			discharge: []*wire.State{accepted, accepted, accepted}, confirmed: []bool{true, true, true}, refuse: map[int]bool{5: true},
			states: []driver.State{0, 0, 0, 0, 0, driver.Rejected, 0, 0, 0, 0},
		},
		"a message is refused and so is its commit": {
			discharge: []*wire.State{accepted, refused, accepted}, confirmed: []bool{true, false, true}, refuse: map[int]bool{5: true},
			states: []driver.State{0, 0, 0, 0, driver.Rejected, driver.Rejected, driver.Rejected, driver.Rejected, 0, 0},
		},
		"the last is lost": {
			discharge: []*wire.State{accepted, accepted, nil}, confirmed: []bool{true, true, false},
			states: []driver.State{0, 0, 0, 0, 0, 0, 0, 0, driver.Unknown, driver.Unknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newCoordinatorPeer(t, func(n int) *wire.State { return c.discharge[n] })
				p.refuse = c.refuse
				d := p.driver(driver.OpenOptions{})
				spec := producerSpec(100)
				spec.CommitInterval = 4
				var confirmed []bool
				spec.Commits = func(_ time.Duration, ok bool) { confirmed = append(confirmed, ok) }
				ends := newEnds()
				producer := musttest.Get(d.Producer(t.Context(), spec, ends))(t)
				for i := range c.states {
					require.NoError(t, producer.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(uint32(i), 1)})) //nolint:gosec // small
					synctest.Wait()
					if i == 2 {
						require.Empty(t, ends, "nothing ends before its commit")
					}
				}
				require.NoError(t, producer.Close(t.Context()), "which commits the last two")
				got := ends.states(t, len(c.states))
				for i, want := range c.states {
					require.Equal(t, want, got[driver.NewSlot(uint32(i), 1)], "message %d", i) //nolint:gosec // small
				}
				require.Equal(t, c.confirmed, confirmed)
				require.NoError(t, d.Close(t.Context()))
			})
		})
	}
}

// TestLongTransactionID: an ID that leaves no room in a frame for a message is refused.
func TestLongTransactionID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		p.open = wire.Open{MaxFrameSize: wire.Some[uint32](wire.MinMaxFrameSize)}
		p.on = func(p *peer, b *wire.Body) bool {
			if b.Kind != wire.DescTransfer {
				return false
			}
			p.settle(0, 0, wire.State{Kind: wire.DescDeclared, TxnID: make([]byte, 500)})
			return true
		}
		d := p.driver(driver.OpenOptions{})
		spec := producerSpec(10)
		spec.CommitInterval = 4
		producer := musttest.Get(d.Producer(t.Context(), spec, newEnds()))(t)
		err := producer.Send(t.Context(), new(driver.Message))
		require.Equal(t, driver.ClassProtocol, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "a transaction's ID of 500 bytes")
		require.NoError(t, producer.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}
