package amqp

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

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

// TestClosedFromHere: the peer's answer to our close is not taken for its wish.
func TestClosedFromHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(pipePeer)
		d := pipeDriver(t, driver.OpenOptions{}, func() *pipePeer { return p })
		k, err := d.Consumer(t.Context(), driver.ConsumerSpec{Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "c"})
		require.NoError(t, err)
		ended := make(chan error)
		go func() {
			ended <- k.Run(t.Context(), func(*driver.Delivery) driver.Verdict { return driver.Accept })
		}()
		synctest.Wait()
		require.NoError(t, d.Close(t.Context()))
		err = <-ended
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err))
		require.ErrorContains(t, err, "the connection was closed")
		require.NotContains(t, err.Error(), "broker")
		require.NoError(t, k.Close(t.Context()))
		synctest.Wait()
		closes := 0
		for _, c := range p.came {
			if c.kind == wire.DescClose {
				closes++
			}
		}
		require.Equal(t, 1, closes)
	})
}

// largeTransfer is a message of several frames that cannot be read.
func largeTransfer(id uint32, size int) []byte {
	var b []byte
	for last := false; !last; {
		piece := min(size, 60_000)
		size -= piece
		last = size == 0
		head := wire.Transfer{DeliveryID: wire.Some(id), DeliveryTag: []byte{1}, More: !last}
		at := len(b)
		b = append(head.AppendHead(b, 0), bytes.Repeat([]byte{0xff}, piece)...)
		wire.EndFrame(b, at)
	}
	return b
}

// TestUnreadableAmongSeveral: a message that cannot be read ends Run at once, also where several are delivered at a time
// and no other comes.
func TestUnreadableAmongSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		credited := false
		p := &pipePeer{on: func(p *pipePeer, b *wire.Body) bool {
			if b.Kind == wire.DescFlow && !credited {
				credited = true
				p.write(largeTransfer(0, 1))
			}
			return false
		}}
		d := pipeDriver(t, driver.OpenOptions{}, func() *pipePeer { return p })
		k, err := d.Consumer(t.Context(), driver.ConsumerSpec{
			Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "c", Concurrency: 2,
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = k.Run(ctx, func(*driver.Delivery) driver.Verdict { return driver.Accept })
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
		p := &pipePeer{on: func(p *pipePeer, b *wire.Body) bool {
			if b.Kind == wire.DescFlow && !credited {
				credited = true
				p.write(transfers(1, false))
			}
			return false
		}}
		d := pipeDriver(t, driver.OpenOptions{}, func() *pipePeer { return p })
		k, err := d.Consumer(t.Context(), driver.ConsumerSpec{Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "c"})
		require.NoError(t, err)
		c := k.(*consumer)
		c.waitingBytes = maxHeld // as of a message at which Run has failed
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- k.Run(ctx, func(*driver.Delivery) driver.Verdict { return driver.Accept })
		}()
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
			d := pipeDriver(t, driver.OpenOptions{}, func() *pipePeer {
				p := &pipePeer{open: wire.Open{Properties: productOf("apache-activemq-artemis", "2.56.0")}}
				p.on = func(p *pipePeer, b *wire.Body) bool {
					if b.Kind != wire.DescAttach {
						return b.Kind == wire.DescDetach // the answer to ours
					}
					fields := b.Fields
					var f wire.Attach
					require.NoError(t, f.Decode(&fields))
					f.Role, f.Source, f.Target, f.InitialDeliveryCount = !f.Role, wire.Terminus{}, wire.Terminus{}, wire.Some[uint32](0)
					p.write(f.AppendFrame(nil, 0))
					gone := wire.Detach{Handle: f.Handle, Closed: true, Error: &wire.Error{Condition: condition}}
					p.write(gone.AppendFrame(nil, 0))
					return true
				}
				return p
			})
			_, err := d.Consumer(t.Context(), driver.ConsumerSpec{
				Connection: conn("c"), Destination: driver.Destination{Name: "q"}, Name: "c",
			})
			require.ErrorContains(t, err, condition)
			require.Contains(t, driver.HintOf(err), "try queue:// or topic://")
			require.NoError(t, d.Close(t.Context()))
		})
	}
}
