package stats

import "time"

// redeliveryTime is the time after the consumers are connected again in which a message may come again without a mark
// of the broker: some brokers mark none of the messages that they had sent to a lost connection.
const redeliveryTime = time.Minute

// Receiving reports whether a consumer has lost its connection. It implements verify.Outages.
func (s *Outages) Receiving() bool { return s.redelivering.Load() != 0 }

// Explain reports whether an outage explains that a message comes again now. It implements verify.Outages. It takes no
// lock.
func (s *Outages) Explain() bool {
	until := s.redelivering.Load()
	switch {
	case until <= passed:
		return false
	case int64(time.Since(s.start)) < until:
		return true
	}
	s.redelivering.CompareAndSwap(until, passed)
	return false
}
