package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/threshold"
)

// Limit is a change that a set must not show: ack.p99 +10%.
type Limit struct {
	Text   string
	Metric threshold.Metric
	// Change is the fraction: 0.1 fails a figure that is more than 10% above the first set's, -0.05 one that is more than
	// 5% below.
	Change float64
}

var limitText = regexp.MustCompile(`^\s*(\S+)\s+([+-])\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*$`)

// ParseLimit reads a limit such as "ack.p99 +10%".
func ParseLimit(text string) (Limit, error) {
	parts := limitText.FindStringSubmatch(text)
	if parts == nil {
		return Limit{}, fmt.Errorf("%q must be a metric and a change, such as 'ack.p99 +10%%'", text)
	}
	m, err := Find(parts[1])
	if err != nil {
		return Limit{}, err
	}
	change, _ := strconv.ParseFloat(parts[3], 64) // infinite if it is too large
	if parts[2] == "-" {
		change = -change
	}
	return Limit{Text: strings.TrimSpace(text), Metric: m, Change: change / 100}, nil
}

// exceeded reports whether a value changed by more than the limit from the first set's, and not by chance; or why that
// is unknown.
func (l *Limit) exceeded(first, c *Cell) (exceeded bool, unknown string) {
	exceeded = l.Change < 0 && c.Change < l.Change || l.Change >= 0 && c.Change > l.Change
	switch lower := c.AtLeast || first.AtLeast; {
	case c.Verdict == TooFew:
		return false, fmt.Sprintf("%d and %d repeats are too few", len(first.Values), len(c.Values))
	case c.Verdict == Unknown:
		return false, "a side has no value"
	case c.Verdict == Same:
		return false, ""
	case c.Verdict == Bound, lower && !exceeded && c.Change*l.Change > 0: // the true change is larger
		return false, Bound
	}
	return exceeded, ""
}
