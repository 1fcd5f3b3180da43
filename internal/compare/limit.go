package compare

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/nearest"
)

// Limit is a change that a set must not show: ack.p99 +10%.
type Limit struct {
	Text   string
	Metric Metric
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
	m, err := Named(parts[1])
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

// Named is Find that fails with a suggestion.
func Named(name string) (Metric, error) {
	if m, ok := Find(name); ok {
		return m, nil
	}
	if like := nearest.Nearest(name, Names()); like != "" {
		return Metric{}, fmt.Errorf("unknown metric %q; did you mean %s?", name, like)
	}
	return Metric{}, fmt.Errorf("unknown metric %q: known are %s", name, strings.Join(Names(), ", "))
}

// ErrCannotTell says that a limit cannot be judged.
var ErrCannotTell = errors.New("it cannot be told")

// Exceeded tells whether set i of a row changed by more than the limit, and not by chance. It fails with
// [ErrCannotTell].
func (l *Limit) Exceeded(row *Row, i int) (bool, error) {
	c := &row.Cells[i]
	switch c.Verdict {
	case TooFew:
		return false, fmt.Errorf("%s: %w: %d and %d repeats are too few", l.Text, ErrCannotTell, len(row.Cells[0].Values),
			len(c.Values))
	case Bound:
		return false, l.bound()
	case Unknown:
		return false, fmt.Errorf("%s: %w: a side has no such figure", l.Text, ErrCannotTell)
	case Same:
		return false, nil
	}
	exceeded := c.Change > l.Change
	if l.Change < 0 {
		exceeded = c.Change < l.Change
	}
	if bounds := c.AtLeast || row.Cells[0].AtLeast; bounds && !exceeded && c.Change*l.Change > 0 {
		return false, l.bound() // the true change is larger
	}
	return exceeded, nil
}

// ErrBound is in the error for a change that cannot be judged, since perfmq was the limit of a run.
var ErrBound = errors.New(string(Bound))

func (l *Limit) bound() error { return fmt.Errorf("%s: %w: %w", l.Text, ErrCannotTell, ErrBound) }
