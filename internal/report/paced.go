package report

import (
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

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
	if p.held.To.Sub(p.held.From) < p.every-shortest { // snapshots come some milliseconds early or late
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
