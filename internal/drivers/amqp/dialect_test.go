package amqp

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/amqp"
	"github.com/perfmq/perfmq/pkg/driver"
)

func TestAddress(t *testing.T) {
	queue, topic := driver.Destination{Name: "a/b c%.d"}, driver.Destination{Kind: driver.Topic, Name: "a.b/c"}
	own := driver.Destination{Name: "/amq/queue/mine"}
	for _, c := range []struct {
		dialect           dialect
		queue, topic, own string
	}{
		{artemis, "a/b c%.d", "a.b/c", "/amq/queue/mine"},
		{plain, "a/b c%.d", "a.b/c", "/amq/queue/mine"},
		{activemq, "queue://a/b c%.d", "topic://a.b/c", "queue:///amq/queue/mine"},
		{brokerj, "a/b c%.d", "amq.topic/a.b/c", "/amq/queue/mine"},
		{rabbitmq, "/queues/a%2Fb%20c%25.d", "/exchanges/amq.topic/a.b%2Fc", "/amq/queue/mine"},
		{rabbitmq3, "/queue/a%2Fb c%.d", "/topic/a.b%2Fc", "/amq/queue/mine"},
	} {
		require.Equal(t, c.queue, c.dialect.address(queue), c.dialect)
		require.Equal(t, c.topic, c.dialect.address(topic), c.dialect)
		require.Equal(t, c.own, c.dialect.address(own), c.dialect)
	}
}

// TestDialectRefuses: settings that a broker would not honour are refused before it is asked.
func TestDialectRefuses(t *testing.T) {
	topic := driver.Destination{Kind: driver.Topic, Name: "t"}
	for name, c := range map[string]struct {
		spec driver.ConsumerSpec
		by   []dialect
	}{
		"plain":    {by: nil},
		"selector": {spec: driver.ConsumerSpec{Selector: "a = 1"}, by: []dialect{rabbitmq, rabbitmq3}},
		"topic":    {spec: driver.ConsumerSpec{Destination: topic}, by: []dialect{rabbitmq, rabbitmq3}},
		"shared":   {spec: driver.ConsumerSpec{Destination: topic, Shared: true}, by: []dialect{activemq, rabbitmq, rabbitmq3}},
	} {
		for _, d := range []dialect{artemis, activemq, rabbitmq, rabbitmq3, plain} {
			requireRefused(t, slices.Contains(c.by, d), d.checkConsumer(&c.spec, defaultOptions()), "%s by %s", name, d)
		}
	}
	for name, c := range map[string]struct {
		name    string
		variant driver.Variant
		by      []dialect
	}{
		"plain":        {"q", driver.Variant{Priority: -1}, nil},
		"group":        {"q", driver.Variant{Priority: -1, Group: "g"}, []dialect{rabbitmq, rabbitmq3}},
		"priority":     {"q", driver.Variant{Priority: 0}, []dialect{rabbitmq3}},
		"own priority": {"/amq/queue/q", driver.Variant{}, nil},
	} {
		spec := driver.ProducerSpec{Destination: driver.Destination{Name: c.name}, Variants: []driver.Variant{{Priority: -1}, c.variant}}
		for _, d := range []dialect{artemis, activemq, rabbitmq, rabbitmq3, plain} {
			requireRefused(t, slices.Contains(c.by, d), d.checkProducer(&spec, defaultOptions()), "%s by %s", name, d)
		}
	}
}

func requireRefused(t *testing.T, want bool, err error, format string, args ...any) {
	t.Helper()
	if !want {
		require.NoErrorf(t, err, format, args...)
		return
	}
	require.Equalf(t, driver.ClassUnsupported, driver.ClassOf(err), format, args...)
	require.NotEmptyf(t, driver.HintOf(err), format, args...)
}

func TestRedelivered(t *testing.T) {
	for _, c := range []struct {
		header wire.Header
		d      dialect
		want   bool
	}{
		{wire.Header{DeliveryCount: 1}, artemis, true},
		{wire.Header{FirstAcquirer: false}, artemis, false},
		{wire.Header{FirstAcquirer: false}, rabbitmq3, true},
		{wire.Header{FirstAcquirer: true}, rabbitmq3, false},
		{wire.Header{FirstAcquirer: false}, rabbitmq, true},
		{wire.Header{FirstAcquirer: true}, rabbitmq, false},
	} {
		require.Equal(t, c.want, c.d.redelivered(&c.header), "%+v %s", c.header, c.d)
	}
}

// TestDecodeError: ActiveMQ Classic closes connections with a decode-error when it fails itself; others mean that we
// broke the protocol.
func TestDecodeError(t *testing.T) {
	for d, want := range map[dialect]string{
		activemq: "the broker failed at a frame", artemis: "we broke the protocol", plain: "we broke the protocol",
	} {
		err := d.endOf("the broker closed the connection", false, driver.ClassConnectionLost, &wire.Error{
			Condition: wire.CondDecode, Description: "Could not process AMQP commands",
		})
		require.Equal(t, driver.ClassConnectionLost, driver.ClassOf(err), "%s", d)
		require.ErrorContains(t, err, want+": Could not process AMQP commands (amqp:decode-error)")
	}
}
