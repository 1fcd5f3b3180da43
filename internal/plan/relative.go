package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/threshold"
)

// Relative is a rate that is a share of a rate reached by an earlier step.
type Relative struct {
	Percent float64 // above 0, at most 1000
	Step    string  // name of the earlier step
	Metric  string  // a rate among the metrics of thresholds, such as completed.avg or group.senders.completed.avg
}

// maxPercent bounds a relative rate.
const maxPercent = 1000

// ParseRelative reads "80% of allout.completed.avg". It returns nil without an error if text is no relative rate.
func ParseRelative(text string) (*Relative, error) {
	share, of, ok := strings.Cut(text, "%")
	if !ok {
		return nil, nil //nolint:nilnil // it is another kind of rate
	}
	percent, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
	name, isOf := strings.CutPrefix(strings.TrimSpace(of), "of ")
	valid := err == nil && percent > 0 && percent <= maxPercent && isOf
	name = strings.TrimSpace(name)
	var rates []string
	for _, m := range threshold.Metrics() {
		if m.Unit != threshold.PerSecond {
			continue
		}
		rates = append(rates, m.Name)
		step, is := strings.CutSuffix(name, "."+m.Name) // names of steps and groups may have dots
		r := &Relative{Percent: percent, Step: step, Metric: m.Name}
		if i := strings.Index(step, "."+threshold.GroupPrefix); i > 0 { // of one group of the step
			r.Step, r.Metric = step[:i], name[i+1:]
		}
		if _, known := threshold.Find(r.Metric); valid && is && step != "" && known {
			return r, nil
		}
	}
	return nil, fmt.Errorf("the rate %q must be like 80%% of STEP.RATE, up to %d%%, where RATE is one of %s",
		text, maxPercent, strings.Join(rates, ", "))
}

// String returns the rate in the form that [ParseRelative] reads.
func (r *Relative) String() string {
	return strconv.FormatFloat(r.Percent, 'f', -1, 64) + "% of " + r.Step + "." + r.Metric
}

// Of returns the rate that is this share of perSecond, the rate reached in messages per second.
func (r *Relative) Of(perSecond float64) (load.Rate, error) {
	rate, err := load.ParseRate(strconv.FormatFloat(perSecond*r.Percent/100, 'f', 6, 64))
	if err != nil {
		return load.Rate{}, fmt.Errorf("%s is %g messages per second", r, perSecond*r.Percent/100)
	}
	return rate, nil
}

// relative refuses a rate that is a share of a figure which the earlier step does not have.
func (v *validator) relative(r *Relative, earlier []Step) {
	i := slices.IndexFunc(earlier, func(s Step) bool { return s.Name == r.Step })
	measured := false
	if i >= 0 {
		m, _ := threshold.Find(r.Metric) // ParseRelative knows it
		has, found := v.figuresOf(earlier[i:i+1], m.Group)
		measured = found && m.Needs&^(has&^threshold.Verification) == 0
	}
	v.refuse(!measured, "name a step before it, and a rate that it has", "rate %q: no earlier step measures it", r)
}
