//go:build features

package stomp

import (
	"testing"

	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These modes take part in `make features` only: see scripts/features.sh.

func TestConformanceOld(t *testing.T) { conformance(t, nil, "version=1.1", "ack=client-individual") }

// TestConformanceArtemis and the next one have the driver take us for another broker.
func TestConformanceArtemis(t *testing.T) {
	conformance(t, map[drivertest.Feature]string{
		drivertest.TransactedReceive: "the driver's dialect for Artemis has none",
		drivertest.Release:           "the driver's dialect for Artemis has none",
	}, "dialect=artemis")
}

func TestConformanceActiveMQ(t *testing.T) {
	conformance(t, map[drivertest.Feature]string{
		drivertest.SharedSubscription: "the driver's dialect for ActiveMQ Classic has none",
		drivertest.Release:            "the driver's dialect for ActiveMQ Classic has none",
	}, "dialect=activemq")
}
