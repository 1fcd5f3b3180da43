package words

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/pkg/result"
)

// TestHead: the head of a run has its brokers, load, length and start, as far as the result has them.
func TestHead(t *testing.T) {
	t.Parallel()
	const artemis = `"broker":{"protocol":"amqp","url":"amqp://user@localhost:5672?x=1"}`
	for _, c := range []struct {
		name, plan string
		brokers    []result.Broker
		want       []string
	}{
		{
			"a command line", `{"steps":[{"duration":"20s","groups":[{"role":"client","rate":"500","message-size":1024,"persistent":true,"producers":1,"consumers":1,
				"destinations":["queue://A"],` + artemis + `}]}]}`,
			[]result.Broker{{Protocol: "amqp", Product: "apache-activemq-artemis", Version: "2.56.0"}},
			[]string{"Artemis 2.56.0, AMQP, localhost:5672", "500 msg/s, 1 KiB, persistent, 1 producer, 1 consumer", "20 s", "27 Nov 2026 22:35 UTC"},
		},
		{
			"two brokers", `{"steps":[{"groups":[{"role":"client","message-count":7,"body":{"bytes":1000},"commit-interval":3,"producers":2,"consumers":1,"shared":2,
				"destinations":["topic://A","topic://B"],` + artemis + `,"consumer-broker":{"protocol":"rocketmq","url":"rocketmq://h:9876"}}]}]}`,
			[]result.Broker{{Protocol: "rocketmq", Side: "consumers", Product: "RocketMQ", Version: "5.3.1"}, {Protocol: "amqp", Side: "consumers", Product: "x"}},
			[]string{
				"AMQP, localhost:5672 and RocketMQ 5.3.1, h:9876",
				"as fast as possible, 7 messages, 1000 bytes, transactions of 3, 4 producers, 4 consumers, 2 destinations", "20 s", "27 Nov 2026 22:35 UTC",
			},
		},
		{
			"sizes of a distribution", `{"steps":[{"groups":[{"role":"producer","message-size":"lognormal:2KiB:1:64KiB","body":{"bytes":3301},"producers":1,` + artemis + `}]}]}`,
			nil,
			[]string{"AMQP, localhost:5672", "as fast as possible, lognormal:2KiB:1:64KiB, 3301 bytes on average, 1 producer", "20 s", "27 Nov 2026 22:35 UTC"},
		},
		{
			"steps", `{"steps":[{"duration":"1s","groups":[{"role":"producer","rate":"ramp 0 to 9 for 1m","producers":1,"messages":[{},{}],` + artemis + `}]},
				{"duration":"2s","groups":[{"role":"producer","rate":"9","producers":1,"messages":[{},{}],` + artemis + `}]}]}`,
			nil,
			[]string{"AMQP, localhost:5672", "2 steps, 2 kinds of messages, 1 producer", "3 s", "27 Nov 2026 22:35 UTC"},
		},
		{
			"groups", `{"steps":[{"duration":"99s","groups":[{"role":"producer","rate":"pause 1s","producers":1,` + artemis + `},{"role":"consumer","consumers":1,` + artemis + `}]}]}`,
			nil,
			[]string{"AMQP, localhost:5672", "2 groups", "20 s", "27 Nov 2026 22:35 UTC"},
		},
		{"no plan", `[]`, nil, []string{"20 s", "27 Nov 2026 22:35 UTC"}},
	} {
		r := &result.Result{Head: result.Head{Plan: []byte(c.plan), Start: 1795818900e6}, End: 1795818900e6 + 20.003e6, Brokers: c.brokers}
		assert.Equal(t, c.want, Head(r), c.name)
	}
	assert.Equal(t, []string{"perfmq v1"}, Head(&result.Result{Head: result.Head{Versions: result.Versions{Perfmq: "v1"}}}))
}
