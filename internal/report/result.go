package report

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/page"
	"github.com/perfmq/perfmq/internal/stats"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// loadStep is the name of the only step of a plain command line.
const loadStep = "load"

// ResultOptions are the settings of a [Result] and a [JSON].
type ResultOptions struct {
	// Head is the head of the result. Start adds scenario, labels, ID, times and clients of the run.
	Head result.Head
	// ClientVersion returns the version of a client library; "" if it is unknown. It may be nil.
	ClientVersion func(client string) string
	// OnError is called at once with the error after which no more rows are written.
	OnError func(error)
}

// recorder makes rows and the result of a run for a [Result] and a [JSON]. After a row that cannot be written, no more
// rows follow: OnError gets the error, the result has a finding about it, and Close returns the error.
type recorder struct {
	ResultOptions
	run  stats.Run
	err  error // why the rows end
	rows int
}

// Result feeds a writer of package result, or a live page: a row per interval, and the result at the end.
type Result struct {
	recorder
	where  string      // "in DIR" or "on a page", for errors
	writer interface { // a [result.Writer] or a [page.Feed]
		Start(head result.Head) error
		Row(row result.Row) error
		Finish(r result.Result) error
		Close() error
	}
}

// NewResult makes the folder and its files. It refuses a folder with a result.
func NewResult(dir string, options ResultOptions) (*Result, error) {
	w, err := result.NewWriter(dir)
	if err != nil {
		return nil, resultError("create the result in "+dir, false, err)
	}
	return &Result{recorder: recorder{ResultOptions: options}, where: "in " + dir, writer: w}, nil
}

// NewWeb returns a reporter that serves the result as a page during the run. [page.NewServer] describes the address.
func NewWeb(address string, options ResultOptions) (*Result, *page.Feed, error) {
	f, err := page.NewFeed(address)
	if err != nil {
		return nil, nil, err
	}
	return &Result{recorder: recorder{ResultOptions: options}, where: "on a page", writer: f}, f, nil
}

// start completes the head.
func (r *recorder) start(run stats.Run) {
	r.run = run
	head := &r.Head
	head.Format, head.Version = result.Format, result.Version
	if hash, err := result.Hash(head.Plan); err == nil {
		head.PlanHash = hash
	}
	head.Scenario, head.Labels, head.Clock = run.Scenario, run.Labels, run.Ahead
	head.RunID, head.Start, head.Warmup = strconv.FormatInt(run.ID, 10), run.Start.UnixMicro(), run.Warmup.Microseconds()
	client := func(role, protocol, name string) {
		c := result.Client{Role: role, Protocol: protocol, Name: name}
		if name != driver.Native && r.ClientVersion != nil {
			c.Version = r.ClientVersion(name)
		}
		head.Versions.Clients = append(head.Versions.Clients, c)
	}
	switch {
	case run.Producing:
		client("producers", run.Protocol, run.Client)
	case run.Opening:
		client("connections", run.Protocol, run.Client)
	}
	if run.Consuming {
		client("consumers", run.ConsumerProtocol, run.ConsumerClient)
	}
}

// record writes a row, unless one before it could not be written. It returns nil.
func (r *recorder) record(write func() error) error {
	if r.err != nil {
		return nil //nolint:nilerr // it was reported
	}
	if r.err = write(); r.err == nil {
		r.rows++
	} else if r.OnError != nil {
		r.OnError(r.err)
	}
	return nil
}

// whole returns the result of the run. If rows could not be written, it has a finding that begins with missing. Its
// status ignores failures of other outputs.
func (r *recorder) whole(s *stats.Summary, missing string) result.Result {
	out := s.Result
	out.Head, out.Complete = r.Head, true
	out.Figures, out.Protocol = s.FiguresOf(r.run.Producing, r.run.Consuming), countersByName(s.Counters)
	o := &out.Outcome
	o.Problems, o.Warnings = s.Problems(), s.Warnings()
	switch {
	case !o.Success:
		o.Status = result.StatusFailed
	case threshold.Fail(s.Thresholds):
		o.Status = result.StatusThreshold
	case o.Interrupted:
		o.Status = result.StatusInterrupted
	}
	if n := len(out.Stalls); n > maxStalls {
		out.Stalls, out.MoreStalls = out.Stalls[:maxStalls], uint64(n-maxStalls)+s.Unlisted
	}
	out.Steps = r.steps(s, &out)
	if r.err != nil {
		f := words.Find(result.RowsMissing, words.Perfmq, 1, missing+" "+strconv.Itoa(r.rows+1)+" on: "+r.err.Error())
		o.Warnings, o.Status = append(o.Warnings, f.Text), result.StatusFailed
		out.Findings = append(out.Findings[:len(out.Findings):len(out.Findings)], f)
	}
	return out
}

