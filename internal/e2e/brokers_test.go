//go:build unix

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// told returns the products of the brokers of a run, as they reported them: "amqp: product version".
func told(t *testing.T, r *result) (list []string) {
	t.Helper()
	for _, b := range r.summary.Details.Brokers {
		list = append(list, b.Protocol+": "+b.Product+" "+b.Version)
		require.Regexp(t, `(?m)^--- broker: +`+regexp.QuoteMeta(b.Product+" "+b.Version)+"$", r.stdout)
	}
	return list
}

// TestBrokersAreNamed: product and version are in the summary, whatever the protocol.
func TestBrokersAreNamed(t *testing.T) {
	t.Parallel()
	a := shared.Artemis(t)
	version := strings.TrimPrefix(a.Title(), "Artemis ")
	for _, c := range []struct{ url, protocol, client, product string }{
		{a.AMQPURL(), "amqp", "native", "apache-activemq-artemis"},
		{a.AMQPURL(), "amqp", "library", "apache-activemq-artemis"},
		{a.STOMPURL(), "stomp", "native", "ActiveMQ-Artemis"},
		{a.STOMPURL(), "stomp", "library", "ActiveMQ-Artemis"},
	} {
		t.Run("Artemis "+c.protocol+" "+c.client, func(t *testing.T) {
			t.Parallel()
			r := run(t, limit, c.protocol, "client", "--url", c.url, "--client", c.client, "--message-count", "10", "queue://"+newQueue(t, a))
			require.Equal(t, []string{c.protocol + ": " + c.product + " " + version}, told(t, &r))
		})
	}
}
