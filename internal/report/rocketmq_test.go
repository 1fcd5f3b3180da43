package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// second has the figures of one second of a run for TestRocketMQ.
type second struct {
	completed, received                int
	ack, b2c, s2c                      time.Duration // of each message
	unsent, failed, rejected, released int
}

// play feeds seconds to a console, with warm-up in the first ones.
func play(t *testing.T, r Reporter, seconds []second, warmup int) (total stats.Counters) {
	t.Helper()
	for i, sec := range seconds {
		d := stats.Counters{
			result.Completed: uint64(sec.completed), result.Received: uint64(sec.received), result.Unsent: uint64(sec.unsent),
			result.Failed: uint64(sec.failed + sec.unsent), result.Rejected: uint64(sec.rejected), result.ConsumerReleased: uint64(sec.released),
		}
		d[result.Sent] = d[result.Completed] + d[result.Failed] + d[result.Rejected]
		total = total.Add(d)
		l := result.Latencies{result.Ack: result.NewLatency()}
		for range sec.completed {
			l[result.Ack].Record(sec.ack)
		}
		if sec.b2c > 0 {
			l[result.B2C], l[result.S2C] = result.NewLatency(), result.NewLatency()
			for range sec.received {
				l[result.B2C].Record(sec.b2c)
				l[result.S2C].Record(sec.s2c)
			}
		}
		phase := stats.Measure
		if i < warmup {
			phase = stats.Warmup
		}
		from := loadStart().Add(time.Duration(i) * time.Second)
		s := between("load", phase, from, from.Add(time.Second), d, l)
		s.Total = total.Counts(true, true)
		require.NoError(t, r.Interval(s))
	}
	return total
}

// steady returns n equal seconds.
func steady(n int, s second) []second {
	list := make([]second, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func TestRocketMQ(t *testing.T) {
	t.Parallel()
	producer, consumer := clientRun(), clientRun()
	producer.Consuming, consumer.Producing = false, false

	// The fifth second has the longest RT and the failures.
	sending := steady(20, second{completed: 900, ack: 2500 * time.Microsecond})
	sending[4] = second{completed: 450, ack: 100_999 * time.Microsecond, unsent: 1, failed: 4, rejected: 2}

	// The longest times are in the first second and in second 15; the last 10 s are silent.
	receiving := steady(30, second{received: 300, b2c: 7 * time.Millisecond, s2c: 3 * time.Millisecond, released: 1})
	receiving[0] = second{received: 300, b2c: 80 * time.Millisecond, s2c: 40 * time.Millisecond}
	receiving[14] = second{received: 300, b2c: 70 * time.Millisecond, s2c: 30 * time.Millisecond}
	for i := 20; i < 30; i++ {
		receiving[i] = second{b2c: time.Millisecond}
	}

	for _, test := range []struct {
		name    string
		run     stats.Run
		seconds []second
		warmup  int
	}{
		{"producer", producer, sending, 0},
		{"consumer", consumer, receiving, 0},
		{"client", clientRun(), steady(13, second{completed: 500, received: 400, ack: time.Millisecond}), 3},
		{"silence", producer, steady(10, second{}), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			r := Paced(NewRocketMQ(&out, ConsoleOptions{}), BenchmarkPeriod)
			require.NoError(t, r.Start(test.run))
			total := play(t, r, test.seconds, test.warmup)
			s := summary(total, result.Latencies{result.Ack: result.NewLatency()})
			s.Average = stats.Average{Span: 10 * time.Second, Completed: 5000}
			require.NoError(t, r.Summary(s))
			require.NoError(t, r.Close())
			lines, rest, ok := strings.Cut(out.String(), "\n--- SUMMARY\n")
			require.True(t, ok, "the summary follows")
			require.Contains(t, rest, "--- result:              success\n")
			golden(t, "rocketmq-"+test.name+".txt", lines)
		})
	}
}

func TestRocketMQWriteError(t *testing.T) {
	t.Parallel()
	r := NewRocketMQ(failingWriter{}, ConsoleOptions{})
	require.NoError(t, r.Start(clientRun()))
	require.ErrorContains(t, r.Summary(summary(stats.Counters{}, result.Latencies{})), "print to the console: full")
}

var errFull = errors.New("full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }
