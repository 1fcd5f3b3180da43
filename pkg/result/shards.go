package result

import (
	"fmt"
	"slices"
	"strings"
)

// String returns the shard as --shard names it: 2/5.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Number, s.Of) }

// Missing names the missing shards of a run, the first ten of them: 2/5, 4/5. It is empty if all are there.
func Missing(shards ...*Result) string {
	const most = 10
	var names []string
	for s := (Shard{1, shards[0].Shard.Of}); s.Number <= s.Of; s.Number++ {
		if !slices.ContainsFunc(shards, func(r *Result) bool { return r.Shard.Number == s.Number }) {
			names = append(names, s.String())
		}
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}

// warnedError is the error of transfer times, in microseconds, from which on a warning reports it.
const warnedError = 1000

// mergeClocks sets the clock offsets of shards, or reports why they are unknown.
func (r *Result) mergeClocks(shards []*Result, known []*Clock, contradiction error) {
	const off = "; transfer times of messages between hosts are off by that"
	warn := func(text string) { r.Outcome.Warnings = append(r.Outcome.Warnings, text) }
	if contradiction != nil {
		warn("by how much the clocks of the hosts differ is not known: " + contradiction.Error() + off +
			", and the times of the hosts are not corrected")
		return
	}
	worst, differing := 0, 0
	var unknown []string
	for i, c := range known {
		r.Parts[i].Clock = c
		if c == nil {
			unknown = append(unknown, shards[i].name())
		} else if most := c.bound(); most > warnedError {
			differing++
			if most > known[worst].bound() {
				worst = i
			}
		}
	}
	if differing > 0 {
		warn(fmt.Sprintf("%s; of the clocks of the %d hosts that differ, or may, by more than %d ms it differs the most%s; "+
			"other times, rows and the verification are corrected",
			known[worst].text(shards[worst].name(), shards[0].name()), differing, warnedError/1000, off))
	}
	if len(unknown) > 0 {
		warn("by how much their clocks differ from that of " + shards[0].name() +
			" is not known, since no messages went both ways or the clocks drifted: " +
			strings.Join(unknown[:min(10, len(unknown))], ", "))
	}
}

// name returns the name of a part's host, and its shard, for texts.
func (r *Result) name() string { return fmt.Sprintf("%s (shard %d)", r.Host.Name, r.Shard.Number) }
