//go:build unix

package brokertest

import (
	"context"
	"errors"
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

// Queue returns the counters of a queue of a broker with
// [WithActiveMQManagement]; all zero if there is none.
func (a *ActiveMQ) Queue(ctx context.Context, name string) (DestinationStats, error) {
	return a.destination(ctx, "Queue", name)
}

// Topic returns the counters of a topic of a broker with
// [WithActiveMQManagement]; all zero if there is none.
func (a *ActiveMQ) Topic(ctx context.Context, name string) (DestinationStats, error) {
	return a.destination(ctx, "Topic", name)
}

func (a *ActiveMQ) destination(ctx context.Context, kind, name string) (s DestinationStats, err error) {
	err = a.jolo.do(ctx, jolokiaRequest{
		Type: "read",
		MBean: "org.apache.activemq:type=Broker,brokerName=" + a.cfg.name + ",destinationType=" + kind + ",destinationName=" +
			name,
		Attribute: []string{"EnqueueCount", "DequeueCount", "ExpiredCount", "QueueSize"},
	}, &s)
	if errors.Is(err, errNoBean) {
		return DestinationStats{}, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the counters of %s: %w", name, err)
	}
	return s, nil
}

// CloseAllConnections closes all connections of clients of a broker with [WithActiveMQManagement], as an operator would
// on its beans, and returns how many there were.
func (a *ActiveMQ) CloseAllConnections(ctx context.Context) (int, error) {
	var beans []string
	err := a.jolo.do(ctx, jolokiaRequest{
		Type: "search",
		MBean: "org.apache.activemq:type=Broker,brokerName=" + a.cfg.name +
			",connector=clientConnectors,connectorName=*,connectionViewType=remoteAddress,connectionName=*",
	}, &beans)
	if err != nil {
		return 0, fmt.Errorf("list the connections: %w", err)
	}
	for _, bean := range beans {
		err := a.jolo.do(ctx, jolokiaRequest{Type: "exec", MBean: bean, Operation: "stop()"}, nil)
		if err != nil && !errors.Is(err, errNoBean) {
			return 0, fmt.Errorf("close a connection: %w", err)
		}
	}
	return len(beans), nil
}
