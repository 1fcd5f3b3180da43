package stats

import (
	"time"
)

// redeliveryTime is how long a message may come again without a mark of the broker, after the consumers are connected
// again and, if that can be determined, the load has recovered: some brokers mark none of the messages that they had
// sent to a lost connection.
const redeliveryTime = 10 * time.Second

// cutTime is how long after one consumer has lost its connection others may still receive on connections that are also
// lost. Unmarked messages that come later were not cut off by that loss.
const cutTime = 2 * time.Second

// noticeTime is how much later than the broker a consumer may notice the end of its connection: the default idle
// time-out of AMQP connections.
const noticeTime = time.Minute

// Foreshadowed tells whether the first outage explains copies that came before it. It implements verify.Outages.
func (s *Outages) Foreshadowed() bool { return s.foreshadowed.Load() }

// Receiving tells whether consumers have lost connections.
func (s *Outages) Receiving() bool { return s.redelivering.Load() != 0 }

// Explain tells whether an outage explains that a message comes again now, unless its first copy also came fresh after
// the same loss. It implements verify.Outages. It takes no lock.
func (s *Outages) Explain(redelivered bool) (explained, fresh bool, times uint32) {
	until := s.redelivering.Load()
	if until == 0 {
		if redelivered && s.early.Load() == 0 {
			s.early.CompareAndSwap(0, max(1, int64(time.Since(s.start))))
		}
		return false, false, 0
	}
	times = s.times.Load()
	switch {
	case redelivered:
		return true, false, times
	case until == passed:
		return false, false, times
	}
	now := int64(time.Since(s.start))
	if now < until {
		return true, now-s.cut.Load() >= int64(cutTime), times
	}
	s.redelivering.CompareAndSwap(until, passed)
	return false, false, times
}
