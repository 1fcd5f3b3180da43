package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
)

// TestBrokers: brokers are recognized by their greetings over AMQP and STOMP.
func TestBrokers(t *testing.T) {
	for product, versions := range map[string]map[string]string{
		"apache-activemq-artemis":   {"2.56.0": protocol.Artemis},
		"ActiveMQ":                  {"5.18.3": protocol.ActiveMQ, "6.1.0": protocol.ActiveMQ},
		"RabbitMQ":                  {"3.10.8": protocol.RabbitMQ3, "4.1.0": protocol.RabbitMQ, "": protocol.RabbitMQ, "10.0": protocol.RabbitMQ},
		"Apache Qpid Broker-J Core": {"9.2.0": protocol.BrokerJ},
		"qpid-cpp":                  {"1.0": ""},
		"":                          {"": ""},
	} {
		for version, want := range versions {
			require.Equal(t, want, protocol.Broker(product, version), "%s %s", product, version)
		}
	}
	for server, want := range map[string]string{
		"ActiveMQ-Artemis/2.19.0 ActiveMQ Artemis Messaging Engine": protocol.Artemis,
		"ActiveMQ/5.18.3":           protocol.ActiveMQ,
		"RabbitMQ/3.10.8":           protocol.RabbitMQ,
		"perfmq embedded broker/v1": protocol.Perfmq,
		"other/1":                   "",
	} {
		require.Equal(t, want, protocol.STOMPBroker(server), server)
	}
	for version, before := range map[string]bool{
		"2.19.0": true, "2.32.0": true, "1.5.6": true, "2": true, "2.33.0": false, "2.56.0": false, "3.0.0": false, "": false, "x.y": false,
	} {
		require.Equal(t, before, protocol.Before(version, 2, 33), version)
	}
}
