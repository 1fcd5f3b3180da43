package amqp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinkNames(t *testing.T) {
	for _, c := range []struct {
		s    subscription
		want []string
	}{
		{subscription{name: "s"}, []string{"s", "s|2", "s|3"}},
		{subscription{name: "s", durable: true}, []string{"s", "s", "s"}},
		{subscription{name: "s", durable: true, shared: true}, []string{"s|1", "s|2", "s|3"}},
		{subscription{name: "s", shared: true, global: true}, []string{"s|global1", "s|global2", "s|global3"}},
	} {
		conn := &connection{names: map[string]bool{}}
		var got []string
		for range 3 {
			s := c.s
			s.reserve(conn)
			got = append(got, s.link)
		}
		require.Equal(t, c.want, got)
	}
}
