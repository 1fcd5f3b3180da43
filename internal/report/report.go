// Package report writes the snapshots of a run to its outputs: the console, a JSON file, an HDR log, Prometheus
// metrics, the result folder, the live page.
//
// # The model
//
//	engine --Start, Interval..., Summary; run --Close--> Fan --> Console, JSON, HDR, Prometheus
//
// One goroutine at a time calls a [Reporter], in that order, with the immutable values of internal/stats. A reporter
// that fails is not called again and the others continue, see [Fan]: a full disk must not cost an hour's measurement.
// Files are created before the run, so that a mistyped folder is reported before the load.
package report

import (
	"errors"
	"time"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
)

// Reporter is one output of a run. One goroutine at a time calls its methods; they must not block the run.
type Reporter interface {
	// Start is called once, before the first snapshot.
	Start(run stats.Run) error
	// Interval is called for each snapshot, in order of time. It must not change the snapshot.
	Interval(snapshot *stats.Snapshot) error
	// Summary is called once, after the last snapshot; not at all if the run could not begin.
	Summary(summary *stats.Summary) error
	// Close completes the output, whatever was called before. It is called once, also after an error.
	Close() error
}

// Fan passes all calls on to several reporters, in order. It is a [Reporter] itself.
//
// After an error, a reporter only gets Close; the others are not affected. Interval and Summary therefore always return
// nil. Start returns all errors, because a run should not begin without its outputs. Close returns the first error of
// each reporter, joined, except errors that Start returned.
type Fan struct {
	// OnError, if not nil, is called at once with an error of Interval or Summary, to tell the user. Close returns the
	// same error again.
	OnError func(error)
	// Secrets are removed from all texts for reporters.
	Secrets *safetext.Secrets

	outputs []output
}

type output struct {
	Reporter
	failed bool
	err    error // the first one after Start
}

// NewFan returns a Fan over the given reporters. Without reporters it does nothing.
func NewFan(reporters ...Reporter) *Fan {
	f := &Fan{Secrets: &safetext.Secrets{}, outputs: make([]output, len(reporters))}
	for i, r := range reporters {
		f.outputs[i].Reporter = r
	}
	return f
}

// Start starts all reporters, even after an error, and returns their errors joined. After an error the run must not
// begin: what would be in the way of another try is removed by Close.
func (f *Fan) Start(run stats.Run) error {
	var errs []error
	run = safetext.Clean(f.Secrets, run)
	for i := range f.outputs {
		o := &f.outputs[i]
		if err := o.Start(run); err != nil {
			o.failed = true
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		for i := range f.outputs {
			if a, ok := f.outputs[i].Reporter.(interface{ Abandon() }); ok {
				a.Abandon()
			}
		}
	}
	return errors.Join(errs...)
}

// Interval passes a snapshot on to all reporters that have not failed. It returns nil.
func (f *Fan) Interval(snapshot *stats.Snapshot) error {
	clean := safetext.Clean(f.Secrets, snapshot)
	if clean != snapshot { // a copy; a phase has a fixed name, whatever the password is
		clean.Phase = snapshot.Phase
	}
	f.each(func(r Reporter) error { return r.Interval(clean) })
	return nil
}

// Summary passes the summary on to all reporters that have not failed. It returns nil.
func (f *Fan) Summary(summary *stats.Summary) error {
	summary = safetext.Clean(f.Secrets, summary)
	f.each(func(r Reporter) error { return r.Summary(summary) })
	return nil
}

// Close closes all reporters, failed ones included, and returns the first error of each, joined.
func (f *Fan) Close() error {
	var errs []error
	for i := range f.outputs {
		o := &f.outputs[i]
		err := o.Close()
		switch {
		case o.err != nil:
			errs = append(errs, o.err)
		case err != nil && !o.failed:
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (f *Fan) each(call func(Reporter) error) {
	for i := range f.outputs {
		o := &f.outputs[i]
		if o.failed {
			continue
		}
		if err := call(o.Reporter); err != nil {
			o.failed, o.err = true, err
			if f.OnError != nil {
				f.OnError(err)
			}
		}
	}
}

// paced joins snapshots to longer intervals, for outputs that people read. Files keep intervals of a second.
type paced struct {
	Reporter
	every time.Duration
	held  *stats.Snapshot
}

// Paced returns a reporter that passes intervals on to r, joined to the length every. Intervals of different phases or
// steps are not joined.
func Paced(r Reporter, every time.Duration) Reporter { return &paced{Reporter: r, every: every} }

// Interval passes the joined interval on when it is long enough.
func (p *paced) Interval(s *stats.Snapshot) error {
	if p.held != nil && (p.held.Step != s.Step || p.held.Phase != s.Phase) {
		if err := p.pass(); err != nil {
			return err
		}
	}
	if p.held == nil {
		p.held = s
	} else {
		p.held = p.held.Join(s)
	}
	// Snapshots come some milliseconds early or late.
	if p.held.To.Sub(p.held.From) < p.every-shortest && p.held.Lost == "" {
		return nil
	}
	return p.pass()
}

func (p *paced) pass() error {
	if p.held == nil {
		return nil
	}
	s := p.held
	p.held = nil
	return p.Reporter.Interval(s)
}

// Summary passes on the last, shorter interval, then the summary.
func (p *paced) Summary(s *stats.Summary) error {
	if err := p.pass(); err != nil {
		return err
	}
	return p.Reporter.Summary(s)
}