// maxStalls is the number of stalls that a result lists.
const maxStalls = 1000

// steps returns the steps of a run. A run with one step gets the figures of the whole run.
func (r *recorder) steps(s *stats.Summary, whole *result.Result) (list []result.Step) {
	if len(s.Ended) == 0 {
		name := loadStep
		if len(r.run.Steps) == 1 { // a scenario names its step
			name = r.run.Steps[0]
		}
		return []result.Step{{
			Name: name, Start: whole.Start, End: whole.End, Counts: whole.Total, Measured: whole.Measured,
			Latencies: whole.Latencies, Groups: groups(s.Groups), Limit: whole.Limit, Figures: whole.Figures,
		}}
	}
	for _, step := range s.Ended {
		list = append(list, result.Step{
			Name: step.Name, Reason: step.Outcome.Reason, Start: step.Start, End: step.End, Counts: step.Total,
			Measured: step.Measured, Latencies: step.Latencies, Groups: groups(step.Groups), Limit: step.Limit,
			Figures: step.FiguresOf(step.Sends, step.Receives),
		})
	}
	return list
}

// groups returns the groups of a step, if there are several.
func groups(list []stats.Summary) (out []result.Group) {
	if len(list) < 2 {
		return nil
	}
	for _, g := range list {
		out = append(out, result.Group{
			Name: g.Name, Due: g.Due, Counts: g.Total, Measured: *g.Measured, Latencies: g.Latencies,
		})
	}
	return out
}

// Start writes the head.
func (r *Result) Start(run stats.Run) error {
	r.start(run)
	return resultError("begin the result "+r.where, false, r.writer.Start(r.Head))
}

// Abandon lets Close remove the files: the run does not begin, and they would be in the way of another try.
func (r *Result) Abandon() {
	if a, ok := r.writer.(interface{ Abandon() }); ok {
		a.Abandon()
	}
}

// Interval writes a row.
func (r *Result) Interval(s *stats.Snapshot) error {
	if live, ok := r.writer.(*page.Feed); ok {
		live.Look(s)
	}
	return r.record(func() error {
		err := r.writer.Row(s.Row)
		if t, ok := r.writer.(*result.Writer); ok && err == nil {
			err = cmp.Or(t.Trace(s.Trace), writeNumbers(t, s.Numbers))
		}
		return resultError("write the result "+r.where, true, err)
	})
}

// writeNumbers writes what the process has learned of messages that another one judges. Files are kept for two windows
// and longestLag.
func writeNumbers(w *result.Writer, side *verify.Side) error {
	const longestLag = 5 * time.Minute
	if side == nil {
		return nil
	}
	data, err := verify.Encode(side)
	if err != nil {
		return err
	}
	return w.Numbers(data, 2*time.Duration(side.Window)*time.Microsecond+longestLag)
}

// Summary writes result.json.
func (r *Result) Summary(s *stats.Summary) error {
	if w, ok := r.writer.(*result.Writer); ok {
		if err := writeNumbers(w, s.Numbers); err != nil {
			return resultError("write the result "+r.where, true, err)
		}
	}
	return resultError("write the result "+r.where, true, r.writer.Finish(r.whole(s, "rows are missing from row")))
}

// Close closes the files. It removes them if the run did not begin.
func (r *Result) Close() error {
	return cmp.Or(r.err, resultError("close the result "+r.where, true, r.writer.Close()))
}

// resultError wraps err with the action and a hint; nil for nil. begun reports whether the result has rows.
func resultError(doing string, begun bool, err error) error {
	if err == nil {
		return nil
	}
	hint := writeHint(begun, err)
	if errors.Is(err, result.ErrExists) {
		hint = "name another folder, or remove this one"
	}
	return driver.Errorf(driver.ClassOther, doing, hint, "%w", err)
}
