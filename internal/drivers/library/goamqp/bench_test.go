//go:build unix

package goamqp

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// BenchmarkWrites compares the library on a plain connection with the library on one that gathers writes: 100 messages
// of 1 KiB in flight, each sent by a goroutine that waits for its own answer.
func BenchmarkWrites(b *testing.B) {
	broker := sharedBroker.Artemis(b)
	address := strings.TrimPrefix(broker.AMQPURL(), "amqp://")
	for _, name := range []string{"plain", "gathered"} {
		b.Run(name, func(b *testing.B) {
			raw, err := net.Dial("tcp", address)
			require.NoError(b, err)
			conn := raw
			if name == "gathered" {
				conn = newGatherConn(raw, transport.Meter(raw))
			}
			client, err := amqp.NewConn(b.Context(), conn, &amqp.ConnOptions{SASLType: amqp.SASLTypeAnonymous()})
			require.NoError(b, err)
			session, err := client.NewSession(b.Context(), nil)
			require.NoError(b, err)
			sender, err := session.NewSender(b.Context(), "bench.writes", &amqp.SenderOptions{TargetCapabilities: []string{"queue"}})
			require.NoError(b, err)
			body := make([]byte, 1024)
			todo := make(chan struct{}, 100)
			ended := make(chan error)
			report := cpu(b)
			b.ResetTimer()
			for range 100 {
				go func() {
					var failed error
					for range todo {
						if err := sender.Send(context.Background(), amqp.NewMessage(body), nil); err != nil {
							failed = err
						}
					}
					ended <- failed
				}()
			}
			for range b.N {
				todo <- struct{}{}
			}
			close(todo)
			for range 100 {
				require.NoError(b, <-ended)
			}
			b.StopTimer()
			report()
			require.NoError(b, client.Close())
			_, err = broker.PurgeQueue(b.Context(), "bench.writes")
			require.NoError(b, err)
		})
	}
}

// BenchmarkProducer sends 1 KiB messages through the driver, with the given number in flight, and with IDs.
func BenchmarkProducer(b *testing.B) {
	broker := sharedBroker.Artemis(b)
	for _, c := range []struct {
		name, settle string
		pending      int
		id           driver.ID
	}{
		{"1", settleAtLeastOnce, 1, driver.ID{}},
		{"100", settleAtLeastOnce, 100, driver.ID{}},
		{"100 ID", settleAtLeastOnce, 100, benchID()},
		{"100 settled", settleAtMostOnce, 100, driver.ID{}},
		{"100 settled ID", settleAtMostOnce, 100, benchID()},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, q := openBench(b, broker.AMQPURL(), c.settle), driver.Destination{Name: "bench.producer"}
			free := make(chan driver.Slot, c.pending)
			for i := range c.pending {
				free <- driver.Slot(i) //nolint:gosec // small
			}
			p, err := d.Producer(b.Context(), driver.ProducerSpec{
				Connection: conn("bench"), Destination: q, Name: "p", MaxPending: c.pending, Priority: -1,
			}, func(s driver.Slot, _ driver.Outcome) { free <- s })
			require.NoError(b, err)
			m := driver.Message{ID: c.id, Body: make([]byte, 1024)}
			b.ReportAllocs()
			report := cpu(b)
			b.ResetTimer()
			for range b.N {
				m.Slot, m.Time = <-free, time.Now().UnixMicro()
				m.ID.Number += c.id.Producer
				if err := p.Send(b.Context(), &m); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, p.Close(context.Background()))
			b.StopTimer()
			report()
			_, err = broker.PurgeQueue(b.Context(), q.Name)
			require.NoError(b, err)
		})
	}
}

// benchID is an ID with parts as large as they come.
func benchID() driver.ID {
	return driver.ID{Run: 1<<62 + 1, Producer: 1, Number: 1 << 40, Sum: 1<<61 + 1}
}

// BenchmarkConsumer receives 1 KiB messages of a backlog, and such with IDs.
func BenchmarkConsumer(b *testing.B) {
	broker := sharedBroker.Artemis(b)
	for _, c := range []struct {
		name, settle string
		id           driver.ID
	}{
		{"unsettled", settleAtLeastOnce, driver.ID{}},
		{"unsettled ID", settleAtLeastOnce, benchID()},
		{"settled", settleAtMostOnce, driver.ID{}},
		{"settled ID", settleAtMostOnce, benchID()},
	} {
		b.Run(c.name, func(b *testing.B) {
			d, q := openBench(b, broker.AMQPURL(), c.settle), driver.Destination{Name: "bench.consumer"}
			free := make(chan driver.Slot, 100)
			for i := range 100 {
				free <- driver.Slot(i) //nolint:gosec // small
			}
			p, err := d.Producer(b.Context(), driver.ProducerSpec{Connection: conn("fill"), Destination: q, Name: "p", MaxPending: 100},
				func(s driver.Slot, _ driver.Outcome) { free <- s })
			require.NoError(b, err)
			for range b.N {
				require.NoError(b, p.Send(b.Context(), &driver.Message{Slot: <-free, ID: c.id, Body: make([]byte, 1024)}))
			}
			require.NoError(b, p.Close(b.Context()))
			b.ReportAllocs()
			report := cpu(b)
			b.ResetTimer()
			k, err := d.Consumer(b.Context(), driver.ConsumerSpec{Connection: conn("bench"), Destination: q, Name: "c"})
			require.NoError(b, err)
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			got := 0
			require.NoError(b, k.Run(ctx, func(*driver.Delivery) {
				if got++; got == b.N {
					cancel()
				}
			}))
			b.StopTimer()
			report()
			require.NoError(b, k.Close(context.Background()))
		})
	}
}

// cpu makes the benchmark report the CPU time of this process per message, which a busy machine disturbs less than the
// rate. Call the result at the end.
func cpu(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64((used()-before).Nanoseconds())/float64(b.N), "cpu-ns/op") }
}

func openBench(b *testing.B, url, settle string) driver.Driver {
	b.Helper()
	o := defaultOptions()
	o.Settle = settle
	d, err := Factory().Open(b.Context(), driver.OpenOptions{URL: url, ConnectTimeout: 10 * time.Second, Options: o})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, d.Close(context.Background())) })
	return d
}
