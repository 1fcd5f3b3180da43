package stomp

import (
	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// address parses a destination header; without a prefix it is a queue.
func address(name string) (driver.Destination, error) {
	a, _ := store.ParseAddress(name)
	if a.Name == "" {
		return a, missing("destination")
	}
	return a, nil
}

// maxKnown bounds conn.known.
const maxKnown = 1000

// destination returns the destination of a SEND frame.
func (c *conn) destination(name []byte) (*store.Destination, error) {
	if d := c.known[string(name)]; d != nil {
		return d, nil
	}
	plain, _ := wire.Unescape(name)
	a, err := address(string(plain))
	if err != nil {
		return nil, err
	}
	d, err := c.server.Store.Open(a)
	if err != nil {
		return nil, cannotOpen(a, err)
	}
	if len(c.known) >= maxKnown {
		clear(c.known)
	}
	c.known[string(name)] = d
	return d, nil
}
