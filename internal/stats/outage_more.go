package stats

import (
	"slices"

	"github.com/perfmq/perfmq/pkg/result"
)

// KeptOutages is the number of listed outages at the beginning, and again at the end: over days, a connection that
// keeps breaking has any number of them. The outages in between are summed up.
const KeptOutages = 100

// OutageCount returns the number of outages.
func (s *Summary) OutageCount() int {
	n := len(s.Outages)
	if s.MoreOutages != nil {
		n += int(s.MoreOutages.Count) //nolint:gosec // a number of outages
	}
	return n
}

// fold adds the outages in between the first and the last ones to the sums, as soon as their lengths no longer change.
func (s *Outages) fold() {
	for len(s.list) > 2*KeptOutages && s.recovery.known > KeptOutages {
		o := s.list[KeptOutages]
		if o.Length == 0 && !o.idle() {
			return
		}
		s.list = slices.Delete(s.list, KeptOutages, KeptOutages+1)
		s.recovery.known--
		s.recovery.pending = slices.DeleteFunc(s.recovery.pending, func(p *outage) bool { return p == o })
		s.more.Count++
		s.more.Length += o.Length
		s.more.Longest = max(s.more.Longest, o.Length)
		s.more.InDoubt += o.InDoubt
	}
}

// count returns the number of outages.
func (s *Outages) count() int { return len(s.list) + int(s.more.Count) } //nolint:gosec // a number of outages

// numbered returns the listed outage of a number, which counts from 1; nil for one in between.
func (s *Outages) numbered(number int) *result.Outage {
	index := number - 1
	if index >= KeptOutages {
		if index -= int(s.more.Count); index < KeptOutages {
			return nil
		}
	}
	return &s.list[index].Outage
}

// More returns the sums of the outages that [Outages.List] leaves out; nil if it leaves out none.
func (s *Outages) More() *result.MoreOutages {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more.Count == 0 {
		return nil
	}
	more := s.more
	return &more
}
