package result

import "math"

// add adds other.
func (c *Counts) add(other *Counts) error {
	if other.Producers != nil {
		if c.Producers == nil {
			c.Producers = &Producers{}
		}
		if err := c.Producers.addFailures(other.Producers.Failures); err != nil {
			return err
		}
	}
	if other.Consumers != nil && c.Consumers == nil {
		c.Consumers = &Consumers{}
	}
	to, from := c.places(), other.places()
	return addAll(to[:], from[:])
}

// differ tells whether some counts are above, and some below, the counts of other.
func (c *Counts) differ(other *Counts) (more, less bool) {
	a, b := c.Values(), other.Values()
	for i := range a {
		more, less = more || a[i] > b[i], less || a[i] < b[i]
	}
	return more, less
}

func (p *Producers) addFailures(failures map[string]map[string]uint64) error {
	for state, classes := range failures {
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
	return nil
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
