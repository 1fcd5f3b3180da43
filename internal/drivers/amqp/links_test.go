package amqp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestAttachedAgain: Artemis refuses a link to an address that it is just removing. The driver attaches the link once
// more.
func TestAttachedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, gone, delivered := newPeer(t), &wire.Error{Condition: wire.CondNotFound}, false
		attached := 0
		p.open = productOf("apache-activemq-artemis", "2.56.0")
		p.attach = func(*wire.Attach) {
			if p.refuse = nil; attached%2 == 0 {
				p.refuse = gone
			}
			attached++
		}
		p.auto.Store(true)
		p.on = func(p *peer, b *wire.Body) bool {
			if b.Kind == wire.DescFlow && !delivered {
				delivered = true
				p.write(transfers(1, true, 0))
			}
			return false
		}
		d := p.driver(driver.OpenOptions{})
		ends := newEnds()
		producer := musttest.Get(d.Producer(t.Context(), producerSpec(1), ends))(t)
		require.NoError(t, producer.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(0, 1)}))
		require.Equal(t, driver.Accepted, ends.states(t, 1)[driver.NewSlot(0, 1)])
		require.NoError(t, producer.Close(t.Context()))

		consumer := musttest.Get(d.Consumer(t.Context(), consumerSpec()))(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		got := 0
		require.NoError(t, consumer.Run(ctx, func(*driver.Delivery) driver.Verdict {
			got++
			stop()
			return driver.Accept
		}))
		require.Equal(t, 1, got)
		require.NoError(t, consumer.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestLinkKeepsNoFrame: the settings of a link do not keep the read buffer in memory in which they came.
func TestLinkKeepsNoFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		encoded := wire.BeginMap(nil)
		wire.EndCompound(encoded, 0, 0)
		p := newPeer(t)
		p.attach = func(f *wire.Attach) {
			f.Properties = encoded
		}
		d, spec := p.driver(driver.OpenOptions{}), consumerSpec()
		spec.Selector = "a = 1"
		k := musttest.Get(d.Consumer(t.Context(), spec))(t)
		peer := &k.(*consumer).link.peer
		require.Equal(t, wire.Some(spec.Selector), peer.Source.Selector)
		require.Nil(t, peer.Properties)
		require.NoError(t, k.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestClosedFromHere: the peer's answer to our close is not taken for its wish.
func TestClosedFromHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		d := p.driver(driver.OpenOptions{})
		k := musttest.Get(d.Consumer(t.Context(), consumerSpec()))(t)
		ended := make(chan error)
		go func() { ended <- k.Run(t.Context(), accept) }()
		synctest.Wait()
		require.NoError(t, d.Close(t.Context()))
		err := <-ended
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
		require.ErrorContains(t, err, "the connection was closed")
		require.NotContains(t, err.Error(), "broker")
		require.NoError(t, k.Close(t.Context()))
		synctest.Wait()
		require.Equal(t, 1, p.ends)
	})
}

// TestUnreadableOnASharedConnection: a message that cannot be read ends Run at once, also where Run delivers and no other
// comes.
func TestUnreadableOnASharedConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credited := false
		p := newPeer(t)
		p.on = func(p *peer, b *wire.Body) bool {
			if b.Kind == wire.DescFlow && !credited {
				credited = true
				unreadable := (&wire.Transfer{DeliveryID: wire.Some[uint32](0), DeliveryTag: []byte{1}}).AppendHead(nil, 0)
				unreadable = append(unreadable, 0xff)
				wire.EndFrame(unreadable, 0)
				p.write(unreadable)
			}
			return false
		}
		d := p.driver(driver.OpenOptions{})
		k := musttest.Get(d.Consumer(t.Context(), consumerSpec()))(t)
		k.(*consumer).lease.Conn.WasShared.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := k.Run(ctx, accept)
		require.Equal(t, driver.ClassProtocol, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "a message that cannot be read")
		require.NoError(t, k.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestReadsOnAfterRun: the reader waits for Run to deliver held messages, but not after Run has ended.
func TestReadsOnAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credited := false
		p := newPeer(t)
		p.on = func(p *peer, b *wire.Body) bool {
			if b.Kind == wire.DescFlow && !credited {
				credited = true
				p.write(transfers(1, false, 0))
			}
			return false
		}
		d := p.driver(driver.OpenOptions{})
		k := musttest.Get(d.Consumer(t.Context(), consumerSpec()))(t)
		c := k.(*consumer)
		c.waitingBytes = maxHeld // as of a message at which Run has failed
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- k.Run(ctx, accept) }()
		synctest.Wait() // the reader has a message
		stop()
		require.NoError(t, <-ended)
		bounded, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, c.Probe(bounded))
		require.NoError(t, k.Close(bounded))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestOtherKindOnArtemis: Artemis refuses a consumer of a queue where it has a topic, and the reverse, by illegal-state,
// and a producer by not-found; the hint is to try the other kind.
func TestOtherKindOnArtemis(t *testing.T) {
	for _, condition := range []string{wire.CondIllegalState, wire.CondNotFound} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t)
			p.open, p.refuse = productOf("apache-activemq-artemis", "2.56.0"), &wire.Error{Condition: condition}
			d := p.driver(driver.OpenOptions{})
			_, err := d.Consumer(t.Context(), consumerSpec())
			require.ErrorContains(t, err, condition)
			require.Contains(t, driver.HintOf(err), "try queue:// or topic://")
			require.NoError(t, d.Close(t.Context()))
		})
	}
}
