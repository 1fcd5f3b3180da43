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
		return Limit{}, fmt.Errorf("%q must be a metric and a change in percent, such as 'ack.p99 +10%%'", text)
	}
	m, err := Find(parts[1])
	if err != nil {
		return Limit{}, err
	}
	change, err := strconv.ParseFloat(parts[3], 64)
	if err != nil || change > 1e6 {
		return Limit{}, fmt.Errorf("%q: the change is too large", text)
	}
	if parts[2] == "-" {
		change = -change
	}
	return Limit{Text: strings.TrimSpace(text), Metric: m, Change: change / 100}, nil
}

// exceeded reports whether a figure changed by more than the limit from the first set's, and not by chance. If
// that is unknown, it returns the reason and a hint.
func (l *Limit) exceeded(first, c *Cell, enough int) (exceeded bool, unknown, hint string) {
	const bound = "run on a machine on which perfmq is not the limit"
	switch c.Verdict {
	case TooFew:
		return false, fmt.Sprintf("%d and %d repeats are too few", len(first.Values), len(c.Values)),
			fmt.Sprintf("repeat the runs: %d of each are enough", enough)
	case Bound:
		return false, Bound, bound
	case Unknown:
		return false, "a side has no such figure", "name a metric of these runs"
	case Same:
		return false, "", ""
	}
	exceeded = c.Change > l.Change
	if l.Change < 0 {
		exceeded = c.Change < l.Change
	}
	if (c.AtLeast || first.AtLeast) && !exceeded && c.Change*l.Change > 0 { // the true change is larger
		return false, Bound, bound
	}
	return exceeded, "", ""
}
