package report

import (
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// HDR writes a log of histograms in format 1.3 of HdrHistogram's HistogramLogWriter: for each interval a line per
// latency that the run measures, tagged delay-send, send, response or transfer, with the prefix "warmup-" for messages
// that were due in the warm-up. Lines for b2c and s2c begin with the first message whose protocol gives the times of
// birth and storage. An interval without a value has its line too, so that time series have no gaps.
//
// Values are microseconds. Only the column Interval_Max is in seconds, as the format asks. Times are seconds from the
// log's base time, the whole second in which the load began, and follow the monotonic clock, so that setting the wall
// clock during a run does not shift them.
//
// `artemis perf --hdr` writes the same without response, b2c and s2c, and with spaces in its tags, which log readers
// reject.
type HDR struct {
	file   *recordFile
	buffer strings.Builder
	log    *hdrhistogram.HistogramLogWriter
	start  time.Time
}

const hdrComment = "[perfmq: latencies in microseconds]"

// warmupPrefix begins the tags of messages that were due in the warm-up.
const warmupPrefix = "warmup-"

// NewHDR creates the file, or empties an existing one.
func NewHDR(path string) (*HDR, error) {
	file, err := createFile("HDR", path, "", forAll)
	if err != nil {
		return nil, err
	}
	h := &HDR{file: file}
	h.log = hdrhistogram.NewHistogramLogWriter(&h.buffer)
	return h, nil
}

// Start writes the head of the log.
func (h *HDR) Start(run stats.Run) error {
	h.start = run.Start
	base := run.Start.Unix() * 1000 // the log writer keeps whole seconds only
	h.log.SetBaseTime(base)
	return h.write(h.file.begin, func() error {
		for _, line := range []func() error{
			func() error { return h.log.OutputComment(hdrComment) },
			h.log.OutputLogFormatVersion,
			func() error { return h.log.OutputBaseTime(base) },
			func() error { return h.log.OutputStartTime(base) },
			h.log.OutputLegend,
		} {
			if err := line(); err != nil {
				return err
			}
		}
		return nil
	})
}

// Interval writes a line for each latency that is measured.
func (h *HDR) Interval(s *stats.Snapshot) error {
	prefix := ""
	if s.Phase == stats.Warmup {
		prefix = warmupPrefix
	}
	end := h.start.Add(s.Elapsed)
	start := end.Add(-s.To.Sub(s.From))
	if start.Before(h.start) {
		start = h.start
	}
	return h.write(h.file.append, func() error {
		if err := h.lines(prefix, s.Latencies, start, end); err != nil {
			return err
		}
		return h.lines(warmupPrefix, s.Leftover, start, end)
	})
}

// lines writes a line for each latency that is not nil.
func (h *HDR) lines(prefix string, latencies result.Latencies, start, end time.Time) error {
	for _, k := range result.Kinds() {
		if latencies[k.Kind] == nil {
			continue
		}
		histogram := latencies[k.Kind].Histogram.HDR()
		histogram.SetTag(prefix + k.Tag)
		histogram.SetStartTimeMs(start.UnixMilli())
		histogram.SetEndTimeMs(end.UnixMilli())
		if err := h.log.OutputIntervalHistogram(histogram); err != nil {
			return err
		}
	}
	return nil
}

// Summary writes nothing: the sum of the lines is the summary.
func (h *HDR) Summary(*stats.Summary) error { return nil }

// Close closes the file.
func (h *HDR) Close() error { return h.file.close() }

// write passes the text that fill writes into the buffer on as one record, so that an interval is in the file entirely
// or not at all.
func (h *HDR) write(to func(string) error, fill func() error) error {
	h.buffer.Reset()
	if err := fill(); err != nil {
		return driver.Errorf(driver.ClassOther, "encode latencies for the "+h.file.what, "", "%w", err)
	}
	return to(h.buffer.String())
}
