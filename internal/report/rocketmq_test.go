package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// second has the figures of one second of a run for TestRocketMQ.
type second struct {
	completed, received      int
	ack, b2c, s2c            time.Duration // of each message
	unsent, failed, rejected int
	own                      []driver.Counter // as totals
}

// play feeds seconds to a console. Cuts come 2 ms late, as in real runs, and sometimes a phase ends within a second.
func play(t *testing.T, r *RocketMQ, seconds []second, phases map[int]stats.Phase) stats.Counters {
	t.Helper()
	var total stats.Counters
	phase, from := stats.Measure, loadStart()
	for i, sec := range seconds {
		if p, ok := phases[i]; ok {
			phase = p
		}
		var d stats.Counters
		d[result.Completed], d[result.Received], d[result.Unsent] = uint64(sec.completed), uint64(sec.received), uint64(sec.unsent)
		d[result.Failed], d[result.Rejected] = uint64(sec.failed+sec.unsent), uint64(sec.rejected)
		d[result.Sent] = d[result.Completed] + d[result.Failed] + d[result.Rejected]
		var none stats.Counters
		total = total.Sub(none.Sub(d))
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
		elapsed := time.Duration(i+1)*time.Second + time.Duration(i%2)*2*time.Millisecond
		half := loadStart().Add(elapsed - 600*time.Millisecond)
		if i%4 == 3 { // cut in two: all happens in the first part
			require.NoError(t, r.Interval(&stats.Snapshot{
				Phase: phase, From: from, To: half, Elapsed: half.Sub(loadStart()), Total: total, Delta: d, Latencies: l, Protocol: sec.own,
			}))
			from, d, l = half, none, result.Latencies{}
		}
		to := loadStart().Add(elapsed)
		require.NoError(t, r.Interval(&stats.Snapshot{
			Phase: phase, From: from, To: to, Elapsed: elapsed, Total: total, Delta: d, Latencies: l, Protocol: sec.own,
		}))
		from = to
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
	producer, consumer := clientRun(false), clientRun(false)
	producer.Consuming, consumer.Producing = false, false

	// Seconds 1 to 20: the first is slow and not in the window, the fifth has the longest RT and the failures.
	sending := steady(20, second{completed: 900, ack: 2500 * time.Microsecond})
	sending[0] = second{completed: 10, ack: 4 * time.Millisecond}
	sending[4] = second{completed: 450, ack: 100_999 * time.Microsecond, unsent: 1, failed: 4, rejected: 2}

	// The longest times are in the first second and in second 15; the last 10 s are silent.
	receiving := steady(30, second{received: 300, b2c: 7 * time.Millisecond, s2c: 3 * time.Millisecond})
	receiving[0] = second{received: 300, b2c: 80 * time.Millisecond, s2c: 40 * time.Millisecond}
	receiving[14] = second{received: 300, b2c: 70 * time.Millisecond, s2c: 30 * time.Millisecond}
	for i := 20; i < 30; i++ {
		receiving[i] = second{b2c: time.Millisecond}
	}
	for i := range receiving {
		receiving[i].own = []driver.Counter{{Name: ownConsumeFailed, Value: uint64(10 * i)}}
	}

	transactions := steady(20, second{completed: 90, ack: 11 * time.Millisecond, failed: 1})
	transactions[10].ack = 55 * time.Millisecond
	for i := range transactions {
		transactions[i].own = []driver.Counter{
			{Name: ownChecks, Value: uint64(3 * i)}, {Name: ownUnexpectedChecks, Value: uint64(i)}, {Name: ownDuplicatedChecks, Value: 7},
		}
	}

	batches := steady(10, second{completed: 1600, ack: 8 * time.Millisecond})
	batches[3].failed = 16
	for i := range batches {
		batches[i].own = []driver.Counter{{Name: ownRequests, Value: uint64(100 * i)}, {Name: ownRequestsFailed, Value: 1}}
	}

	both := steady(12, second{completed: 500, received: 400, ack: time.Millisecond})

	for _, test := range []struct {
		name    string
		run     stats.Run
		seconds []second
		phases  map[int]stats.Phase
	}{
		{"producer", producer, sending, nil},
		{"consumer", consumer, receiving, nil},
		{"transaction", producer, transactions, nil},
		{"batch", producer, batches, nil},
		{"client", clientRun(false), both, map[int]stats.Phase{0: stats.Warmup, 3: stats.Measure}},
		{"drain", producer, append(steady(11, second{completed: 100, ack: time.Millisecond}), second{}, second{}), map[int]stats.Phase{11: stats.Drain}},
		{"short", producer, steady(1, second{completed: 100, ack: time.Millisecond, unsent: 2, failed: 1}), nil},
		{"silence", producer, steady(10, second{}), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			r := NewRocketMQ(&out, ConsoleOptions{})
			require.NoError(t, r.Start(test.run))
			total := play(t, r, test.seconds, test.phases)
			require.NoError(t, r.Summary(summary(total, result.Latencies{})))
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
	require.NoError(t, r.Start(clientRun(false)))
	require.ErrorContains(t, r.Summary(summary(stats.Counters{}, result.Latencies{})), "print to the console: full")
}

var errFull = errors.New("full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }
