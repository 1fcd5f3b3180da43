package report

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// BenchmarkPeriod is the time from one line of RocketMQ's benchmark to the next.
const BenchmarkPeriod = 10 * time.Second

const benchmarkTime = "2006-01-02 15:04:05,000" // UtilAll.timeMillisToHumanString2

// RocketMQ is a [Console] that prints the lines of RocketMQ's benchmark (org.apache.rocketmq.example.benchmark) during
// the run, as Producer and Consumer do. After the line [Complete] the summary of Console follows, because the
// benchmark has none. [Paced] makes an interval of each period.
//
// The figures are defined as in the benchmark: rates and averages are over the period, and NaN without values; Max RT
// is since the start of the run, for consumers of the period; failures are since the start, for consumers of the
// period.
// Send Failed counts the messages that could not be sent ([result.Unsent]), Response Failed all others that were not
// accepted. [Complete] has the rate and the mean of the measured part. Warm-up and steps have lines of their own.
//
// Differences to the benchmark: RTs are averaged in microseconds, and maxima are rounded down to milliseconds; B2C and
// S2C are "-" if the protocol does not have them.
type RocketMQ struct {
	*Console
	maxAck int64 // since the start, microseconds
}

// NewRocketMQ returns a console that prints to out; options.ShowLatency has no effect.
func NewRocketMQ(out io.Writer, options ConsoleOptions) *RocketMQ {
	return &RocketMQ{Console: NewConsole(out, options)}
}

// Interval prints the lines of a period.
func (r *RocketMQ) Interval(s *stats.Snapshot) error {
	for _, all := range []*result.Latencies{&s.Latencies, s.Leftover} {
		if all != nil && all[result.Ack] != nil {
			r.maxAck = max(r.maxAck, all[result.Ack].Max)
		}
	}
	length := s.To.Sub(s.From)
	if length < shortest && s.Lost == "" {
		return nil
	}
	var b strings.Builder
	now := s.To.Format(benchmarkTime)
	if s.Lost != "" {
		fmt.Fprintf(&b, "Current Time: %s | Lost: %s\n", now, oneLine(s.Lost))
	}
	if r.run.Producing {
		fmt.Fprintf(&b, "Current Time: %s | %s", now,
			r.producer(rate(s.Get(result.Completed), length), s.Latencies[result.Ack], &s.Total))
	}
	if r.run.Consuming {
		b2c, s2c := s.Latencies[result.B2C], s.Latencies[result.S2C]
		fmt.Fprintf(&b, "Current Time: %s | Consume TPS: %d | AVG(B2C) RT(ms): %s | AVG(S2C) RT(ms): %s | MAX(B2C) RT(ms): "+
			"%s | MAX(S2C) RT(ms): %s | Consume Fail: %d\n", now, rate(s.Get(result.Received), length),
			average(b2c), average(s2c), highest(b2c), highest(s2c),
			s.Get(result.ConsumerReleased)+s.Get(result.ConsumerRejected))
	}
	if r.run.Opening {
		fmt.Fprintf(&b, "Current Time: %s | Live: %d", now, s.Live)
		for _, o := range words.Openings(&s.Counts) {
			fmt.Fprintf(&b, " | %s: %d", o.Name, o.N)
		}
		b.WriteString("\n")
	}
	return r.print(b.String())
}

// Summary prints the line [Complete], if the run has producers, and the summary.
func (r *RocketMQ) Summary(s *stats.Summary) error {
	if r.run.Producing {
		line := r.producer(rate(s.Average.Completed, s.Average.Span), s.Latencies[result.Ack], &s.Total)
		if err := r.print(fmt.Sprintf("[Complete] Send Total: %d | %s", s.Total.Get(result.Sent), line)); err != nil {
			return err
		}
	}
	return r.Console.Summary(s)
}

// producer returns the figures of Producer.
func (r *RocketMQ) producer(perSecond uint64, ack *result.Latency, counts *result.Counts) string {
	total := counts.Values()
	failed := total[result.Rejected] + total[result.Released] + total[result.Modified] + total[result.Failed] -
		total[result.Unsent] + total[result.Unconfirmed]
	return fmt.Sprintf("Send TPS: %d | Max RT(ms): %d | Average RT(ms): %s | Send Failed: %d | Response Failed: %d\n",
		perSecond, r.maxAck/1000, average(ack), total[result.Unsent], failed)
}

// average returns a mean in milliseconds.
func average(l *result.Latency) string {
	switch {
	case l == nil:
		return "      -"
	case l.Count == 0:
		return fmt.Sprintf("%7.3f", math.NaN())
	default:
		return fmt.Sprintf("%7.3f", l.Mean()/1000)
	}
}

// highest returns a maximum in milliseconds.
func highest(l *result.Latency) string {
	if l == nil {
		return "-"
	}
	return fmt.Sprint(l.Max / 1000)
}
