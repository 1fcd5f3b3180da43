//go:build unix

package stomp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/go-stomp/stomp/v3/frame"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

func openDriver(tb testing.TB, url string, options ...string) driver.Driver {
	tb.Helper()
	o := Factory().NewOptions()
	require.NoError(tb, driver.SetOptions(o, options))
	d, err := Factory().Open(tb.Context(), driver.OpenOptions{
		URL: url, User: brokertest.User, Password: brokertest.Password, ConnectTimeout: patience, Options: o,
	})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, d.Close(context.Background())) })
	return d
}

// BenchmarkArtemisSend is the rate of sends with so many in flight: to a topic without subscribers, which is the
// least work for the broker, and to a queue with a consumer.
func BenchmarkArtemisSend(b *testing.B) {
	a := brokertest.StartArtemis(b, brokertest.WithoutManagement())
	for _, to := range []struct {
		name       string
		kind       driver.Kind
		persistent bool
		id         driver.ID
	}{
		{"topic", driver.Topic, false, driver.ID{}},
		{"topic,ID", driver.Topic, false, benchID()},
		{"queue", driver.Queue, false, driver.ID{}},
		{"queue,ID", driver.Queue, false, benchID()},
		{"queue,persistent", driver.Queue, true, driver.ID{}},
	} {
		for _, slots := range []int{1, 100, 1000} {
			b.Run(fmt.Sprintf("%s/pending=%d", to.name, slots), func(b *testing.B) {
				d := openDriver(b, a.STOMPURL())
				dest := driver.Destination{Kind: to.kind, Name: fmt.Sprintf("bench-%s-%d-%d", to.name, slots, b.N)}
				received := make(chan error, 1)
				if to.kind == driver.Queue {
					go func() { received <- receive(b, d, dest, b.N) }()
				} else {
					received <- nil
				}
				benchSend(b, d, driver.ProducerSpec{
					Connection: driver.Connection{Key: "p"}, Destination: dest, MaxPending: slots, Persistent: to.persistent, Variants: benchBody(),
				}, to.id)
				require.NoError(b, <-received)
			})
		}
	}
}

// benchBody is one kind of messages of 1 KiB.
func benchBody() []driver.Variant { return []driver.Variant{{Body: make([]byte, 1024), Priority: -1}} }

// benchID is an ID with parts as large as they come.
func benchID() driver.ID {
	return driver.ID{Run: 1<<62 + 1, Producer: 1, Number: 1 << 40, Sum: 1<<61 + 1}
}

