// Package merge joins the results of processes that ran side by side with one plan, such as the shards of a run on
// several load hosts: counts, histograms and rows by pkg/result, and the fate of each message from the numbers that
// every process has written.
//
//	folders -> result.Merge -> clocks -> verify.Judge of all sides -> one result
package merge

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/report"
	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// ErrMissing is in the error of [Read] for shards that are not all there.
var ErrMissing = errors.New("shards are missing")

// Options are the allowances of a merge.
type Options struct {
	// Partial allows shards to be missing, and results of runs that did not come to their end.
	Partial bool
	// Secrets are not printed; nil for none.
	Secrets *safetext.Secrets
	// Thresholds are judged beside those of the plan, by the figures of all parts together.
	Thresholds []threshold.Threshold
}

// Merged is a merged result, and how it kept the thresholds.
type Merged struct {
	*result.Result
	Judged []threshold.Outcome
}

// Read returns one result of those in the folders, with their rows and histograms. The thresholds of its plan are
// judged by its figures.
//
// The error has [ErrMissing] if shards are not there, [result.ErrUnlike] if the results do not belong together, and an
// [*result.Error] or [*inputfile.Error] for a file that cannot be used.
func Read(dirs []string, o Options) (*Merged, error) {
	var parts []*result.Result
	from := map[string]string{} // folders by the name of their part
	for _, dir := range dirs {
		r, err := result.Read(dir, result.RowHistograms())
		if err != nil {
			return nil, err
		}
		if err := page.Check(r); err != nil {
			return nil, fmt.Errorf("read %s: %w", dir, err)
		}
		name := r.RunID
		if r.Shard != nil {
			name = fmt.Sprintf("%s, shard %d", r.RunID, r.Shard.Number)
		}
		if from[name] != "" {
			return nil, fmt.Errorf("%w: %s and %s are both of run %s", result.ErrUnlike, from[name], dir, name)
		}
		if !r.Complete && !o.Partial {
			return nil, fmt.Errorf("%w: %s: the run goes on, or was killed", ErrMissing, dir)
		}
		from[name] = dir
		parts = append(parts, r)
	}
	m, err := result.Merge(parts...)
	if err != nil {
		return nil, err
	}
	if missing := result.Missing(parts...); len(missing) > 0 && !o.Partial {
		var names []string
		for _, number := range missing {
			names = append(names, fmt.Sprintf("%d/%d", number, parts[0].Shard.Of))
		}
		return nil, fmt.Errorf("%w: %s", ErrMissing, strings.Join(names, ", "))
	}
	plan, err := planOf(m)
	if err != nil {
		return nil, err
	}
	if err := joinVerification(m, &plan, parts, dirs, o); err != nil {
		return nil, err
	}
	merged := &Merged{Result: m}
	return merged, merged.judge(parts, &plan, o.Thresholds)
}

// joinVerification judges the fate of each message, from the numbers of all parts. Results that are themselves merged
// have no numbers.
func joinVerification(m *result.Result, plan *planned, parts []*result.Result, dirs []string, o Options) error {
	if m.Verification != nil {
		return nil
	}
	if !plan.Verify {
		m.Outcome.Warnings = append(m.Outcome.Warnings, unverified(m)...)
		return nil
	}
	var sides []*verify.Side
	for i, dir := range dirs {
		side, err := verify.ReadFile(filepath.Join(dir, result.VerifyFile))
		if errors.Is(err, fs.ErrNotExist) {
			m.Outcome.Warnings = append(m.Outcome.Warnings, "what became of each message is not known: "+dir+" has no "+
				result.VerifyFile)
			return nil
		}
		if err != nil {
			return err
		}
		side.Shift(-ahead(m, parts[i]))
		sides = append(sides, side)
	}
	v := safetext.Clean(cmp.Or(o.Secrets, &safetext.Secrets{}), verify.Judge(sides...))
	allow := verify.Allow{
		Lost: slices.Contains(plan.Allow, "lost"), Duplicates: slices.Contains(plan.Allow, "duplicates"),
		Damaged: slices.Contains(plan.Allow, "damaged"), Disorder: slices.Contains(plan.Allow, "disorder"),
	}
	found := v.Findings(allow, 0)
	if n := v.Total.Foreign; n > 0 && plan.FailOnForeign {
		found = append(found, words.As(words.Find("foreign", "", n, n), result.Problem))
	}
	problems := result.Texts(found, result.Problem)
	if v.Known {
		missing := v.Total.Lost + v.Total.Left
		m.Expected, m.Missing = &v.Total.Expected, &missing
	}
	m.Verification = report.VerificationOf(v)
	m.Findings = append(withoutVerified(m.Findings), found...)
	m.Outcome.Warnings = append(withoutNotes(m.Outcome.Warnings), v.Notes...)
	m.Outcome.Problems = append(m.Outcome.Problems, problems...)
	if len(problems) > 0 {
		m.Outcome.Success = false
		m.Outcome.Status = result.Graver(m.Outcome.Status, result.StatusFailed)
	}
	return nil
}

// unverified warns of shards that ran without verification: none of them knows which messages were to arrive, and
// counts of several processes do not tell a lost message from one that came twice.
func unverified(m *result.Result) []string {
	p, c := m.Total.Producers, m.Total.Consumers
	if m.Expected != nil || p == nil || c == nil {
		return nil
	}
	return []string{fmt.Sprintf("whether messages were lost is not known, since the shards ran without --verify: the "+
		"broker accepted %d, and %d were received",
		p.Completed, c.Received)}
}

// withoutVerified drops the findings of single parts about messages of all parts.
func withoutVerified(list []result.Finding) []result.Finding {
	kinds := []string{
		"duplicated", "out-of-order", "damaged", "refused-arrived", "withheld-arrived",
		"unconfirmed-arrived", "lost", "left", "unwatched", "verification",
	}
	return slices.DeleteFunc(slices.Clone(list), func(f result.Finding) bool { return slices.Contains(kinds, f.Kind) })
}

// withoutNotes drops the warnings of single shards that other shards are not there.
func withoutNotes(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(
		text string,
	) bool {
		return strings.Contains(text, verify.AbsentNote)
	})
}

// ahead returns by how much the clock of a part was ahead of that of the first one, in microseconds; 0 if that is not
// known.
func ahead(m, part *result.Result) int64 {
	for _, p := range m.Parts {
		if p.RunID == part.RunID && p.Clock != nil && p.Shard != nil && part.Shard != nil && *p.Shard == *part.Shard {
			return int64(p.Clock.Start.Ahead)
		}
	}
	return 0
}

// Write writes a merged result into a new folder.
func Write(dir string, m *result.Result) (err error) {
	w, err := result.NewWriter(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.Start(m.Head); err != nil {
		return err
	}
	for i := range m.Rows {
		row := m.Rows[i]
		row.Latencies = row.Latencies.Kept()
		if row.Leftover != nil {
			kept := row.Leftover.Kept()
			row.Leftover = &kept
		}
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return w.Finish(*m)
}
