package stomp

import (
	"strings"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
)

// temporaryPrefix begins the client's own name of a temporary queue, as in ActiveMQ.
const temporaryPrefix = "/temp-queue/"

// maxTemporary bounds the temporary queues of a connection.
const maxTemporary = 10_000

// temporary returns the temporary queue of a destination header; nil if it names another destination. It creates the
// queue at its first use. It is deleted with its connection.
func (c *conn) temporary(destination string) (*store.Destination, error) {
	name, ok := strings.CutPrefix(destination, temporaryPrefix)
	d := c.temporaries[name]
	switch {
	case !ok || d != nil:
		return d, nil
	case name == "":
		return nil, missing("destination")
	case len(c.temporaries) >= maxTemporary:
		return nil, refuse("limit reached: %d temporary queues", maxTemporary)
	case !c.account.Take(int64(len(name))):
		return nil, refuse("limit reached: %s", store.ErrNoMemory)
	}
	d, err := c.server.Store.Temporary()
	if err != nil {
		return nil, refuse("limit reached: %s", err)
	}
	c.temporaries[name] = d
	return d, nil
}

// replyAddress returns the value of the header reply-to for others: the address of a temporary queue in place of the
// client's name.
func (c *conn) replyAddress(header []byte) ([]byte, error) {
	plain, _ := wire.Unescape(header)
	d, err := c.temporary(string(plain))
	if err != nil || d == nil {
		return header, err
	}
	return []byte(d.Address().Name), nil
}
