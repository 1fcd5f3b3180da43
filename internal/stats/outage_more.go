package stats

import (
	"slices"
	"time"
)

// KeptOutages is how many of the first outages are listed, and as many of the last ones: over days, a connection that
// keeps breaking has any number of them. The ones in between are summed up.
const KeptOutages = 100

// MoreOutages are the sums of the outages in between, which the list leaves out. Each of them has an end.
type MoreOutages struct {
	Count           int
	Length, Longest time.Duration
	InDoubt         uint64 // see [Outage]
}

// OutageCount returns how many outages there have been.
func (s *Summary) OutageCount() int { return len(s.Outages) + s.MoreOutages.Count }

// fold adds the outages in between the first and the last ones to the sums, as soon as their lengths no longer change.
func (s *Outages) fold() {
	for len(s.list) > 2*KeptOutages && s.recovery.known > KeptOutages {
		o := s.list[KeptOutages]
		if o.Length() == 0 && !o.idle() {
			return
		}
		s.list = slices.Delete(s.list, KeptOutages, KeptOutages+1)
		s.recovery.known--
		s.recovery.pending = slices.DeleteFunc(s.recovery.pending, func(p *outage) bool { return p == o })
		s.more.Count++
		s.more.Length += o.Length()
		s.more.Longest = max(s.more.Longest, o.Length())
		s.more.InDoubt += o.InDoubt
	}
}

// count returns how many outages there have been.
func (s *Outages) count() int { return len(s.list) + s.more.Count }

// numbered returns the listed outage of a number, which counts from 1; nil for one in between.
func (s *Outages) numbered(number int) *Outage {
	at := number - 1
	if at >= KeptOutages {
		if at -= s.more.Count; at < KeptOutages {
			return nil
		}
	}
	return &s.list[at].Outage
}

// More returns the sums of the outages that [Outages.List] leaves out.
func (s *Outages) More() MoreOutages {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}
