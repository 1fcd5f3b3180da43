package store

// The methods for front-ends with their own storage, such as RocketMQ's logs.

// Config returns the limits of the store with the defaults filled in.
func (s *Store) Config() Config { return s.cfg }

// Stalled returns a channel that is closed at the end of the current stall, or nil.
func (s *Store) Stalled() <-chan struct{} {
	if over := s.stall.over.Load(); over != nil {
		return *over
	}
	return nil
}

// OnCreate sets the function that is called after the creation of a destination, before the creating goroutine sends or
// receives. It may be called twice for one destination.
func (s *Store) OnCreate(f func(Address)) { s.onCreate.Store(&f) }
