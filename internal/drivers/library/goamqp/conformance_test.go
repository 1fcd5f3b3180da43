//go:build unix

package goamqp_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/goamqp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// allocations is the library's cost per message that is sent and received, the embedded broker included.
const allocations = 100

func TestProbe(t *testing.T) {
	t.Parallel()
	librarytest.Probe(t, goamqp.Factory())
}

func TestConformance(t *testing.T) {
	cfg := librarytest.Embedded(t, goamqp.Factory())
	cfg.Allocations = allocations
	drivertest.Run(t, cfg)
}

// conformance runs the suite on a real broker; prefix goes before the names of destinations of a kind.
func conformance(t *testing.T, cfg drivertest.Config, prefix map[driver.Kind]string) {
	t.Helper()
	cfg.Broker, cfg.Allocations = "", allocations
	cfg.Inspect = func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
		t.Helper()
		return brokertest.InspectAMQP(t, cfg.URL, true, dest.Kind, prefix[dest.Kind]+dest.Name, false)
	}
	drivertest.Run(t, cfg)
}

func TestConformanceArtemis(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithLogin())
	cfg := librarytest.Real(goamqp.Factory(), a.Title(), a.AMQPURL())
	cfg.Mode = true // TestConformance has the rest
	cfg.Refusing, cfg.Rejected = a.Refusing, a.Rejected
	cfg.Lacks = map[drivertest.Feature]string{drivertest.Redelivered: "Artemis does not count deliveries that end with their connection"}
	conformance(t, cfg, nil)
}
