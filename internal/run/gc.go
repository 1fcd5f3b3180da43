package run

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The heap may grow by one second's allocations, but within these shares of the live heap. A load over a client library
// allocates much and has a small live heap: with Go's default of 100, a fifth of the processor time went into
// collections. Thousands of connections have a large live heap, and allocate next to nothing once they are open.
const (
	leastGCPercent = 25
	mostGCPercent  = 400
	leastGCRoom    = 16 << 20 // bytes
	mostGCRoom     = 64 << 20 // bytes, or as much as is live
)

// gcPercent returns the allowed growth of the heap in percent of the live heap. allocated are the bytes of the last
// second.
func gcPercent(live, allocated uint64) int {
	room := min(max(allocated, leastGCRoom), max(live, mostGCRoom))
	return int(min(max(100*room/max(live, 1), leastGCPercent), mostGCPercent)) //nolint:gosec // small
}

// tendGC adapts the garbage collector until stop is called, which restores its setting.
func tendGC() (stop func()) {
	before, now := debug.SetGCPercent(mostGCPercent), mostGCPercent
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		const perSecond = 4
		tick := time.Tick(time.Second / perSecond)
		var last [perSecond]uint64 // bytes allocated so far
		for i := 0; ; i++ {
			live, total := heap()
			if want := gcPercent(live, total-last[i%perSecond]); want < now*4/5 || want > now*5/4 {
				debug.SetGCPercent(want) // it stops the world for an instant
				now = want
			}
			last[i%perSecond] = total
			select {
			case <-tick:
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
		debug.SetGCPercent(before)
	}
}

// heap returns the bytes that were live at the last collection, and those allocated so far.
func heap() (live, total uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64()
}
