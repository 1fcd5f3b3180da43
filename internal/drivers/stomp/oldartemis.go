package stomp

import (
	"context"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// sharesMessageIDs reports whether the subscriptions of one connection to one topic get the same message IDs, so that
// the acknowledgement of one takes the message of another: Artemis before 2.33 (ARTEMIS-4649).
func (s *session) sharesMessageIDs() bool {
	if s.dialect != artemis {
		return false
	}
	_, version, _ := strings.Cut(s.server, "/") // ActiveMQ-Artemis/2.19.0 ActiveMQ Artemis Messaging Engine
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err == nil && err2 == nil && (major < 2 || major == 2 && minor < 33)
}

// acquireFor gives a consumer its connection. Where subscriptions of a connection share message IDs, a second one to
// the same topic gets a connection that it shares with none of them.
func (d *stompDriver) acquireFor(ctx context.Context, spec *driver.ConsumerSpec, k *consumer) error {
	at := spec.Connection
	for i := 2; ; i++ {
		l, err := d.acquire(ctx, at)
		k.lease = l
		if err != nil || spec.Destination.Kind != driver.Topic || !l.Conn.sharesMessageIDs() {
			return err
		}
		if l.Conn.takeTopic(spec.Destination.Name) {
			k.topic = spec.Destination.Name
			return nil
		}
		l.Release(ctx)
		at.Key = spec.Connection.Key + "\x00" + strconv.Itoa(i)
	}
}

// takeTopic reports whether no other subscription of the connection is to that topic, and reserves it.
func (c *connection) takeTopic(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.topics[name] {
		return false
	}
	if c.topics == nil {
		c.topics = map[string]bool{}
	}
	c.topics[name] = true
	return true
}

func (c *connection) freeTopic(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.topics, name)
}
