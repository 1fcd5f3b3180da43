//go:build unix

package rocketmq

import (
	"context"
	"fmt"
	"os"
	"slices"
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

// benchURL is that of a broker given by PERFMQ_BENCH_ROCKETMQ, or of one that is started.
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
	for _, options := range [][]string{{"send=async"}, {"send=batch"}, {"send=oneway"}, {"send=async", "transactional=true"}, {"send=async", "ID"}} {
		for _, pending := range []int{64, 100, 1000} {
			b.Run(fmt.Sprintf("%s/pending=%d", options[len(options)-1], pending), func(b *testing.B) {
				withID := options[len(options)-1] == "ID"
				d := openDriver(b, benchURL(b), slices.DeleteFunc(slices.Clone(options), func(s string) bool { return s == "ID" })...)
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
						if withID {
							m.ID = driver.ID{Run: 1 << 60, Number: m.ID.Number + 1, Sum: 1 << 61}
						}
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

// BenchmarkID is the cost of carrying an ID: in building a header, and in reading the properties of a delivery.
func BenchmarkID(b *testing.B) {
	for name, id := range map[string]driver.ID{
		"without": {}, "run": {Run: 1 << 60, Producer: 3, Number: driver.Unnumbered},
		"verify": {Run: 1 << 60, Producer: 3, Number: 123_456_789, Sum: 1 << 61},
	} {
		p := &producer{opts: defaultOptions()}
		q, k := sendQueue{p.sendBroker(nil, "broker-a", 1), 0}, &kind{body: make([]byte, 1024)}
		m := driver.Message{Time: 1_700_000_000_000_000, ID: id}
		b.Run("header/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.header(q, k, &m, m.Time, k.body)
			}
		})
		properties := p.appendProperties(nil, k, &m)
		b.Run("read/"+name, func(b *testing.B) {
			b.ReportAllocs()
			var d driver.Delivery
			var ids driver.IDReader
			for b.Loop() {
				readProperties(properties, &ids, &d)
			}
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	d := openDriver(b, benchURL(b), "send=batch", "batch-size=32")
	topic := unique("bench")
	const pending = 1000
	free := make(chan driver.Slot, pending)
	for i := range pending {
		free <- driver.Slot(i)
	}
	spec := driver.ProducerSpec{
		Connection: driver.Connection{Key: "p", Name: "bench"}, Destination: queueNamed(topic), Name: "bench", MaxPending: pending, Variants: kibibyte(),
	}
	p, err := d.Producer(b.Context(), spec, driver.DoneFunc(func(s driver.Slot, _ driver.Outcome) { free <- s }))
	require.NoError(b, err)
	var m driver.Message
	for range b.N {
		m.Slot, m.Time = <-free, time.Now().UnixMicro()
		require.NoError(b, p.Send(b.Context(), &m))
	}
	require.NoError(b, p.Close(b.Context()))
	c, err := d.Consumer(b.Context(), driver.ConsumerSpec{Connection: driver.Connection{Key: "c", Name: "bench"}, Destination: queueNamed(topic)})
	require.NoError(b, err)
	measure(b, func() {
		ctx, cancel := context.WithCancel(b.Context())
		n := 0
		require.NoError(b, c.Run(ctx, func(*driver.Delivery) driver.Verdict {
			if n++; n == b.N {
				cancel()
			}
			return driver.Accept
		}))
	})
	require.NoError(b, c.Close(b.Context()))
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
