//go:build unix

package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/musttest"
)

// TestConnections looks at the connections as an operator does on the broker's console.
func TestConnections(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	for name, c := range map[string]struct {
		args        []string
		connections int
		pattern     string
	}{
		"one each":     {[]string{"--producers", "3", "--consumers", "2"}, 5, `^perfmq-.+-%d-(producer|consumer)`},
		"shared":       {[]string{"--producers", "4", "--consumers", "1", "--shared-connections", "--threads", "2"}, 3, `^perfmq-.+-%d-`},
		"of consumers": {[]string{"--producers", "1", "--consumers", "4", "--consumer-connections", "2"}, 3, `^perfmq-.+-%d-`},
		"client IDs":   {[]string{"--producers", "2", "--consumers", "2", "--clientID", "ours"}, 4, `^ours`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := newQueue(t, a)
			p := start(t, append([]string{"amqp", "client", "--url", a.AMQPURL(), "--rate", "100", "queue://" + queue}, c.args...)...)
			p.printed("--- warmup false")
			pattern := c.pattern
			if strings.Contains(pattern, "%d") {
				pattern = fmt.Sprintf(pattern, p.cmd.Process.Pid)
			}
			list := musttest.Get(a.Connections(soon(t)))(t)
			ids := map[string]bool{}
			for _, conn := range list {
				if regexp.MustCompile(pattern).MatchString(conn.ClientID) {
					require.Equal(t, "AMQP", conn.Protocol)
					ids[conn.ClientID] = true
				}
			}
			require.Len(t, ids, c.connections, "%+v", list)
			require.Equal(t, statusInterrupted, p.interrupt().status)
			eventually(t, "they are gone", func() bool {
				list := musttest.Get(a.Connections(soon(t)))(t)
				for _, conn := range list {
					if ids[conn.ClientID] {
						return false
					}
				}
				return true
			})
		})
	}
}
