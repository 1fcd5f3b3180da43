package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// ledger owns the slots of one producer and checks every call of Done.
type ledger struct {
	free chan driver.Slot

	mu       sync.Mutex
	inFlight map[driver.Slot]bool
	use      map[uint32]uint32 // the generation last used of each place
	max      int
	sent     int // sends that were begun and did not fail
	ended    int
	states   [driver.NumStates]int
	classes  [driver.NumClasses]int
	lastErr  error
	closed   bool
	wrong    []string
	changed  chan struct{}
	ending   func() // called at the end of Done; may be nil
}

func newLedger(slots int) *ledger {
	l := &ledger{
		free: make(chan driver.Slot, slots), inFlight: map[driver.Slot]bool{}, use: map[uint32]uint32{}, max: slots,
		changed: make(chan struct{}, 1),
	}
	for i := range slots {
		l.free <- driver.NewSlot(uint32(i), uint32(i)%3+1) //nolint:gosec // a small number
	}
	return l
}

// DoneAll implements [driver.Completions].
func (l *ledger) DoneAll(slots []driver.Slot, o driver.Outcome) {
	for _, slot := range slots {
		l.Done(slot, o)
	}
}

// Done implements [driver.Completions].
func (l *ledger) Done(slot driver.Slot, o driver.Outcome) {
	l.note(slot, o)
	if l.ending != nil {
		l.ending()
	}
}

func (l *ledger) note(slot driver.Slot, o driver.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fault := ""
	switch {
	case l.closed:
		fault = "Done was called after Close had returned"
	case int(slot.Index()) >= l.max:
		fault = fmt.Sprintf("Done was called with slot %d, of %d", slot.Index(), l.max)
	case l.use[slot.Index()] > slot.Generation():
		fault = fmt.Sprintf("Done was called for slot %d of generation %d: a late or second answer, or one without its "+
			"generation",
			slot.Index(), slot.Generation())
	case !l.inFlight[slot]:
		fault = "Done was called for a slot that is not in flight: twice for one send, or for a Send that returned an error"
	case o.State >= driver.NumStates, o.Class >= driver.NumClasses:
		fault = fmt.Sprintf("Done was called with the outcome %d of class %d, which do not exist", o.State, o.Class)
	case o.Withheld && o.State != driver.Accepted:
		fault = fmt.Sprintf("Done was called with Withheld, which is for what was accepted, and %v", o.State)
	case o.State == driver.Accepted && (o.Class != driver.ClassNone || o.Err != nil):
		fault = fmt.Sprintf("Done was called with Accepted but class %v and error %v", o.Class, o.Err)
	case o.State != driver.Accepted && o.Class == driver.ClassNone:
		fault = fmt.Sprintf("Done was called with %v but without a class of failure", o.State)
	}
	if fault != "" {
		l.complain(fault)
	}
	if l.inFlight[slot] {
		delete(l.inFlight, slot)
		l.ended++
		if o.State < driver.NumStates && o.Class < driver.NumClasses {
			l.states[o.State]++
			l.classes[o.Class]++
		}
		if o.Err != nil {
			l.lastErr = o.Err
		}
		l.free <- driver.NewSlot(slot.Index(), slot.Generation()+1)
	}
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *ledger) complain(fault string) {
	if len(l.wrong) < 5 {
		l.wrong = append(l.wrong, fault)
	}
}

// begin marks a free slot as in flight. It waits for one until ctx ends.
func (l *ledger) begin(ctx context.Context) (driver.Slot, error) {
	select {
	case slot := <-l.free:
		l.claim(slot)
		return slot, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("no slot became free: Done was called for %s: %w", l, ctx.Err())
	}
}

// claim marks a slot taken from free as in flight.
func (l *ledger) claim(slot driver.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[slot] = true
	l.use[slot.Index()] = slot.Generation()
	l.sent++
}

// undo reverts begin, after Send has failed.
func (l *ledger) undo(slot driver.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.inFlight[slot] {
		l.complain("Done was called for a Send that returned an error")
		return
	}
	delete(l.inFlight, slot)
	l.sent--
	l.free <- slot
}

// wait waits until all sends have ended.
func (l *ledger) wait(timeout time.Duration) error {
	deadline := time.After(timeout)
	for sent, ended, _ := l.totals(); sent > ended; sent, ended, _ = l.totals() {
		select {
		case <-l.changed:
		case <-deadline:
			return fmt.Errorf("after %v, Done was called for %s", timeout, l)
		}
	}
	return nil
}

// String tells how many sends have ended, and in which states.
func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := fmt.Sprintf("%d of %d sends", l.ended, l.sent)
	for state, n := range l.states {
		if n > 0 {
			s += fmt.Sprintf(", %d %v", n, driver.State(state))
		}
	}
	if l.lastErr != nil {
		s += fmt.Sprintf(" (last error: %v)", l.lastErr)
	}
	return s
}

// totals returns the number of sends, of ended sends, and of ended sends by state.
func (l *ledger) totals() (sent, ended int, states [driver.NumStates]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent, l.ended, l.states
}

// class returns the number of sends that ended with that class.
func (l *ledger) class(c driver.Class) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.classes[c]
}

// close forbids further calls.
func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// verify returns the mistakes in the calls of Done.
func (l *ledger) verify() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := l.wrong
	if l.closed && len(l.inFlight) > 0 {
		wrong = append(wrong, fmt.Sprintf("Close returned but Done was never called for %d of %d sends", len(l.inFlight),
			l.sent))
	}
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}
