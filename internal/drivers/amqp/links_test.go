package amqp

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// refuseOnce lets a peer refuse the first attach of each role, as Artemis does with an address that it is just removing.
func refuseOnce(t *testing.T) func(*pipePeer, *wire.Body) bool {
	t.Helper()
	refused, detached := map[wire.Role]bool{}, 0
	return func(p *pipePeer, b *wire.Body) bool {
		if b.Kind == wire.DescDetach && detached > 0 {
			detached-- // the answer to ours
			return true
		}
		if b.Kind != wire.DescAttach {
			return false
		}
		fields := b.Fields
		var f wire.Attach
		require.NoError(t, f.Decode(&fields))
		if refused[f.Role] {
			return false
		}
		refused[f.Role] = true
		detached++
		f.Role, f.Source, f.Target, f.InitialDeliveryCount = !f.Role, wire.Terminus{}, wire.Terminus{}, wire.Some[uint32](0)
		p.write(f.AppendFrame(nil, 0))
		gone := wire.Detach{Handle: f.Handle, Closed: true, Error: &wire.Error{Condition: wire.CondNotFound}}
		p.write(gone.AppendFrame(nil, 0))
		return true
	}
}

// TestAttachedAnew: a link that Artemis has refused once is attached anew, and works.
func TestAttachedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := refuseOnce(t)
		delivered := false
		peer := func() *pipePeer {
			p := &pipePeer{open: wire.Open{Properties: productOf("apache-activemq-artemis", "2.56.0")}, credit: 10}
			p.on = func(p *pipePeer, b *wire.Body) bool {
				switch b.Kind {
				case wire.DescTransfer:
					p.settle(0, wire.State{Kind: wire.DescAccepted})
				case wire.DescFlow:
					if !delivered {
						delivered = true
						p.write(transfers(1, true))
					}
				}
				return refuse(p, b)
			}
			return p
		}
		d := pipeDriver(t, driver.OpenOptions{}, peer)
		ends := newEnds()
		producer, err := d.Producer(t.Context(), oneKind(1), ends)
		require.NoError(t, err)
		require.NoError(t, producer.Send(t.Context(), &driver.Message{Slot: driver.NewSlot(0, 1)}))
		require.Equal(t, driver.Accepted, ends.states(t, 1)[driver.NewSlot(0, 1)])

		consumer, err := d.Consumer(t.Context(), driver.ConsumerSpec{
			Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "c",
		})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		got := 0
		require.NoError(t, consumer.Run(ctx, func(*driver.Delivery) driver.Verdict {
			got++
			stop()
			return driver.Accept
		}))
		require.Equal(t, 1, got)

		require.NoError(t, producer.Close(t.Context()))
		require.NoError(t, consumer.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestAllMistakesOfAConsumer: all settings that a broker would ignore are told at once.
func TestAllMistakesOfAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := pipeDriver(t, driver.OpenOptions{}, func() *pipePeer {
			return &pipePeer{open: wire.Open{Properties: productOf("RabbitMQ", "4.1.0")}}
		})
		_, err := d.Consumer(t.Context(), driver.ConsumerSpec{
			Connection: conn("c"), Destination: driver.Destination{Kind: driver.Topic, Name: "t"}, Name: "c",
			Selector: "a = 1", Durable: true, Subscription: "s",
		})
		require.ErrorContains(t, err, "there are no selectors")
		require.ErrorContains(t, err, "open a consumer on topic://t: RabbitMQ over AMQP: there are no durable or shared subscriptions")
		require.Equal(t, driver.ClassUnsupported, driver.ClassOf(err))
		require.NoError(t, d.Close(t.Context()))
	})
}

// TestLinkKeepsNoFrame: the settings of a link do not keep the read buffer in memory in which they came.
func TestLinkKeepsNoFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		encoded := wire.BeginMap(nil)
		wire.EndCompound(encoded, 0, 0)
		d := pipeDriver(t, driver.OpenOptions{}, func() *pipePeer {
			return &pipePeer{on: func(p *pipePeer, b *wire.Body) bool {
				if b.Kind != wire.DescAttach {
					return false
				}
				var f wire.Attach
				require.NoError(t, f.Decode(&b.Fields))
				f.Role, f.InitialDeliveryCount = !f.Role, wire.Some[uint32](0)
				f.Unsettled, f.Properties, f.Source.NodeProperties, f.Target.NodeProperties = encoded, encoded, encoded, encoded
				f.Source.DefaultOutcome = []byte(wire.Accepted)
				p.write(f.AppendFrame(nil, 0))
				return true
			}}
		})
		k, err := d.Consumer(t.Context(), driver.ConsumerSpec{
			Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "c", Selector: "a = 1",
		})
		require.NoError(t, err)
		peer := &k.(*consumer).link.peer
		require.Len(t, peer.Source.Filters, 1)
		for _, b := range [][]byte{
			peer.Unsettled, peer.Properties, peer.Source.NodeProperties, peer.Source.DefaultOutcome, peer.Target.NodeProperties,
			peer.Source.Filters[0].Value,
		} {
			require.Nil(t, b)
		}
		require.NoError(t, k.Close(t.Context()))
		require.NoError(t, d.Close(t.Context()))
	})
}
