// Package threshold holds demands on the figures of a run, such as "ack.p99 < 50ms" or "received.min >= 90% of target":
// how they are written, which figures there are, and whether a run kept them. It knows nothing of how figures are
// measured.
package threshold

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/result"
)

// Threshold is a demand on a metric. [Parse] makes one.
type Threshold struct {
	Metric Metric
	// Op is <, <=, >, >=, == or !=.
	Op string
	// Value is in the metric's unit, or, with OfTarget, in percent of the run's target rate.
	Value    float64
	OfTarget bool
	// Abort ends the run as soon as the demand cannot be kept any more.
	Abort bool
	asked string // the value as it was written
}

// String returns the demand with single spaces, which [Parse] reads.
func (t *Threshold) String() string {
	return t.Metric.Name + " " + t.Op + " " + t.asked
}

// UnknownError is for an unknown metric.
type UnknownError struct{ Name string }

// Error says so.
func (e *UnknownError) Error() string { return fmt.Sprintf("there is no metric %q", e.Name) }

var (
	demand   = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*(<=|>=|==|!=|<|>)\s*(.*?)\s*$`)
	ofTarget = regexp.MustCompile(`^([0-9.eE+-]+)\s*%\s+of\s+target$`)
)

// maxText bounds the text of a threshold, in bytes.
const maxText = 1 << 10

// Parse reads METRIC OP VALUE. A value is a number with the unit of its metric: 50ms, 1.5s, 300us for times, 10000 or
// 10k, with or without /s, for counts and rates, 80% for shares; for rates also "95% of target".
func Parse(text string) (Threshold, error) {
	parts := demand.FindStringSubmatch(text)
	if parts == nil || len(text) > maxText {
		return Threshold{}, errors.New(`must be METRIC OPERATOR VALUE, such as "ack.p99 < 50ms" or "lost == 0"`)
	}
	if strings.ContainsAny(parts[3], "<>=") {
		return Threshold{}, errors.New("holds several demands: give a threshold for each")
	}
	m, ok := Find(parts[1])
	if !ok {
		return Threshold{}, &UnknownError{parts[1]}
	}
	t := Threshold{Metric: m, Op: parts[2], asked: strings.Join(strings.Fields(parts[3]), " ")}
	var err error
	if share := ofTarget.FindStringSubmatch(parts[3]); share != nil {
		if m.Unit != PerSecond {
			return Threshold{}, fmt.Errorf("%s is no rate and cannot be compared with the target", m.Name)
		}
		t.OfTarget = true
		t.Value, err = number(share[1])
	} else {
		t.Value, err = m.Unit.parse(parts[3])
	}
	if err != nil {
		return Threshold{}, fmt.Errorf("%s: %w", m.Name, err)
	}
	return t, nil
}

// parse reads a value.
func (u Unit) parse(text string) (float64, error) {
	switch u {
	case Time:
		d, err := quantity.Duration(strings.ReplaceAll(text, " ", ""), 0)
		if err != nil {
			return 0, fmt.Errorf("%q %w", text, err)
		}
		return float64(d.Nanoseconds()) / 1e3, nil
	case Percent:
		v, ok := strings.CutSuffix(text, "%")
		n, err := number(strings.TrimSpace(v))
		if !ok || err != nil {
			return 0, fmt.Errorf("%q must be a share such as 80%%", text)
		}
		return n, nil
	case PerSecond:
		n, err := number(strings.TrimSpace(strings.TrimSuffix(text, "/s")))
		if err != nil {
			err = fmt.Errorf("%w, or a share such as 95%% of target", err)
		}
		return n, err
	case Bytes, BytesPerSecond:
		n, err := quantity.Bytes(strings.TrimSuffix(text, "/s"), 1<<60)
		if err != nil {
			err = fmt.Errorf("%q %w", text, err)
		}
		return float64(n), err
	default:
		return number(text)
	}
}

// number reads a number that is not negative.
func number(text string) (float64, error) {
	exact, err := quantity.Number(text)
	if err != nil {
		return 0, fmt.Errorf("%q %w", text, err)
	}
	n, _ := exact.Float64()
	if n > 1e18 {
		return 0, fmt.Errorf("%q must be at most 1e18", text)
	}
	return n, nil
}

// Lacks returns the needs of the metric that a run with these features does not meet; 0 if none.
func (t *Threshold) Lacks(has result.Role) result.Role {
	needs := t.Metric.Needs
	if t.OfTarget {
		needs |= Rate
	}
	return needs &^ has
}

// Judge compares the values of a run with the thresholds. Target returns the planned rate of a group or, without a
// name, of all groups together, in messages per second; 0 without a planned rate, so that thresholds on shares of it
// fail. Values are those of metrics in their units; the run may lack some, such as a latency of no message.
func Judge(list []Threshold, target func(group string) float64, values map[string]float64) []result.Threshold {
	outcomes := make([]result.Threshold, 0, len(list))
	for _, t := range list {
		o := t.Judge(0, 0)
		o.Kept, o.Value = false, "not measured"
		if v, known := values[t.Metric.Name]; known {
			o = t.Judge(v, target(t.Metric.Group))
			o.Measured = &v
		}
		outcomes = append(outcomes, o)
	}
	return outcomes
}

func (t *Threshold) holds(v, target float64) bool {
	limit := t.Value
	if t.OfTarget {
		if target <= 0 {
			return false
		}
		limit = t.Value / 100 * target
	}
	switch t.Op {
	case "<":
		return v < limit
	case "<=":
		return v <= limit
	case ">":
		return v > limit
	case ">=":
		return v >= limit
	case "==":
		return v == limit
	default:
		return v != limit
	}
}

// Fail reports whether a threshold fails.
func Fail(list []result.Threshold) bool {
	return slices.ContainsFunc(list, func(t result.Threshold) bool { return !t.Kept })
}

// Judge judges a demand by one value, and for a share of the target by that.
func (t *Threshold) Judge(v, target float64) result.Threshold {
	o := result.Threshold{
		Threshold: t.String(), Metric: t.Metric.Name, Unit: t.Metric.Unit.String(), Kept: t.holds(v, target),
		Value: t.Metric.Unit.Format(v),
	}
	if t.Metric.Unit == Time {
		o.Unit = "us"
	}
	if t.OfTarget && target > 0 {
		o.Value += fmt.Sprintf(" (%s%%)", trim(100*v/target, 2))
	}
	return o
}

// Abort is a threshold that ends the run, of a step or of the whole run, as the shards of a run send it.
type Abort struct {
	Step      string `json:"step,omitempty"`
	Threshold string `json:"threshold"`
}

// CanAbort reports whether the run can show, before it ends, that the demand will not be kept: upper limits, and lower
// ones of the lowest rate. The numbers of messages lost, left, missing or not sent are known only at the end, as
// are those of the broker.
func (t *Threshold) CanAbort() bool {
	switch t.Metric.Name {
	case "lost", "left", "missing", "rate.missed":
		return false
	}
	if strings.HasPrefix(t.Metric.Name, BrokerPrefix) {
		return false
	}
	switch t.Op {
	case "<", "<=":
		return true
	case "==":
		return t.Metric.Unit == Messages || t.Metric.Unit == Count
	case ">", ">=":
		return strings.HasSuffix(t.Metric.Name, ".min")
	default:
		return false
	}
}

// Broken returns the first threshold of a run that ends it because a value so far does not keep the demand; nil without
// one.
func Broken(list []Threshold, target func(group string) float64, values map[string]float64) *Threshold {
	for i := range list {
		t := &list[i]
		v, known := values[t.Metric.Name]
		broken := !t.holds(v, target(t.Metric.Group))
		if t.Op == "==" { // it may still be reached
			broken = v > t.Value
		}
		if broken && known && t.Abort {
			return t
		}
	}
	return nil
}
