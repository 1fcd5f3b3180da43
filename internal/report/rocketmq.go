package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// RocketMQ's benchmark takes a sample each second and keeps the last benchmarkSamples. Every benchmarkPeriod seconds it
// prints a line about the 9 seconds from the first to the last of them.
const (
	benchmarkSamples = 10
	benchmarkPeriod  = 10
	benchmarkTime    = "2006-01-02 15:04:05,000" // UtilAll.timeMillisToHumanString2
)

// Counters of the protocol that appear in the lines.
const (
	ownRequests         = "batch-requests" // selects the line of BatchProducer
	ownRequestsFailed   = "batch-requests-failed"
	ownChecks           = "tx-checks" // selects the line of TransactionProducer
	ownUnexpectedChecks = "tx-unexpected-checks"
	ownDuplicatedChecks = "tx-duplicated-checks"
	ownConsumeFailed    = "consume-failed"
)

// RocketMQ is a [Console] that prints the lines of RocketMQ's benchmark (org.apache.rocketmq.example.benchmark) during
// the run: of Producer, or of TransactionProducer or BatchProducer if the driver counts check-backs or requests of
// several messages, and of Consumer; a client prints both. After the line [Complete] the summary of Console follows,
// because the benchmark has none.
//
// The figures are defined as in the benchmark: rates and averages are over the last 9 seconds; Max RT is since the
// start of the run, for transactions and consumers since the last line, microseconds; failures are since the start, for
// transactions and consumers over the 9 seconds. The average of no values is NaN. [Complete] has the rate and times of
// the last 9 seconds of the load, if it had two seconds, and the counts of the run. The warm-up is included.
//
// Send Failed counts the messages that could not be sent ([stats.Counters].Unsent). Response Failed counts all others
// that were not accepted: rejected, released and failed messages (the broker answered with an error), and unconfirmed
// ones (no answer in time or before the connection ended). The lines of TransactionProducer and BatchProducer count
// both as Send Failed.
//
// Each of several steps begins with a line [Step] and its name, and is treated as a run of its own: windows and the
// time to the first line begin anew, and Max RT is that of the step. Failures are not reset, and [Complete] has only
// the counts of all steps.
//
// Differences to the benchmark: RTs are averaged in microseconds, and maxima are rounded down to milliseconds; B2C and
// S2C are "-" if the protocol does not have them; a batch's RT is the mean of its messages'; Send Total is the number
// of all messages sent.
type RocketMQ struct {
	*Console
	now     sample        // the totals so far
	samples []sample      // the last ones
	begin   sample        // first sample of the last window within the load
	end     sample        // last sample of that window; equal to begin if there was only one
	from    time.Duration // start of the step, from the start of the load; 0 with one step
	seconds int64         // whole seconds from there to the last interval

	maxAck                    int64 // since the start of the step, microseconds
	lineAck, lineB2C, lineS2C int64 // since the last line
}

// sample is the state of the run at a moment.
type sample struct {
	at            time.Time
	total         stats.Counters
	ack, b2c, s2c times
	own           map[string]uint64
}

// times are the sum, in microseconds, and number of latencies.
type times struct {
	sum, count int64
	known      bool
}

// add adds the values of l, if it is not nil, and raises maxima to its largest value.
func (t *times) add(l *result.Latency, maxima ...*int64) {
	if l == nil {
		return
	}
	t.known = true
	t.sum += l.Sum
	t.count += l.Count
	for _, m := range maxima {
		*m = max(*m, l.Max)
	}
}

// NewRocketMQ returns a console that prints to out; options.ShowLatency has no effect.
func NewRocketMQ(out io.Writer, options ConsoleOptions) *RocketMQ {
	return &RocketMQ{Console: NewConsole(out, options)}
}

// Interval takes a sample each second, and prints the lines when they are due.
func (r *RocketMQ) Interval(s *stats.Snapshot) error {
	if r.run.Several() && s.Step != r.step {
		if err := r.beginStep(s); err != nil {
			return err
		}
	}
	r.now.at, r.now.total, r.now.own = s.To, s.Total, countersByName(s.Protocol)
	r.now.ack.add(s.Latencies[result.Ack], &r.maxAck, &r.lineAck)
	r.now.ack.add(s.Leftover[result.Ack], &r.maxAck, &r.lineAck)
	r.now.b2c.add(s.Latencies[result.B2C], &r.lineB2C)
	r.now.s2c.add(s.Latencies[result.S2C], &r.lineS2C)

	before := r.seconds
	if r.seconds = int64((s.Elapsed - r.from) / time.Second); r.seconds == before {
		return nil // a phase ended within a second
	}
	r.samples = append(r.samples, r.now)
	if len(r.samples) > benchmarkSamples {
		r.samples = r.samples[1:]
	}
	begin, end := &r.samples[0], &r.samples[len(r.samples)-1]
	if s.Phase != stats.Drain {
		r.begin, r.end = *begin, *end
	}
	period, enough := int64(benchmarkPeriod), benchmarkSamples
	if every := int64(r.options.Every / time.Second); every > 0 {
		period, enough = every, 2
	}
	if r.seconds/period == before/period || len(r.samples) < enough {
		return nil
	}
	var b strings.Builder
	if r.run.Producing {
		r.writeProducer(&b, begin, end)
	}
	if r.run.Consuming {
		r.writeConsumer(&b, begin, end)
	}
	r.lineAck, r.lineB2C, r.lineS2C = 0, 0, 0
	return r.print(b.String())
}

