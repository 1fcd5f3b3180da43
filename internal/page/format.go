package page

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/sweep/record"
)

// count returns a number with separators of thousands: 1,234,567.
func count(n uint64) string { return record.PerSecond(float64(n)) }

// number returns a rate or another figure; small ones with decimals.
func number(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case math.Abs(v) >= 99.95 || v == math.Trunc(v):
		whole := count(uint64(math.Round(math.Abs(v))))
		if v < 0 {
			return "-" + whole
		}
		return whole
	case math.Abs(v) >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// ms returns microseconds as milliseconds.
func ms(us float64) string {
	if v := us / 1000; v >= 0.9995 {
		return number(v)
	}
	return fmt.Sprintf("%.3f", us/1000)
}

// seconds returns microseconds as seconds.
func seconds(us int64) string { return fmt.Sprintf("%.2f", float64(us)/1e6) }

// moment returns microseconds since the epoch as a time in UTC.
func moment(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05 UTC") }

// megabytes returns bytes as MB of a million bytes.
func megabytes(bytes uint64) string { return number(float64(bytes) / 1e6) }

// cores returns the number of cores used on average over a span; "-" if the span is not positive.
func cores(used, span int64) string {
	if span <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(used)/float64(span))
}

// sentence capitalises the first letter of a text.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
