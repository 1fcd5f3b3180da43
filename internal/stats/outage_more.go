package stats

import (
	"slices"
	"time"
)

// KeptOutages is how many of the first outages are listed, and as many of the last ones: over days, a connection that
// keeps breaking has any number of them. The ones in between are summed up.
const KeptOutages = 100

// MoreOutages are the sums of the outages in between, which the list leaves out.
type MoreOutages struct {
	Count           int
	Length, Longest time.Duration
	Attempts        uint64 // see [Outage], as for the following ones
	InDoubt, Resent uint64
	Lost, Doubled   uint64
	Unrecovered     int           // number of outages without an observed recovery
	Recovery        time.Duration // the longest [Outage.Recovery]
	Worst           Worst
	Stuck           *Outage // the first outage that is [Outage.Stuck]; nil if none is
}

// OutageCount returns how many outages there have been.
func (s *Summary) OutageCount() int { return len(s.Outages) + s.MoreOutages.Count }

// folded holds the sums of outages. The load has not yet recovered from some of them: the first of them stays in
// recovery.pending for all, as its recovery takes longest.
type folded struct {
	MoreOutages
	waiting int
	first   *outage // of the outages without recovery; nil if there are none
}

// A load counts as not recovered only if it went on for enoughWatched, and if its rates before the outage were at least
// enoughRate, in messages per second: lower rates differ by chance from one second to the next.
const (
	enoughWatched = 10 * time.Second
	enoughRate    = 20
)

// Stuck tells whether the load should have recovered but did not, if only the broker changes its rates.
func (o *Outage) Stuck() bool {
	return o.Recovered == 0 && o.Watched >= enoughWatched && o.Even && o.Before.Completed >= enoughRate
}

// fold adds the outages in between the first and the last ones to the sums, as soon as they no longer change.
func (s *Outages) fold() {
	s.settleFolded()
	for len(s.list) > 2*KeptOutages && s.recovery.known > KeptOutages {
		o := s.list[KeptOutages]
		pending := slices.Contains(s.recovery.pending, o)
		if !o.past && !o.idle() && !pending {
			return
		}
		s.list = slices.Delete(s.list, KeptOutages, KeptOutages+1)
		s.recovery.known--
		s.more.add(o)
		switch {
		case !pending:
			s.more.recovered(o, 1)
		case s.more.first == nil:
			s.more.first, s.more.waiting = o, 1
		default:
			s.more.waiting++
			s.recovery.pending = slices.DeleteFunc(s.recovery.pending, func(p *outage) bool { return p == o })
		}
	}
}

// settleFolded checks whether the load has recovered from the outages in the sums that are pending.
func (s *Outages) settleFolded() {
	if o := s.more.first; o != nil && !slices.Contains(s.recovery.pending, o) {
		s.more.Worst.include(o.Worst)
		s.more.recovered(o, s.more.waiting)
		s.more.first, s.more.waiting = nil, 0
	}
}

func (f *folded) add(o *outage) {
	f.Count++
	f.Length += o.Length()
	f.Longest = max(f.Longest, o.Length())
	f.Attempts += o.Attempts
	f.InDoubt += o.InDoubt
	f.Resent += o.Resent
	f.Worst.include(o.Worst)
}

// recovered adds the recovery of the load from n outages, of which o is the first.
func (f *folded) recovered(o *outage, n int) {
	if o.Recovered > 0 {
		f.Recovery = max(f.Recovery, o.Recovery())
		return
	}
	f.Unrecovered += n
	if f.Stuck == nil && o.Stuck() {
		c := o.Outage
		f.Stuck = &c
	}
}

// count returns how many outages there have been.
func (s *Outages) count() int { return len(s.list) + s.more.Count }

// tallies returns the counters of messages in doubt and sent again of outage number, which counts from 1.
func (s *Outages) tallies(number int) (inDoubt, resent *uint64) {
	at := number - 1
	if at >= KeptOutages {
		if at -= s.more.Count; at < KeptOutages {
			return &s.more.InDoubt, &s.more.Resent
		}
	}
	return &s.list[at].InDoubt, &s.list[at].Resent
}

// Folded returns the numbers of the first and the last outage that [Outages.List] leaves out; 0 if it leaves out none.
func (s *Outages) Folded() (first, last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more.Count == 0 {
		return 0, 0
	}
	return KeptOutages + 1, KeptOutages + s.more.Count
}

// More returns the sums of the outages that [Outages.List] leaves out.
func (s *Outages) More() MoreOutages {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.more
	if f.first != nil { // as if the run ended now
		f.Worst.include(f.first.Worst)
		f.recovered(f.first, f.waiting)
	}
	return f.MoreOutages
}
