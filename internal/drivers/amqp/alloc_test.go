package amqp

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// muted starts a peer that serves until the first transfer, or credit: then its connection is the test's.
func muted(t *testing.T, then func(p *peer)) string {
	t.Helper()
	p := newPeer(t)
	p.credit, p.window, p.open = 1<<31-1, 1<<31-1, wire.Open{}
	p.takeOver = then
	return p.start()
}

// perMessage calls f, which sends or receives n messages, up to 20 times, and returns the least that it allocated per
// message: the first calls make the room that the others use.
func perMessage(n int, f func()) float64 {
	least := -1.0
	for round := 0; round < 20 && (least < 0 || least > few); round++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		if per := float64(after.Mallocs-before.Mallocs) / float64(n); least < 0 || per < least {
			least = per
		}
	}
	return least
}

// TestSendingAllocatesNothing sends to a peer that throws all away, and to one that accepts all.
func TestSendingAllocatesNothing(t *testing.T) {
	const n, pending = 20_000, 100
	for _, option := range []string{"settle=at-most-once", "settle=at-least-once"} {
		t.Run(option, func(t *testing.T) {
			url := muted(t, func(p *peer) {
				buf := make([]byte, 256<<10)
				all := wire.Disposition{Role: wire.RoleReceiver, Last: 1<<32 - 1, Settled: true, State: []byte(wire.Accepted)}
				answer := all.AppendFrame(nil, 0)
				for {
					if _, err := p.conn.Read(buf); err != nil {
						return
					}
					if option == "settle=at-least-once" {
						p.write(answer)
					}
				}
			})
			r := newRig(t, driver.OpenOptions{URL: url}, option)
			free := make(chan driver.Slot, pending)
			for i := range uint32(pending) {
				free <- driver.NewSlot(i, 0)
			}
			spec := producerSpec(pending)
			spec.Variants[0].Properties = []driver.Property{{Key: "order", Value: "10", Varies: true}}
			p, err := r.d.Producer(soon(t), spec, driver.DoneFunc(func(s driver.Slot, _ driver.Outcome) { free <- s }))
			require.NoError(t, err)
			m := driver.Message{ID: driver.ID{Run: 1, Producer: 2, Sum: 4}, Values: [][]byte{[]byte("7")}}
			ctx := context.Background()
			allocated := perMessage(n, func() {
				for i := range n {
					m.Slot, m.Time, m.ID.Number = <-free, int64(i), int64(i)
					if err := p.Send(ctx, &m); err != nil {
						t.Fatal(err)
					}
				}
			})
			t.Logf("%.4f allocations per message", allocated)
			require.LessOrEqual(t, allocated, few)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.NoError(t, p.Close(ended))
		})
	}
}

// TestReceivingAllocatesNothing receives from a peer that sends whatever the credit is: settled, and to be settled.
func TestReceivingAllocatesNothing(t *testing.T) {
	const n = 20_000
	for name, shared := range map[string]bool{"connection of its own": false, "shared connection": true} {
		for _, settled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, settled %t", name, settled), func(t *testing.T) {
				url := muted(t, func(p *peer) {
					go func() { // acceptances and credit are not read
						buf := make([]byte, 64<<10)
						for {
							if _, err := p.conn.Read(buf); err != nil {
								return
							}
						}
					}()
					frames := transfers(1000, settled, 0)
					for {
						if _, err := p.conn.Write(frames); err != nil {
							return
						}
					}
				})
				r := newRig(t, driver.OpenOptions{URL: url})
				spec := consumerSpec()
				spec.Credit = 1 << 29
				k, err := r.tryConsumer(spec)
				require.NoError(t, err)
				if shared {
					k.(*consumer).lease.Conn.WasShared.Store(true)
				}
				reached, count := make(chan struct{}), 0
				ctx, stop := context.WithCancel(context.Background())
				running := make(chan error, 1)
				go func() {
					running <- k.Run(ctx, func(d *driver.Delivery) driver.Verdict {
						if count++; count%n == 0 && d.HasTime {
							select {
							case reached <- struct{}{}:
							case <-ctx.Done():
							}
						}
						return driver.Accept
					})
				}()
				<-reached
				allocated := perMessage(n, func() { <-reached })
				t.Logf("%.4f allocations per message", allocated)
				require.LessOrEqual(t, allocated, few)
				stop()
				require.NoError(t, <-running)
				require.NoError(t, k.Close(ctx))
			})
		}
	}
}

// transfers are so many messages with a time and an ID, as a broker sends them.
func transfers(n int, settled bool, handle uint32) []byte {
	var b []byte
	message := wire.Content{TimeKey: driver.TimeProperty, IDKey: driver.IDProperty, Body: []byte("body")}
	template, err := wire.NewTemplate(&message)
	if err != nil {
		panic(err)
	}
	for i := range n {
		head := wire.Transfer{
			Handle: handle, DeliveryID: wire.Some(uint32(i)), DeliveryTag: []byte{1}, MessageFormat: wire.Some[uint32](0), Settled: settled, //nolint:gosec // small
		}
		at := len(b)
		b = template.Append(head.AppendHead(b, 0), 1, []byte("1-2-3-4"), "", nil)
		wire.EndFrame(b, at)
	}
	return b
}
