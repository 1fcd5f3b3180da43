package store

// The methods for front-ends with a memory of their own, such as one that keeps logs instead of queues.

// Config returns the limits of the store with the defaults filled in.
func (s *Store) Config() Config { return s.cfg }

// Full tells whether the fault [Faults.Full] is at work: a [Sink] then has no room.
func (s *Store) Full() bool { return s.full() }

// Stalled returns a channel that is closed at the end of the stall under way, and nil if there is none.
func (s *Store) Stalled() <-chan struct{} {
	if over := s.stall.over.Load(); over != nil {
		return *over
	}
	return nil
}

// OnMake sets the function that is called after a destination was made, by the goroutine that made it, before that
// goroutine sends or receives. It may be called twice for one.
func (s *Store) OnMake(f func(Address)) { s.onMake.Store(&f) }

// roomTeller is a [Sink] that wants to know when the fault Full has ended.
type roomTeller interface{ TellRoom() }

// TellRoom calls the waiters for room in the queue.
func (q *Queue) TellRoom() { q.room.Tell() }
