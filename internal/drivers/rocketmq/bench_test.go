//go:build unix

package rocketmq

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	libproducer "github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// cpuTime is the processor time that this process has used, on all cores.
func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// benchURL returns the URL in PERFMQ_BENCH_ROCKETMQ, or starts a broker.
func benchURL(b *testing.B) string {
	if url := os.Getenv("PERFMQ_BENCH_ROCKETMQ"); url != "" {
		return url
	}
	return shared.get(b).URL()
}

// measure reports the rate and the processor time per message of f, which sends or receives b.N.
func measure(b *testing.B, f func()) {
	b.ReportAllocs()
	b.ResetTimer()
	cpu, begin := cpuTime(), time.Now()
	f()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "msg/s")
	b.ReportMetric(float64((cpuTime()-cpu).Microseconds())/float64(b.N), "cpu-us/msg")
}

// kibibyte is a plain message.
func kibibyte() []driver.Variant { return []driver.Variant{{Body: make([]byte, 1024), Priority: -1}} }

func BenchmarkSend(b *testing.B) {
	for _, options := range [][]string{{"send=async"}, {"send=batch"}, {"send=oneway"}, {"send=async", "transactional=true"}} {
		for _, pending := range []int{64, 100, 1000} {
			b.Run(fmt.Sprintf("%s/pending=%d", options[len(options)-1], pending), func(b *testing.B) {
				d := openDriver(b, benchURL(b), options...)
				free := make(chan driver.Slot, pending)
				for i := range pending {
					free <- driver.Slot(i)
				}
				var bad atomic.Int64
				p, err := d.Producer(b.Context(), driver.ProducerSpec{
					Connection: driver.Connection{Key: "p", Name: "bench"}, Destination: topicNamed(unique("bench")),
					Name: "bench", MaxPending: pending, Variants: kibibyte(),
				}, driver.DoneFunc(func(s driver.Slot, o driver.Outcome) {
					if o.State != driver.Accepted {
						bad.Add(1)
					}
					free <- s
				}))
				require.NoError(b, err)
				var m driver.Message
				measure(b, func() {
					for range b.N {
						m.Slot, m.Time = <-free, time.Now().UnixMicro()
						m.More = len(free) > 0
						if err := p.Send(b.Context(), &m); err != nil {
							b.Fatal(err)
						}
					}
					require.NoError(b, p.(driver.Flusher).Flush(b.Context()))
					for range pending {
						<-free
					}
				})
				b.ReportMetric(float64(bad.Load()), "failed")
				require.NoError(b, p.Close(b.Context()))
			})
		}
	}
}

// BenchmarkLibrarySend is the measurement behind the decision not to send with the library.
func BenchmarkLibrarySend(b *testing.B) {
	url := benchURL(b)
	d := openDriver(b, url)
	topic := unique("bench")
	ctx, cancel := d.(*rocketDriver).opening(b.Context())
	defer cancel()
	_, err := d.(*rocketDriver).routeOf(ctx, topic) // creates it
	require.NoError(b, err)
	for _, pending := range []int{64, 100, 1000} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			p, err := libproducer.NewDefaultProducer(libproducer.WithNameServer(primitive.NamesrvAddr{d.(*rocketDriver).cfg.Target.Hosts[0].String()}),
				libproducer.WithInstanceName(unique("bench")), libproducer.WithGroupName("bench"), libproducer.WithRetry(0))
			require.NoError(b, err)
			require.NoError(b, p.Start())
			free := make(chan struct{}, pending)
			var bad atomic.Int64
			body := make([]byte, 1024)
			measure(b, func() {
				for range b.N {
					free <- struct{}{}
					err := p.SendAsync(b.Context(), func(_ context.Context, _ *primitive.SendResult, err error) {
						if err != nil {
							bad.Add(1)
						}
						<-free
					}, primitive.NewMessage(topic, body))
					if err != nil {
						bad.Add(1)
						<-free
					}
				}
				for range pending {
					free <- struct{}{}
				}
			})
			b.ReportMetric(float64(bad.Load()), "failed")
			require.NoError(b, p.Shutdown())
		})
	}
}
