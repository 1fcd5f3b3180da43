package load

import (
	"sync/atomic"
	"time"
)

// Delays are for how long the broker is to hold back the messages of each producer of a run. It is safe for concurrent use.
type Delays struct {
	of []atomic.Int64 // by producer
}

// NewDelays returns the delays of a run with that many producers: none.
func NewDelays(producers int) *Delays { return &Delays{of: make([]atomic.Int64, producers)} }

// Set notes the delay of all messages of a producer.
func (d *Delays) Set(producer int, delay time.Duration) { d.of[producer].Store(int64(delay)) }

// Of returns the delay of a producer's messages; 0 if there is no such producer.
func (d *Delays) Of(producer int64) time.Duration {
	if d == nil || producer < 0 || producer >= int64(len(d.of)) {
		return 0
	}
	return time.Duration(d.of[producer].Load())
}
