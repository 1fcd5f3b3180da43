package transport

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Identity keeps the product and version that a broker reports. A driver that embeds it is a [driver.Identified]. The
// zero value is an unknown broker; it is safe for concurrent use.
type Identity struct{ told atomic.Pointer[[2]string] } // product and version

// Tell stores product and version, cut to [driver.MaxBrokerText] bytes each. It ignores an empty product.
func (i *Identity) Tell(product, version string) {
	if product == "" {
		return
	}
	clip := func(text string) string {
		return strings.ToValidUTF8(text[:min(len(text), driver.MaxBrokerText)], "")
	}
	i.told.Store(&[2]string{clip(product), clip(version)})
}

// Broker implements [driver.Identified].
func (i *Identity) Broker() (product, version string) {
	if told := i.told.Load(); told != nil {
		return told[0], told[1]
	}
	return "", ""
}

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
