package report

import (
	"time"

	"github.com/perfmq/perfmq/internal/stats"
)

// paced gives a reporter longer intervals: the snapshots of so much time as one. It is for people; what is written to
// files keeps its seconds.
type paced struct {
	Reporter
	every time.Duration
	held  *stats.Snapshot
}

// Paced returns a reporter that passes on what it is given, intervals joined to that length. They end at the ends of
// phases and steps, too.
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
	if p.held.To.Sub(p.held.From) < p.every-shortest { // a second is cut some milliseconds early or late
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

// Summary passes on what is left, and the summary.
func (p *paced) Summary(s *stats.Summary) error {
	if err := p.pass(); err != nil {
		return err
	}
	return p.Reporter.Summary(s)
}
