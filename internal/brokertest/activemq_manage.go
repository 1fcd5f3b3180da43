//go:build unix

package brokertest

import (
	"context"
	"fmt"
)

// jolokiaAgentCoordinates is the agent that serves a Java program's beans over HTTP.
const jolokiaAgentCoordinates = "org.jolokia:jolokia-jvm:1.7.2"

// DestinationStats are the broker's own counters of a queue or topic since the
// broker started.
type DestinationStats struct {
	EnqueueCount int64 // messages that it got
	DequeueCount int64 // deliveries that were acknowledged
	ExpiredCount int64
	QueueSize    int64 // messages that are there now; of a topic, not yet acknowledged by all
}

// Queue returns the counters of a queue of a broker with [WithActiveMQManagement]. They are zero if the queue does
// not exist.
func (a *ActiveMQ) Queue(ctx context.Context, name string) (DestinationStats, error) {
	return a.destination(ctx, "Queue", name)
}

// Topic returns the counters of a topic of a broker with [WithActiveMQManagement]. They are zero if the topic does
// not exist.
func (a *ActiveMQ) Topic(ctx context.Context, name string) (DestinationStats, error) {
	return a.destination(ctx, "Topic", name)
}

func (a *ActiveMQ) destination(ctx context.Context, kind, name string) (s DestinationStats, err error) {
	err = askJolokia(ctx, a.ManagementURL(), jolokiaRequest{
		Type: "read",
		Bean: "org.apache.activemq:type=Broker,brokerName=" + a.cfg.name + ",destinationType=" + kind +
			",destinationName=" + name,
		Attribute: []string{"EnqueueCount", "DequeueCount", "ExpiredCount", "QueueSize"},
	}, &s)
	if noBean(err) {
		return DestinationStats{}, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the counters of %s: %w", name, err)
	}
	return s, nil
}

// CloseAllConnections closes all connections of clients of a broker with [WithActiveMQManagement], as an operator
// would on its beans, and returns their number.
func (a *ActiveMQ) CloseAllConnections(ctx context.Context) (int, error) {
	var beans []string
	err := askJolokia(ctx, a.ManagementURL(), jolokiaRequest{
		Type: "search",
		Bean: "org.apache.activemq:type=Broker,brokerName=" + a.cfg.name +
			",connector=clientConnectors,connectorName=*,connectionViewType=remoteAddress,connectionName=*",
	}, &beans)
	if err != nil {
		return 0, fmt.Errorf("list the connections: %w", err)
	}
	for _, bean := range beans {
		err := askJolokia(ctx, a.ManagementURL(), jolokiaRequest{Type: "exec", Bean: bean, Operation: "stop()"}, nil)
		if err != nil && !noBean(err) {
			return 0, fmt.Errorf("close a connection: %w", err)
		}
	}
	return len(beans), nil
}
