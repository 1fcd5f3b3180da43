package store

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// text is a Content that is only a body.
type text []byte

func (t text) Size() int                    { return len(t) }
func (t text) Body() []byte                 { return t }
func (t text) Text() bool                   { return false }
func (t text) Properties() []Property       { return nil }
func (t text) Property(string) any          { return nil }
func (t text) Addressing() Addressing       { return Addressing{} }
func (t text) WithBody(body []byte) Content { return text(body) }

const normalPriority = 4

func message(body string) *Message {
	return &Message{Content: text(body), Priority: normalPriority}
}

func sendNumbers(t testing.TB, d *Destination, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		require.Equal(t, Stored, d.Send(message(strconv.Itoa(i))))
	}
}

// take returns the bodies of what c gets now, and the deliveries.
func take(c *Consumer, n int) (bodies []string, list []Delivery) {
	buf := make([]Delivery, n)
	list = buf[:c.Take(buf)]
	for _, d := range list {
		bodies = append(bodies, string(d.Message.Content.Body()))
	}
	return bodies, list
}

func consume(t testing.TB, q *Queue, filter Filter) *Consumer {
	t.Helper()
	c := musttest.Get(q.Consume(filter, func() {}))(t)
	return c
}

func queue(s *Store, name string) (*Destination, *Queue) {
	return s.Destination(driver.Destination{Kind: driver.Queue, Name: name}), s.Queue(name)
}

// purge removes the messages of a queue that no consumer holds, and returns their number.
func (q *Queue) purge() int {
	q.mu.Lock()
	n, bytes := q.sweep(nil)
	q.mu.Unlock()
	q.shrink(n, bytes)
	return int(n)
}

// unsettled returns the number of unsettled deliveries.
func unsettled(c *Consumer) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsettled.Each(0, c.unsettled.Next, func(uint64) { n++ })
	return n
}
