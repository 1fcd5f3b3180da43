package result

import (
	"fmt"
	"slices"
	"strings"
)

// Missing returns the numbers of the shards that are not among the results; nil if the results are not shards.
func Missing(results ...*Result) (missing []int) {
	if len(results) == 0 || results[0].Shard == nil {
		return nil
	}
	for number := 1; number <= results[0].Shard.Of; number++ {
		if !slices.ContainsFunc(results, func(r *Result) bool { return r.Shard != nil && r.Shard.Number == number }) {
			missing = append(missing, number)
		}
	}
	return missing
}

// shardsText names shards as --shard does, the first ten of them: 2/5, 4/5.
func shardsText(numbers []int, of int) string {
	const most = 10
	var texts []string
	for _, number := range numbers[:min(most, len(numbers))] {
		texts = append(texts, fmt.Sprintf("%d/%d", number, of))
	}
	text := strings.Join(texts, ", ")
	if len(numbers) > most {
		text += fmt.Sprintf(" and %d more", len(numbers)-most)
	}
	return text
}

// warnedError is the error of transfer times, in microseconds, from which on a warning reports it.
const warnedError = 1000

// mergeClocks sets the clock offsets of shards, or reports why they are unknown.
func (r *Result) mergeClocks(results []*Result, known []*Clock, contradiction error) {
	var crossed uint64
	worst, differing := 0, 0
	var unknown []string
	for i, c := range known {
		r.Parts[i].Clock = c
		for k := range results[i].Rows {
			for _, a := range results[i].Rows[k].Arrivals {
				crossed += a.Messages
			}
		}
		if c == nil {
			unknown = append(unknown, results[i].name())
			continue
		}
		if most := max(c.Start.bound(), c.End.bound()); most > warnedError {
			differing++
			if most > max(known[worst].Start.bound(), known[worst].End.bound()) {
				worst = i
			}
		}
	}
	if contradiction != nil {
		r.Outcome.Warnings = append(r.Outcome.Warnings, "by how much the clocks of the hosts differ is not known: "+
			contradiction.Error()+
			"; transfer times of messages between hosts are off by that, and the times of the hosts are not corrected")
		return
	}
	if differing > 0 {
		r.Outcome.Warnings = append(r.Outcome.Warnings,
			fmt.Sprintf("%s; of the clocks of the %d hosts that differ, or may, by more than %d ms it differs the most: "+
				"transfer times of messages between hosts are off by that; other times, rows and the verification are corrected",
				known[worst].text(results[worst].name(), results[0].name()), differing, warnedError/1000))
	}
	if len(unknown) > 0 {
		text := "by how much their clocks differ from that of " + results[0].name() +
			" is not known, since no messages went both ways or the clocks drifted: " +
			strings.Join(unknown[:min(10, len(unknown))], ", ")
		if crossed > 0 {
			text += "; transfer times of messages between hosts are off by that"
		}
		r.Outcome.Warnings = append(r.Outcome.Warnings, text)
	}
}

// name returns the name of a part's host for texts.
func (r *Result) name() string {
	if r.Shard == nil {
		return r.Host.Name
	}
	return fmt.Sprintf("%s (shard %d)", r.Host.Name, r.Shard.Number)
}

// checkShard refuses a result that is not a shard of the same run, if the other is a shard.
func (r *Result) checkShard(other *Result) error {
	switch a, b := r.Shard, other.Shard; {
	case a == nil && b == nil:
		return nil
	case a == nil || b == nil:
		return fmt.Errorf("%w: run %s is divided into shards, run %s is not", ErrUnlike, r.RunID, other.RunID)
	case r.RunID != other.RunID:
		return fmt.Errorf("%w: shard %d is of run %s, shard %d of run %s", ErrUnlike, b.Number, other.RunID, a.Number,
			r.RunID)
	case a.Of != b.Of || a.Number < 1 || a.Number > a.Of:
		return fmt.Errorf("%w: shard %d of %d and shard %d of %d", ErrUnlike, b.Number, b.Of, a.Number, a.Of)
	}
	return nil
}
