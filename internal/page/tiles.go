package page

import (
	"fmt"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// tile is a number that sums up a run. Its mark is good, bad or warn, or empty without a judgement.
type tile struct{ Label, Value, Mark string }

// unmeasured stands for an unknown value.
const unmeasured = "not measured"

// tiles returns the numbers that sum up the run.
func (r *Run) tiles() []tile {
	res := r.Result
	values := res.Metrics()
	rate, kind := "received", "transfer"
	if res.Total.Producers != nil {
		rate, kind = "completed", "ack"
	}
	if _, known := values["response.p99"]; known {
		kind = "response"
	}
	var list []tile
	for i, name := range []string{rate + ".avg", kind + ".p50", kind + ".p99", kind + ".max", "lost", "duplicated"} {
		t := tile{Label: strings.Replace(strings.TrimSuffix(name, ".avg"), ".", " ", 1)}
		failure := func(f result.Finding) bool { return f.Kind == name && f.Failure }
		switch v, known := values[name]; {
		case !known:
			t.Value = unmeasured
		case i == 0:
			t.Value = number(v) + "/s"
		case i < 4:
			t.Value = words.Duration(int64(v))
		case v == 0:
			t.Value, t.Mark = "0", "good"
		case slices.ContainsFunc(res.Findings, failure):
			t.Value, t.Mark = number(v), "bad"
		default:
			t.Value, t.Mark = number(v), "warn"
		}
		list = append(list, t)
	}
	return append(list, thresholdTile(res.Thresholds), limitTile(res))
}

func thresholdTile(list []result.Threshold) tile {
	broken := slices.DeleteFunc(slices.Clone(list), func(t result.Threshold) bool { return t.Kept })
	t := tile{"thresholds", fmt.Sprintf("%d/%d", len(list)-len(broken), len(list)), "good"}
	switch {
	case len(list) == 0:
		t.Value, t.Mark = "none", ""
	case len(broken) > 0:
		t.Mark = "bad"
	}
	return t
}

func limitTile(r *result.Result) tile {
	t := tile{"limit", unmeasured, ""}
	switch {
	case len(r.Outages) > 0:
		t.Value, t.Mark = "outage", "warn"
	case r.Limit != nil:
		t.Value, t.Mark = words.LimitTitle(r.Limit.Kind), map[bool]string{true: "warn"}[r.LowerBound()]
	}
	return t
}
