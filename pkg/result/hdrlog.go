package result

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// HDRLog encodes rows as a log of histograms, in format 1.3 of HdrHistogram's HistogramLogWriter: for each row a line
// per latency, tagged delay-send, send, response or transfer, with the prefix "warmup-" for messages that were due in
// the warm-up. Values are microseconds. Only the column Interval_Max is in seconds, as the format asks. The zero value
// is ready for Head.
type HDRLog struct {
	text  bytes.Buffer
	log   *hdrhistogram.HistogramLogWriter
	start time.Time
}

// Head returns the head of the log of a load that began at start. The times of its lines are seconds from the whole
// second before.
func (h *HDRLog) Head(start time.Time) ([]byte, error) {
	h.text.Reset()
	h.log, h.start = hdrhistogram.NewHistogramLogWriter(&h.text), start
	base := start.Unix() * 1000 // the log has whole seconds only
	h.log.SetBaseTime(base)
	return h.encoded(errors.Join(
		h.log.OutputComment("[perfmq: latencies in microseconds]"), h.log.OutputLogFormatVersion(),
		h.log.OutputBaseTime(base), h.log.OutputStartTime(base), h.log.OutputLegend(),
	))
}

// Row returns the lines of a row. Its latencies must have their histograms.
func (h *HDRLog) Row(row *Row) ([]byte, error) {
	h.text.Reset()
	tag := ""
	if row.Phase == Warmup {
		tag = warmupTag
	}
	err := h.tagged(tag, &row.Latencies, row)
	if row.Leftover != nil {
		err = errors.Join(err, h.tagged(warmupTag, row.Leftover, row))
	}
	return h.encoded(err)
}

func (h *HDRLog) encoded(err error) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("encode latencies: %w", err)
	}
	return h.text.Bytes(), nil
}

// tagged adds the lines of a row's latencies.
func (h *HDRLog) tagged(prefix string, l *Latencies, row *Row) error {
	millis := func(us int64) int64 { return h.start.Add(time.Duration(max(0, us)) * time.Microsecond).UnixMilli() }
	for _, k := range kinds {
		latency := l[k.Kind]
		if latency == nil {
			continue
		}
		if latency.Histogram == nil {
			return fmt.Errorf("the %s of a row has no histogram", k.Name)
		}
		line := latency.Histogram.HDR()
		line.SetTag(prefix + k.Tag)
		line.SetStartTimeMs(millis(row.Elapsed - row.Length))
		line.SetEndTimeMs(millis(row.Elapsed))
		if err := h.log.OutputIntervalHistogram(line); err != nil {
			return err
		}
	}
	return nil
}
