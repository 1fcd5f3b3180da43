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

// TestDestinationNames: the characters that docs/protocols.md names, as a user gives them: each name is one
// destination, whose messages arrive and are counted by the broker, or it is refused. The conformance suite has more
// names, on all brokers.
func TestDestinationNames(t *testing.T) {
	t.Parallel()
	artemis := shared.Artemis(t)
	all := []string{"PUB one", "a b c", "p%q", "p%20q", "grün", "名前", "x>y", "q.>", "m,n", "s*t", "q.*", "u#v", "q.#", "h?i"}
	for _, c := range []struct {
		name    string
		args    []string
		refused string // the names, joined by |
		because string
	}{
		{"embedded AMQP", []string{"amqp", "client", "--embedded"}, "", ""},
		{"embedded STOMP", []string{"stomp", "client", "--embedded"}, "", ""},
		{
			"embedded RocketMQ",
			[]string{"rocketmq", "client", "--embedded"},
			"PUB one|a b c|grün|名前|x>y|q.>|m,n|s*t|q.*|u#v|q.#|h?i", "is not a legal name of a topic",
		},
		{
			"Artemis over AMQP",
			[]string{"amqp", "client", "--url", artemis.AMQPURL()},
			"s*t|q.*|u#v|q.#|h?i", "name",
		},
		{
			"Artemis over STOMP",
			[]string{"stomp", "client", "--url", artemis.STOMPURL()},
			"s*t|q.*|u#v|q.#|h?i", "name",
		},
	} {
		for _, kind := range []string{"queue://", "topic://"} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				prefix := fmt.Sprintf("%sn%d-", kind, counter.Add(1))
				args := slices.Concat(c.args, []string{"--message-count", "560", "--max-pending", "1", "--verify"})
				refused := strings.Split(c.refused, "|")
				for _, name := range all {
					if !slices.Contains(refused, name) {
						args = append(args, prefix+name)
					}
				}
				r := run(t, limit, args...)
				require.Equal(t, statusOK, r.status, r.stderr)
				v := r.verification(t)
				assert.EqualValues(t, 560, v.Total.Once)
				if c.args[0] != "stomp" || c.args[2] == "--embedded" { // over STOMP Artemis is not asked
					assert.Contains(t, countLines(&r), equalCounts(560)[0])
				}
				for _, name := range refused[:min(2, len(refused))] { // the others are refused in the driver's own tests
					if name == "" {
						continue
					}
					r := run(t, limit, slices.Concat(c.args, []string{"--message-count", "1", prefix + name})...)
					assert.Equal(t, statusUsage, r.status)
					assert.Contains(t, r.stderr, c.because)
					assert.Contains(t, r.stderr, "hint: ")
				}
			})
		}
	}
}
