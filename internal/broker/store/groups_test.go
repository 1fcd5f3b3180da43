package store

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestManyGroups: groups without end cost no memory without end, and still have one consumer each.
func TestManyGroups(t *testing.T) {
	const n = 70_000
	d, q := queue(New(Config{}), "Q")
	c := [2]*Consumer{consume(t, q, nil), consume(t, q, nil)}
	owners := map[string]int{}
	buf := make([]Delivery, 5)
	for round := range 2 {
		for i := range n {
			m := message("x")
			m.Group = strconv.Itoa(i)
			d.Send(m)
			for who := 0; who < len(c) && i%10 == 9; who++ {
				for got := c[who].Take(buf); got > 0; got = c[who].Take(buf) {
					for _, e := range buf[:got] {
						if round == 0 {
							owners[e.Message.Group] = who
						} else if owners[e.Message.Group] != who {
							t.Fatalf("group %s went to another consumer", e.Message.Group)
						}
					}
					c[who].AcceptThrough(buf[got-1].ID)
				}
			}
		}
	}
	assert.Len(t, owners, n)
	assert.LessOrEqual(t, len(q.owners), 1<<16)
	assert.Zero(t, q.Stats().Depth)
	c[0].Close(false)
	c[1].Close(false)
	assert.Empty(t, q.owners)
}
