package transport

import "sync"

// Notice tells one function that a producer has ended: nothing more can be sent. It implements [driver.Watched]. The
// zero value is usable, and safe for concurrent use.
type Notice struct {
	mu   sync.Mutex
	call func(error)
	why  error // nil until the end
}

// OnEnd implements [driver.Watched].
func (n *Notice) OnEnd(call func(why error)) {
	n.mu.Lock()
	n.call = call
	why := n.why
	n.mu.Unlock()
	if why != nil {
		call(why)
	}
}

// End calls the function, for the first reason.
func (n *Notice) End(why error) {
	n.mu.Lock()
	first, call := n.why == nil, n.call
	if first {
		n.why = why
	}
	n.mu.Unlock()
	if first && call != nil {
		call(why)
	}
}