// beginStep resets windows and maxima for the step that begins with s, and keeps the totals.
func (r *RocketMQ) beginStep(s *stats.Snapshot) error {
	r.step, r.from, r.seconds = s.Step, max(0, s.Elapsed-s.To.Sub(s.From)), 0
	r.samples, r.begin, r.end = nil, sample{}, sample{}
	r.maxAck, r.lineAck, r.lineB2C, r.lineS2C = 0, 0, 0, 0
	return r.print("[Step] " + oneLine(s.Step) + "\n")
}

// Summary prints the line [Complete], if the run has producers, and the summary.
func (r *RocketMQ) Summary(s *stats.Summary) error {
	if r.run.Producing {
		line := fmt.Sprintf("[Complete] Send Total: %d Send Failed: %d Response Failed: %d\n",
			s.Total[result.Sent], s.Total[result.Unsent], responseFailed(&s.Total))
		if r.end.at.After(r.begin.at) && !r.run.Several() {
			line = fmt.Sprintf("[Complete] Send Total: %d | %s", s.Total[result.Sent], r.producer(&r.begin, &r.end, &s.Total))
		}
		if err := r.print(line); err != nil {
			return err
		}
	}
	return r.Console.Summary(s)
}

func (r *RocketMQ) writeProducer(b *strings.Builder, begin, end *sample) {
	fmt.Fprintf(b, "Current Time: %s | ", end.at.Format(benchmarkTime))
	_, transactional := end.own[ownChecks]
	_, batches := end.own[ownRequests]
	switch {
	case transactional:
		delta := end.total.Sub(begin.total)
		failed := delta[result.Unsent] + responseFailed(&delta)
		fmt.Fprintf(b, "Send TPS: %5d | Max RT(ms): %5d | AVG RT(ms): %3.1f | Send Failed: %d | Check: %d | "+
			"UnexpectedCheck: %d | DuplicatedCheck: %d\n",
			rate(delta[result.Completed]+failed, end.at.Sub(begin.at)), r.lineAck/1000, mean(begin.ack, end.ack), failed,
			growth(begin, end, ownChecks), growth(begin, end, ownUnexpectedChecks), growth(begin, end, ownDuplicatedChecks))
	case batches:
		length := end.at.Sub(begin.at)
		requests, messages := growth(begin, end, ownRequests), end.total[result.Completed]-begin.total[result.Completed]
		average := mean(begin.ack, end.ack)
		fmt.Fprintf(b, "Send TPS: %d | Send MPS: %d | Max RT(ms): %d | Average RT(ms): %7.3f | Average Message RT(ms): "+
			"%7.3f | Send Failed: %d | Send Message Failed: %d\n",
			rate(requests, length), rate(messages, length), r.maxAck/1000, average,
			average*float64(requests)/float64(messages), end.own[ownRequestsFailed],
			end.total[result.Unsent]+responseFailed(&end.total))
	default:
		b.WriteString(r.producer(begin, end, &end.total))
	}
}

// producer returns the figures that [Complete] and the line of Producer share; total has the failures.
func (r *RocketMQ) producer(begin, end *sample, total *stats.Counters) string {
	return fmt.Sprintf("Send TPS: %d | Max RT(ms): %d | Average RT(ms): %7.3f | Send Failed: %d | Response Failed: %d\n",
		rate(end.total[result.Completed]-begin.total[result.Completed], end.at.Sub(begin.at)), r.maxAck/1000,
		mean(begin.ack, end.ack),
		total[result.Unsent], responseFailed(total))
}

func (r *RocketMQ) writeConsumer(b *strings.Builder, begin, end *sample) {
	average := func(from, to times) string {
		if !to.known {
			return "      -"
		}
		return fmt.Sprintf("%7.3f", mean(from, to))
	}
	highest := func(t times, us int64) string {
		if !t.known {
			return "-"
		}
		return fmt.Sprint(us / 1000)
	}
	fmt.Fprintf(b, "Current Time: %s | Consume TPS: %d | AVG(B2C) RT(ms): %s | AVG(S2C) RT(ms): %s | MAX(B2C) RT(ms): "+
		"%s | MAX(S2C) RT(ms): %s | Consume Fail: %d\n",
		end.at.Format(benchmarkTime), rate(end.total[result.Received]-begin.total[result.Received], end.at.Sub(begin.at)),
		average(begin.b2c, end.b2c), average(begin.s2c, end.s2c),
		highest(end.b2c, r.lineB2C), highest(end.s2c, r.lineS2C), growth(begin, end, ownConsumeFailed))
}

// mean returns the mean of the values between two samples, in milliseconds; NaN if there are none.
func mean(begin, end times) float64 {
	return float64(end.sum-begin.sum) / float64(end.count-begin.count) / 1000
}

func growth(begin, end *sample, name string) uint64 { return end.own[name] - begin.own[name] }

// responseFailed counts the messages that were sent and not accepted.
func responseFailed(c *stats.Counters) uint64 {
	return c[result.Rejected] + c[result.Released] + c[result.Modified] + c[result.Failed] - c[result.Unsent] +
		c[result.Unconfirmed]
}
