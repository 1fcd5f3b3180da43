package engine

import (
	"sync/atomic"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// watchedEnds passes the ends of the messages of one connection on, and notes the ones of an outage.
type watchedEnds struct {
	link   *link[driver.Producer]
	to     *load.Producer
	outage int         // in which this connection was lost; to be read after late
	late   atomic.Bool // another connection has followed: the ends of this one tell nothing about that
}

// Done implements [driver.Completions].
func (w *watchedEnds) Done(slot driver.Slot, o driver.Outcome) {
	if o.State == driver.Unknown {
		w.unknown([]driver.Slot{slot}, o)
		return
	}
	w.to.Done(slot, o)
	w.noteEnd(&o)
}

// DoneAll implements [driver.Completions].
func (w *watchedEnds) DoneAll(slots []driver.Slot, o driver.Outcome) {
	if o.State == driver.Unknown {
		w.unknown(slots, o)
		return
	}
	w.to.DoneAll(slots, o)
	w.noteEnd(&o)
}

func (w *watchedEnds) noteEnd(o *driver.Outcome) {
	if o.State == driver.Accepted && !w.late.Load() {
		w.link.recordArrival(true)
	}
}

// unknown ends messages without an answer. Messages that a time-out ended before are not the outage's.
func (w *watchedEnds) unknown(slots []driver.Slot, o driver.Outcome) {
	var outage int
	if w.late.Load() {
		outage = w.outage
	} else {
		outage = w.link.lostWith(&o)
	}
	n := w.to.InDoubt(outage, slots, o)
	w.link.outages.InDoubt(outage, n)
}

// lostWith returns the outage in which messages ended without an answer; 0 if that is not because the connection was
// lost.
func (l *link[T]) lostWith(o *driver.Outcome) (outage int) {
	l.mu.Lock()
	lost, done := l.lost, l.done
	l.mu.Unlock()
	err := o.Err
	if !lost && (err == nil || !lostBy(err)) {
		return 0
	}
	if err == nil {
		err = driver.Errorf(driver.ClassConnectionLost, "", "", "the connection was lost")
	}
	return l.outages.Lost(l.name, l.produces, done, err, time.Now())
}
