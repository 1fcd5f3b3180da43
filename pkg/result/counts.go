package result

import (
	"math"
	"slices"
)

// add adds other.
func (c *Counts) add(other *Counts) error {
	if other.Producers != nil {
		if c.Producers == nil {
			c.Producers = &Producers{}
		}
		if err := c.Producers.add(other.Producers); err != nil {
			return err
		}
	}
	if other.Consumers != nil {
		if c.Consumers == nil {
			c.Consumers = &Consumers{}
		}
		if err := addAll(c.Consumers.counters(), other.Consumers.counters()); err != nil {
			return err
		}
	}
	return addAll(
		[]*uint64{&c.Commits, &c.CommitsFailed, &c.OutOfRange, &c.Paused},
		[]*uint64{&other.Commits, &other.CommitsFailed, &other.OutOfRange, &other.Paused},
	)
}

// differ tells whether some counts are above, and some below, the counts of other.
func (c *Counts) differ(other *Counts) (more, less bool) {
	a, b := c.counters(), other.counters()
	for i := range a {
		more, less = more || *a[i] > *b[i], less || *a[i] < *b[i]
	}
	return more, less
}

// counters returns all counts; the counts of an absent role are zero.
func (c *Counts) counters() []*uint64 {
	p, k := c.Producers, c.Consumers
	if p == nil {
		p = &Producers{}
	}
	if k == nil {
		k = &Consumers{}
	}
	return slices.Concat(p.counters(), k.counters(), []*uint64{&c.Commits, &c.CommitsFailed, &c.OutOfRange, &c.Paused})
}

func (p *Producers) add(other *Producers) error {
	for state, classes := range other.Failures {
		if p.Failures == nil {
			p.Failures = map[string]map[string]uint64{}
		}
		if p.Failures[state] == nil {
			p.Failures[state] = map[string]uint64{}
		}
		for class, n := range classes {
			sum := p.Failures[state][class]
			if err := addTo(&sum, n); err != nil {
				return err
			}
			p.Failures[state][class] = sum
		}
	}
	return addAll(p.counters(), other.counters())
}

func (p *Producers) counters() []*uint64 {
	return []*uint64{
		&p.Sent, &p.Blocked, &p.NoLeave, &p.SocketWaits, &p.Completed, &p.Rejected, &p.Released, &p.Modified, &p.Failed,
		&p.Unsent, &p.Unconfirmed, &p.Resent,
		&p.Late, &p.Strays, &p.CompletedBytes,
	}
}

func (c *Consumers) counters() []*uint64 {
	return []*uint64{
		&c.Received, &c.Redelivered, &c.Unstamped, &c.Foreign, &c.NegativeTransfers, &c.NegativeAges, &c.ReceivedBytes,
		&c.Delayed, &c.Early, &c.Released, &c.Rejected,
	}
}

// LeftOut returns how many values a latency lacks, by its name in JSON, because they are below zero.
func (c *Counts) LeftOut(latency string) uint64 {
	switch {
	case c == nil || c.Consumers == nil:
		return 0
	case latency == "transfer":
		return c.Consumers.NegativeTransfers
	case latency == "lateness":
		return c.Consumers.Early
	default:
		return 0
	}
}

// Add adds o.
func (v *Verified) Add(o *Verified) { sum(v.counters(), o.counters()) }

func (v *Verified) counters() []*uint64 {
	return []*uint64{
		&v.Expected, &v.Received, &v.Once, &v.Lost, &v.Left, &v.Early, &v.Duplicates, &v.Redelivered,
		&v.AfterOutage, &v.Resent, &v.Disordered,
		&v.DisorderedRedelivered, &v.Damaged, &v.Illegible, &v.Foreign, &v.UnconfirmedArrived, &v.UnconfirmedMissing,
		&v.RefusedArrived, &v.WithheldArrived, &v.Gaps,
	}
}

// Add adds o.
func (p *Progress) Add(o *Progress) { sum(p.counters(), o.counters()) }

func sum(to, more []*uint64) {
	for i, n := range more {
		*to[i] += *n
	}
}

func (p *Progress) counters() []*uint64 {
	return []*uint64{
		&p.Received, &p.Duplicates, &p.Redelivered, &p.AfterOutage, &p.Resent, &p.Disordered, &p.Damaged, &p.Foreign,
	}
}

// add adds the use of another interval, or of another machine at the same time. Of the longest pauses it keeps the
// longer. Cores and Memory stay as they are.
func (t *Tester) add(other *Tester) error {
	err := addAll(
		[]*uint64{&t.GCPauses, &t.Pauses, &t.LateCrowded, &t.LatePaused, &t.Saturated},
		[]*uint64{&other.GCPauses, &other.Pauses, &other.LateCrowded, &other.LatePaused, &other.Saturated},
	)
	if err != nil {
		return err
	}
	t.GCPauseMax, t.PauseMax = max(t.GCPauseMax, other.GCPauseMax), max(t.PauseMax, other.PauseMax)
	for _, n := range []struct {
		to *int64
		n  int64
	}{
		{&t.CPU, other.CPU},
		{&t.MachineBusy, other.MachineBusy},
		{&t.MachineAll, other.MachineAll},
		{&t.ClockForward, other.ClockForward},
		{&t.ClockBackward, other.ClockBackward},
	} {
		if *n.to > math.MaxInt64-n.n {
			return errTooLarge
		}
		*n.to += n.n
	}
	return nil
}

// addAll adds numbers by index.
func addAll(to, from []*uint64) error {
	for i := range to {
		if err := addTo(to[i], *from[i]); err != nil {
			return err
		}
	}
	return nil
}

func addTo(to *uint64, n uint64) error {
	if *to > math.MaxInt64-min(n, math.MaxInt64) {
		return errTooLarge
	}
	*to += n
	return nil
}
