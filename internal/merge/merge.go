// Package merge joins the results of the shards of a run: counts, histograms and rows by pkg/result, the fate of each
// message from the numbers that every process has written, and the rates of the time in which all of them measured.
//
//	folders -> result.Merge -> clocks -> verify.Judge of all sides -> rates -> thresholds -> one result
package merge

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/result"
)

// ErrMissing is in the error of [Read] for shards that are not all there, ErrAlone for the result of one process.
var (
	ErrMissing = errors.New("shards are missing")
	ErrAlone   = errors.New("there is nothing to join")
)

// Options are the allowances of a merge.
type Options struct {
	// Partial allows shards to be missing, and results of runs that did not come to their end; Met leaves out results
	// that cannot be read, as problems.
	Partial, Met bool
	// Secrets are not printed; nil for none.
	Secrets *safetext.Secrets
	// Thresholds are judged beside the plan's, by the figures of all parts together.
	Thresholds []threshold.Threshold
	// Problems were found beside the results, Aborted: a threshold ended the run, Interrupted: the user did.
	Problems             []string
	Aborted, Interrupted bool
}

// shards are the results of the shards of a run, in their order, and the merged result.
type shards struct {
	merged *result.Result
	parts  []*result.Result
	starts []int64 // of the loads of the parts, by the clock of the first one
	dirs   map[*result.Result]string
	plan   planned
}

