//go:build unix

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDestinationNames: the characters that docs/protocols.md names, as a user gives them. A name is either one
// destination, with messages that arrive and are counted by the broker, or refused. The conformance suite has more
// names, on all brokers.
func TestDestinationNames(t *testing.T) {
	t.Parallel()
	artemis := shared.Artemis(t)
	all := []string{"PUB one", "a b c", "p%q", "p%20q", "grün", "名前", "x>y", "q.>", "m,n", "s*t", "q.*", "u#v", "q.#", "h?i"}
	for _, c := range []struct {
		protocol, kind string
		args           []string
		refused        string // the names, joined by |
		because        string
	}{
		{"rocketmq", "queue://", []string{"--embedded"}, "PUB one|a b c|grün|名前|x>y|q.>|m,n|s*t|q.*|u#v|q.#|h?i", "a name has letters"},
		{"amqp", "topic://", []string{"--url", artemis.AMQPURL()}, "s*t|q.*|u#v|q.#|h?i", "name"},
		{"stomp", "queue://", []string{"--url", artemis.STOMPURL()}, "s*t|q.*|u#v|q.#|h?i", "name"},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			prefix := fmt.Sprintf("%sn%d-", c.kind, counter.Add(1))
			client := append([]string{c.protocol, "client"}, c.args...)
			args := append(slices.Clone(client), "--message-count", "560", "--max-pending", "1", "--verify")
			refused := strings.Split(c.refused, "|")
			for _, name := range all {
				if !slices.Contains(refused, name) {
					args = append(args, prefix+name)
				}
			}
			r := run(t, limit, args...)
			require.Equal(t, statusOK, r.status, r.stderr)
			assert.EqualValues(t, 560, r.verification(t).Total.Once)
			if c.protocol != "stomp" { // over it Artemis is not asked
				assert.Contains(t, countLines(&r), equalCounts(560)[0])
			}
			for _, name := range refused[:2] { // the others are refused in the driver's own tests
				r := run(t, limit, append(slices.Clone(client), "--message-count", "1", prefix+name)...)
				assert.Equal(t, statusUsage, r.status)
				assert.Contains(t, r.stderr, c.because)
				assert.Contains(t, r.stderr, "hint: ")
			}
		})
	}
}
