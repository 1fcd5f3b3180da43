package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/words"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/result"
)

// writeNumbers writes average and highest rates of the measured part. The elapsed time is that from the start of the
// load to the end of the drain, and the messages of each worker are of the whole run.
func (c *Console) writeNumbers(b *strings.Builder, s *stats.Summary) {
	if s.Tester.MemoryPeak > 0 {
		writeText(b, "tester memory", words.Megabytes(float64(s.Tester.MemoryPeak)), " MB (most resident)")
	}
	measured := ""
	if s.Average.Span > 0 {
		measured = fmt.Sprintf(" s (measured %.2f s)", s.Average.Span.Seconds())
	}
	writeText(b, "elapsed", fmt.Sprintf("%.2f", float64(s.End-s.Start)/1e6), cmp.Or(measured, " s"))
	if s.Average.Span > 0 {
		c.writeAverages(b, s)
	}
	c.writePeaks(b, "maximum ", &s.Maximum)
	for _, line := range hostLines(s.BrokerHosts) {
		b.WriteString("--- " + line + "\n")
	}
	for i := range s.BrokerSide {
		for _, line := range words.Side(&s.BrokerSide[i]) {
			writeList(b, "--- broker "+line[0]+":", line[1:])
		}
	}
}

func (c *Console) writeAverages(b *strings.Builder, s *stats.Summary) {
	a := &s.Average
	line := func(label string, n uint64, note string) {
		writeText(b, label, fmt.Sprint(rate(n, a.Span)), " msg/sec"+note)
	}
	payload := func(bytes uint64) string {
		return fmt.Sprintf(" (%s MB/s of payload)", words.Megabytes(a.PerSecond(bytes)))
	}
	if c.run.Producing {
		line("average sent", a.Sent, offered(&s.Offered))
		line("average completed", a.Completed, payload(a.CompletedBytes))
	}
	if c.run.Consuming {
		line("average received", a.Received, payload(a.ReceivedBytes))
	}
}

// offered returns the rate that was asked for and the missed share of it, in brackets; empty without a rate.
func offered(o *stats.Offered) string {
	switch {
	case !o.Known():
		return ""
	case o.Span <= 0: // of several steps
		return fmt.Sprintf(" (missed %s of the %d messages due)", words.Percent(o.Missed()), o.Due)
	default:
		return fmt.Sprintf(" (offered %s, missed %s)", perSecond(o.Rate), words.Percent(o.Missed()))
	}
}

// writePeaks writes the lowest or highest rates, and the ends of their seconds: from the start of the load, and by the
// wall clock, to find them in the broker's log.
func (c *Console) writePeaks(b *strings.Builder, label string, m *stats.Peaks) {
	for _, l := range []struct {
		of    string
		known bool
		*result.Extreme
	}{{"completed", c.run.Producing, &m.Completed}, {"received", c.run.Consuming, &m.Received}} {
		if l.known && l.Known() {
			writeText(b, label+l.of, fmt.Sprint(uint64(math.Round(l.PerSecond))),
				fmt.Sprintf(" msg/sec (at %.1f s, %s)", float64(l.Elapsed)/1e6,
					time.UnixMicro(l.Time).Format(time.TimeOnly)))
		}
	}
}

// perSecond returns a rate, with decimals below 100.
func perSecond(v float64) string {
	if v < 100 && v != math.Trunc(v) {
		return words.Digits(v)
	}
	return fmt.Sprintf("%.0f", v)
}
