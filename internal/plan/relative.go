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
	name = strings.TrimSpace(name)
	last := strings.LastIndex(name, ".") // names of steps may have dots, those of rates have one
	i := strings.LastIndex(name[:max(last, 0)], ".")
	if of := strings.Index(name[:max(i, 0)], "."+threshold.GroupPrefix); of > 0 { // of one group of the step
		i = of
	}
	if err != nil || !(percent > 0 && percent <= maxPercent) || !isOf || i <= 0 {
		return nil, Wrong("write it like 80% of allout.completed.avg",
			"the rate %q is no share, up to %d%%, of an earlier rate", text, maxPercent)
	}
	r := &Relative{Percent: percent, Step: name[:i], Metric: name[i+1:]}
	var rates []string
	for _, m := range threshold.Metrics() {
		if m.Unit == threshold.PerSecond {
			rates = append(rates, m.Name)
		}
	}
	if m, ok := threshold.Find(r.Metric); !ok || m.Unit != threshold.PerSecond {
		return nil, Wrong("the rates are "+strings.Join(rates, ", "), "%q is no rate", r.Metric)
	}
	return r, nil
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
	m, _ := threshold.Find(r.Metric) // ParseRelative knows it
	measured := i >= 0
	if measured {
		has := v.has(&earlier[i]) &^ threshold.Verification
		if m.Group != "" {
			has, measured = v.figuresOfGroup(m.Group, earlier[i:i+1])
		}
		measured = measured && m.Needs&^has == 0
	}
	v.refuse(!measured, "name a step before it, and a rate that it has", "rate %q: no earlier step measures it", r)
}
