//go:build unix

package goamqp_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/goamqp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// allocations is the library's cost per message that is sent and received, the embedded broker included.
const allocations = 100

func TestConformance(t *testing.T) {
	cfg := librarytest.Embedded(t, goamqp.Factory())
	cfg.Allocations = allocations
	drivertest.Run(t, cfg)
}

func TestConformanceArtemis(t *testing.T) {
	a := brokertest.StartArtemis(t, brokertest.WithLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: goamqp.Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Allocations: allocations, Refusing: a.Refusing, Rejected: a.Rejected,
		Lacks: map[drivertest.Feature]string{drivertest.Redelivered: "Artemis does not count deliveries that end with their connection"},
		Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			t.Helper()
			return brokertest.InspectAMQP(t, a.AMQPURL(), true, dest.Kind, dest.Name, false)
		},
		Victim: func(t testing.TB) (string, func()) {
			t.Helper()
			victim := brokertest.StartArtemis(t, brokertest.WithLogin(), brokertest.WithoutManagement())
			return victim.AMQPURL(), victim.Kill
		},
		IgnoreGoroutines: []goleak.Option{
			goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
			goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
		},
	})
}