// Read merges the results in the folders, with their rows and histograms, into one. The thresholds of its plan are
// judged by its figures.
//
// The error has [ErrMissing] if shards are not there, [ErrAlone] for one run without shards, [result.ErrUnlike] if the
// results do not belong together, and an [*result.Error] or [*inputfile.Error] for a file that cannot be used.
func Read(dirs []string, o Options) (*result.Result, error) {
	s := shards{dirs: map[*result.Result]string{}}
	for _, dir := range dirs {
		r, err := result.ReadHistograms(dir)
		if err != nil && o.Met {
			o.Problems = append(o.Problems, "left out: "+err.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(dirs) == 1 && r.Shard == nil {
			return nil, fmt.Errorf("%w: %s is the whole result of a run without shards", ErrAlone, dir)
		}
		if !r.Complete && !o.Partial {
			return nil, fmt.Errorf("%w: %s: the run goes on, or was killed", ErrMissing, dir)
		}
		s.parts, s.dirs[r] = append(s.parts, r), dir
	}
	if len(s.parts) == 0 && len(o.Problems) > 0 {
		return nil, errors.New(strings.Join(o.Problems, "; "))
	}
	m, err := result.Merge(s.parts...)
	if err != nil {
		return nil, err
	}
	if missing := result.Missing(s.parts...); missing != "" && !o.Partial {
		return nil, fmt.Errorf("%w: %s", ErrMissing, missing)
	}
	if len(m.Plan) > 0 {
		if err := json.Unmarshal(m.Plan, &s.plan); err != nil {
			return nil, fmt.Errorf("read the plan: %w", err)
		}
	}
	s.merged = m
	slices.SortFunc(s.parts, result.ByShard)
	for i := range m.Parts {
		s.starts = append(s.starts, m.Parts[i].Start-s.ahead(i))
		m.Parts[i].Dir = s.dirs[s.parts[i]]
	}
	if err := s.joinVerification(o); err != nil {
		return nil, err
	}
	fail(m, o.Problems...)
	m.Outcome.Aborted = m.Outcome.Aborted || o.Aborted
	m.Outcome.Interrupted = m.Outcome.Interrupted || o.Interrupted
	s.setFigures()
	return m, s.judgeAll(o.Thresholds)
}

// ahead returns the lead of the clock of a part over the clock of the first one, in microseconds; 0 if unknown.
func (s *shards) ahead(i int) int64 {
	if c := s.merged.Parts[i].Clock; c != nil {
		return int64(c.Start.Ahead)
	}
	return 0
}

// joinVerification judges the fate of each message, from the numbers of all parts.
func (s *shards) joinVerification(o Options) error {
	m, plan := s.merged, &s.plan
	apart := func(text string) bool { return strings.Contains(text, verify.AbsentNote) }
	m.Outcome.Warnings = slices.DeleteFunc(slices.Clone(m.Outcome.Warnings), apart)
	if !plan.Verify {
		m.Outcome.Warnings = append(m.Outcome.Warnings, unverified(m)...)
		return nil
	}
	var sides []*verify.Side
	for i, part := range s.parts {
		dir := s.dirs[part]
		side, err := verify.ReadFile(filepath.Join(dir, result.VerifyFile))
		if errors.Is(err, fs.ErrNotExist) {
			m.Outcome.Warnings = append(m.Outcome.Warnings, "what became of each message is not known: "+dir+" has no "+
				result.VerifyFile)
			return nil
		}
		if err != nil {
			return err
		}
		side.Shift(-s.ahead(i))
		sides = append(sides, side)
	}
	v := safetext.Clean(cmp.Or(o.Secrets, &safetext.Secrets{}), verify.Judge(sides...))
	allow := verify.Allow{
		Lost: slices.Contains(plan.Allow, "lost"), Duplicates: slices.Contains(plan.Allow, "duplicates"),
		Damaged: slices.Contains(plan.Allow, "damaged"), Disorder: slices.Contains(plan.Allow, "disorder"),
	}
	found := v.Findings(allow, 0)
	problems := result.Texts(found, result.Problem)
	if v.Known {
		m.Expected, m.Missing = &v.Total.Expected, new(v.Total.Lost+v.Total.Left)
	}
	m.Verification = v.Verified()
	m.Findings = append(withoutVerified(m.Findings), found...)
	m.Outcome.Warnings = append(m.Outcome.Warnings, v.Notes...)
	fail(m, problems...)
	return nil
}

// fail adds problems.
func fail(m *result.Result, problems ...string) {
	if o := &m.Outcome; len(problems) > 0 {
		o.Problems, o.Success = append(o.Problems, problems...), false
		o.Status = result.Graver(o.Status, result.StatusFailed)
	}
}

// unverified warns of shards that ran without verification: none of them knows which messages were to arrive, and
// counts of several processes do not tell a lost message from one that came twice.
func unverified(m *result.Result) []string {
	p, c := m.Total.Producers, m.Total.Consumers
	if m.Expected != nil || p == nil || c == nil {
		return nil
	}
	return []string{fmt.Sprintf("lost messages are not known, as the shards ran without --verify: the broker "+
		"accepted %d, %d were received",
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
		if err := w.Row(m.Rows[i]); err != nil {
			return err
		}
	}
	for _, p := range m.Parts {
		ahead := int64(0)
		if p.Clock != nil {
			ahead = int64(p.Clock.Start.Ahead)
		}
		if err := w.MergeTrace(p.Dir, p.Shard.Number, ahead); err != nil {
			return err
		}
	}
	return w.Finish(*m)
}

// writeConnections writes the connections that were opened, and how others ended; not those closed by plan.
func writeConnections(c *result.Counts, line func(label, format string, args ...any)) {
	for _, o := range words.Openings(c) {
		if o.Name != "closed" {
			line("total "+o.Name, "%d", o.N)
		}
	}
}

// maxOutages is the maximum number of outages in a summary.
const maxOutages = 10

// Text writes a summary of a merged result: a line for each part, the totals, latencies, thresholds, warnings
// and problems. Texts of the results are written as clean returns them.
func Text(w io.Writer, m *result.Result, clean func(string) string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "--- MERGED: %d results of run %s\n", len(m.Parts), clean(m.RunID))
	writeParts(&b, m, clean)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "--- %-20s %s\n", label+":", fmt.Sprintf(format, args...))
	}
	metrics := m.Metrics()
	line("result", "%s", words.VerdictOf(m))
	if p := m.Total.Producers; p != nil {
		line("total sent", "%d", p.Sent)
		line("total completed", "%d", p.Completed)
		if p.Sent > p.Completed {
			line("not completed", "%d", p.Sent-p.Completed)
		}
		if p.Replies+p.TimedOut > 0 {
			line("total replies", "%d", p.Replies)
			line("without a reply", "%d", p.TimedOut)
		}
	}
	if c := m.Total.Consumers; c != nil {
		line("total received", "%d", c.Received)
	}
	if m.Total.Connections != nil {
		writeConnections(&m.Total, line)
	}
	for _, name := range []string{"completed", "received"} {
		if v, known := metrics[name+".avg"]; known {
			line("average "+name, "%.0f msg/sec", v)
		}
	}
	for kind, name := range result.KindNames() {
		shown := !result.Kinds()[kind].Stage || m.Total.Connections != nil
		if l := m.Latencies[kind]; l != nil && l.Percentiles != nil && shown {
			line(name+" us", "mean %.2f, 50%% %d, 90%% %d, 99%% %d, 99.9%% %d, max %d", l.Mean(), l.P50,
				l.P90, l.P99, l.P999, l.Max)
		}
	}
	if v := m.Verification; v != nil {
		t := &v.Total
		if v.Known {
			line("verified", "%d expected, %d once, %d lost, %d left, %d duplicated, %d damaged", t.Expected, t.Once,
				t.Lost, t.Left, t.Duplicates, t.Damaged)
		} else {
			line("verified", "%d received, %d duplicated, %d damaged; what was to arrive is not known", t.Received,
				t.Duplicates, t.Damaged)
		}
	}
	for _, o := range m.Outages[:min(len(m.Outages), maxOutages)] {
		line("outage", "%s, %s", clean(o.Host), clean(words.Outage(&o)))
	}
	if more := len(m.Outages) - maxOutages; more > 0 {
		line("outages", "%d more in the result", more)
	}
	for _, t := range m.Thresholds {
		line("threshold", "%s", clean(t.String()))
	}
	for _, text := range m.Outcome.Warnings {
		line("warning", "%s", clean(text))
	}
	for _, text := range m.Outcome.Problems {
		line("problem", "%s", clean(text))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeParts writes a table of the parts and their clocks.
func writeParts(b *strings.Builder, m *result.Result, clean func(string) string) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "shard\thost\tclock\tlimit\t")
	for i, p := range m.Parts {
		clock := "not known"
		switch {
		case p.Clock != nil && i == 0:
			clock = "the reference"
		case p.Clock != nil:
			clock = p.Clock.Start.String()
		}
		limit := "not known"
		if p.Limit != nil {
			limit = words.LimitTitle(p.Limit.Kind)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", p.Shard, clean(p.Host.Name), clock, limit)
	}
	_ = table.Flush() // a strings.Builder takes all
}