func benchSend(b *testing.B, d driver.Driver, spec driver.ProducerSpec, id driver.ID) {
	b.Helper()
	free := make(chan driver.Slot, spec.MaxPending)
	for i := range spec.MaxPending {
		free <- driver.NewSlot(uint32(i), 1)
	}
	p, err := d.Producer(b.Context(), spec, driver.DoneFunc(func(s driver.Slot, o driver.Outcome) {
		if o.State != driver.Accepted {
			b.Errorf("not accepted: %v", o.Err)
		}
		free <- driver.NewSlot(s.Index(), s.Generation()+1)
	}))
	require.NoError(b, err)
	m := driver.Message{Time: 1, ID: id}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuTime(b)
	for range b.N {
		m.Slot = <-free
		if err := p.Send(b.Context(), &m); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, p.Close(b.Context()))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// receive receives n messages.
func receive(b *testing.B, d driver.Driver, dest driver.Destination, n int) error {
	b.Helper()
	c, err := d.Consumer(b.Context(), driver.ConsumerSpec{Connection: driver.Connection{Key: "c"}, Destination: dest})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	err = c.Run(ctx, func(*driver.Delivery) driver.Verdict {
		if n--; n == 0 {
			cancel()
		}
		return driver.Accept
	})
	if n > 0 {
		err = errors.Join(err, fmt.Errorf("%d messages are missing", n))
	}
	return errors.Join(err, c.Close(b.Context()))
}

// cpuTime is the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkArtemisReceive is the rate of a consumer on a backlog.
func BenchmarkArtemisReceive(b *testing.B) {
	a := brokertest.StartArtemis(b, brokertest.WithoutManagement(), brokertest.WithHeap("1G"))
	for _, options := range [][]string{
		{"ack=client-individual"}, {"ack=client"}, {"ack=client-individual", "window=-1"}, {"ack=client", "window=-1"}, {"ack=auto"},
	} {
		b.Run(fmt.Sprint(options), func(b *testing.B) {
			d := openDriver(b, a.STOMPURL(), options...)
			queue := driver.Destination{Name: fmt.Sprint("bench", len(options), options[0], b.N)}
			b.ResetTimer()
			benchSend(b, d, driver.ProducerSpec{
				Connection: driver.Connection{Key: "p"}, Destination: queue, MaxPending: 1000, Variants: benchBody(),
			}, driver.ID{})
			b.ResetTimer()
			b.StartTimer()
			require.NoError(b, receive(b, d, queue, b.N))
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}

// artemisMessage is a MESSAGE frame as Artemis sends it.
func artemisMessage() []byte {
	return append([]byte("MESSAGE\nsubscription:0\ncontent-length:1024\nmessage-id:0,123456\ndestination:TEST_QUEUE\nexpires:0\n"+
		"redelivered:false\npriority:4\npersistent:true\ntimestamp:1700000000000\ndestination-type:ANYCAST\nreceipt:s0.17.123456\n"+
		"time:1700000000000000\nack:0,123456\n\n"), append(make([]byte, 1024), 0, '\n')...)
}

type repeat struct {
	data []byte
	at   int
}

func (r *repeat) Read(b []byte) (int, error) {
	n := copy(b, r.data[r.at:])
	r.at = (r.at + n) % len(r.data)
	return n, nil
}

// BenchmarkRead compares our reading of the frames that come once per message with the frame package's.
func BenchmarkRead(b *testing.B) {
	for name, data := range map[string][]byte{"MESSAGE": artemisMessage(), "RECEIPT": []byte("RECEIPT\nreceipt-id:s0.17.123456\n\n\x00\n")} {
		b.Run(name+"/ours", func(b *testing.B) {
			c := connectionOf(&repeat{data: data}, driver.DefaultMaxBody)
			var m message
			b.ReportAllocs()
			for range b.N {
				f, err := c.next("")
				if err != nil {
					b.Fatal(err)
				}
				if f.Command == wire.MESSAGE {
					m.read(f, c.version)
				} else if _, ok := parseReceipt(f.Get("receipt-id")); !ok {
					b.Fatal("no receipt")
				}
			}
		})
		b.Run(name+"/package", func(b *testing.B) {
			r := frame.NewReaderSize(bufio.NewReaderSize(&repeat{data: data}, transport.InputSize), transport.InputSize)
			b.ReportAllocs()
			for n := 0; n < b.N; {
				f, err := r.Read()
				if err != nil {
					b.Fatal(err)
				}
				if f != nil {
					n++
				}
			}
		})
	}
}

// BenchmarkWrite compares our writing of a SEND frame with the frame package's.
func BenchmarkWrite(b *testing.B) {
	body := make([]byte, 1024)
	b.Run("ours", func(b *testing.B) {
		c := newConnection(newDriver(config{transport.Settings[Options]{Options: *defaultOptions()}}), nil, nil, "")
		c.version, c.dialect = wire.V12, artemis
		p := &producer{conn: c, confirm: true}
		spec := driver.ProducerSpec{Destination: driver.Destination{Name: "TEST_QUEUE"}, Variants: []driver.Variant{{Body: body, Priority: -1}}}
		require.NoError(b, p.prepare(&spec))
		buf := make([]byte, 0, 4096)
		b.ReportAllocs()
		for i := range b.N {
			buf = p.appendSend(buf[:0], &driver.Message{Slot: driver.NewSlot(17, uint32(i)), Time: 1700000000000000}, nil)
		}
	})
	b.Run("package", func(b *testing.B) {
		w := frame.NewWriterSize(io.Discard, 1<<16)
		b.ReportAllocs()
		for i := range b.N {
			f := frame.New(frame.SEND, "destination", "TEST_QUEUE", "destination-type", "ANYCAST", "persistent", "false",
				"time", strconv.FormatInt(1700000000000000, 10), "receipt", "s0.17."+strconv.Itoa(i),
				"content-length", strconv.Itoa(len(body)))
			f.Body = body
			if err := w.Write(f); err != nil {
				b.Fatal(err)
			}
		}
	})
}
