// Package report turns the snapshots of a run into what people and programs read: the console, a JSON file, an HDR log,
// Prometheus metrics.
//
// # The model
//
//	engine --Start, Interval..., Summary, Close--> Fan --> Console, JSON, HDR, Prometheus
//
// A [Reporter] is fed by one goroutine, in that order, with the immutable values of internal/stats. It computes nothing
// that is not in them: a rate is a delta over the interval's real length, a percentile is what [stats.Latency] says. It
// never sees a message, so it costs the load nothing but its share of the processor once a second.
//
// A reporter that fails is left out from then on and the others go on, see [Fan]: a full disk must not cost an
// hour's measurement. Files are created before the run, so that a mistyped folder is noticed then.
//
// Where one of the outputs resembles that of `artemis perf`, its comments say what is the same and what was added.
package report

import (
	"errors"

	"github.com/perfmq/perfmq/internal/safetext"
	"github.com/perfmq/perfmq/internal/stats"
)

// Reporter is one output of a run. Its methods are called by one goroutine at a time and must not keep the run waiting.
type Reporter interface {
	// Start is called once, before the first snapshot.
	Start(run stats.Run) error
	// Interval is called for each snapshot, in order of time. It must not change the snapshot.
	Interval(snapshot *stats.Snapshot) error
	// Summary is called once, after the last snapshot; not at all if the run could not begin.
	Summary(summary *stats.Summary) error
	// Close ends the output so that it is complete, whatever was called before. It is called once, also after an error.
	Close() error
}

// Fan passes everything on to several reporters, in order. It is a [Reporter] itself.
//
// One that returns an error is not called again except for Close, and the others are not affected. Interval and Summary
// therefore always return nil; Start returns what failed, as a run that cannot report as it was asked to had better not
// begin; Close returns the first error of each reporter, joined, but for those that Start returned already.
type Fan struct {
	// OnError, if not nil, is called at once with the error of a reporter that Interval or Summary lost, to tell the
	// user. Close returns the same error once more.
	OnError func(error)
	// Secrets are not shown by any reporter. See clean.go.
	Secrets *safetext.Secrets

	outputs []output
}

type output struct {
	Reporter
	failed bool
	err    error // the first one after Start
}

// NewFan returns a Fan over the given reporters. With none it is a reporter that does nothing.
func NewFan(reporters ...Reporter) *Fan {
	f := &Fan{Secrets: &safetext.Secrets{}, outputs: make([]output, len(reporters))}
	for i, r := range reporters {
		f.outputs[i].Reporter = r
	}
	return f
}

// Start starts all reporters, also those after one that fails, and returns their errors joined.
func (f *Fan) Start(run stats.Run) error {
	var errs []error
	run = cleanRun(f.Secrets, run)
	for i := range f.outputs {
		o := &f.outputs[i]
		if err := o.Start(run); err != nil {
			o.failed = true
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Interval passes a snapshot on to all reporters that have not failed. It returns nil.
func (f *Fan) Interval(snapshot *stats.Snapshot) error {
	snapshot = cleanSnapshot(f.Secrets, snapshot)
	f.each(func(r Reporter) error { return r.Interval(snapshot) })
	return nil
}

// Summary passes the summary on to all reporters that have not failed. It returns nil.
func (f *Fan) Summary(summary *stats.Summary) error {
	summary = cleanSummary(f.Secrets, summary)
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
