package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/pkg/result"
)

func TestWriteBrokers(t *testing.T) {
	t.Parallel()
	artemis := result.Broker{Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.40.0"}
	of := func(b result.Broker, name, side string) result.Broker { b.Name, b.Side = name, side; return b }
	for want, list := range map[string][]result.Broker{
		"": nil,
		"--- broker: apache-activemq-artemis 2.40.0\n": {artemis},
		"--- broker:              mystery\n":           {{Product: "mystery"}},
		"--- broker: apache-activemq-artemis 2.40.0 (producers)\n--- broker:       RabbitMQ 4.0.5 (consumers)\n": {
			of(artemis, "", "producers"), {Product: "RabbitMQ", Version: "4.0.5", Side: "consumers"},
		},
		"--- broker: apache-activemq-artemis 2.40.0 (a)\n--- broker: apache-activemq-artemis 2.40.0 (b)\n--- broker:       RabbitMQ 4.0.5 (c)\n": {
			of(artemis, "a", ""), of(artemis, "b", ""), of(artemis, "a", ""), {Product: "RabbitMQ", Version: "4.0.5", Name: "c"},
		},
		"--- broker: a\\x1b[2J; --- broker: fake 1\n": {{Product: "a\x1b[2J\n--- broker: fake", Version: "1"}},
	} {
		var b strings.Builder
		writeBrokers(&b, list)
		assert.Equal(t, want, b.String())
	}
}
