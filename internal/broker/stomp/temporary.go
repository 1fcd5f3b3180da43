package stomp

import (
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// temporaryPrefix begins the client's own name of a temporary queue, as in ActiveMQ and RabbitMQ.
const temporaryPrefix = "/temp-queue/"

// maxTemporary bounds the temporary queues of a connection.
const maxTemporary = 10_000

// temporary is a temporary queue. It is deleted with its connection.
type temporary struct {
	*store.Destination
	subscribed int           // number of the client's subscriptions
	implied    *subscription // by the use as an address for replies, as in RabbitMQ; nil: there is none
}

// temporary returns the temporary queue of a destination header; nil if it names another destination. It creates the
// queue at its first use.
func (c *conn) temporary(destination string) (*temporary, error) {
	name, ok := strings.CutPrefix(destination, temporaryPrefix)
	t := c.temporaries[name]
	switch {
	case !ok || t != nil:
		return t, nil
	case name == "":
		return nil, missing("destination")
	case len(c.temporaries) >= maxTemporary:
		return nil, refuse("limit reached: %d temporary queues", maxTemporary)
	case !c.account.Take(int64(len(name))):
		return nil, refuse("limit reached: %s", store.ErrNoMemory)
	}
	d, err := c.server.Store.Temporary(driver.Queue)
	if err != nil {
		return nil, refuse("limit reached: %s", err)
	}
	t = &temporary{Destination: d}
	if c.temporaries == nil {
		c.temporaries = map[string]*temporary{}
	}
	c.temporaries[name] = t
	return t, nil
}

// replyAddress returns the value of the header reply-to for others: the address of a temporary queue in place of the
// client's name. It subscribes to the queue, unless the client has.
func (c *conn) replyAddress(header []byte) ([]byte, error) {
	plain, _ := wire.Unescape(header)
	own := string(plain)
	t, err := c.temporary(own)
	if err != nil || t == nil {
		return header, err
	}
	if t.subscribed == 0 && t.implied == nil && c.byID[own] == nil {
		s := &subscription{conn: c, serial: c.serial, size: firstSize, id: own, limit: defaultPrefetch, temporary: t}
		s.prepare(own, wire.AppendEscaped(nil, own))
		if s.consumer, err = c.server.Store.ConsumeQueue(t.Address().Name, nil, s.notify); err != nil {
			return nil, cannotOpen(t.Address(), err)
		}
		t.implied = s
		c.enlist(s)
		s.notify()
	}
	return []byte(t.Address().Name), nil
}

// deleteTemporaries deletes the temporary queues of the connection.
func (c *conn) deleteTemporaries() {
	for _, t := range c.temporaries {
		t.Delete()
	}
}
