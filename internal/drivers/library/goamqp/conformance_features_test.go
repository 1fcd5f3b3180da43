//go:build unix && features

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

// These brokers and modes take part in `make features` only: see scripts/features.sh.

func TestConformanceSettled(t *testing.T) {
	cfg := librarytest.Embedded(t, goamqp.Factory())
	cfg.Options, cfg.Allocations = []string{"settle=at-most-once"}, allocations
	cfg.AtMostOnce, cfg.SettledReceive, cfg.Mode = true, true, true
	drivertest.Run(t, cfg)
}

func TestConformanceActiveMQ(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin())
	drivertest.Run(t, drivertest.Config{
		Factory: goamqp.Factory(), URL: a.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Allocations: allocations, IgnoreGoroutines: harness(),
		Lacks: map[drivertest.Feature]string{drivertest.SharedSubscription: "ActiveMQ Classic has no shared subscriptions"},
		Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			t.Helper()
			return brokertest.InspectAMQP(t, a.AMQPURL(), true, dest.Kind, dest.String(), false)
		},
	})
}

func TestConformanceQpid(t *testing.T) {
	q := brokertest.StartQpid(t)
	drivertest.Run(t, drivertest.Config{
		Factory: goamqp.Factory(), URL: q.AMQPURL(), User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Allocations: allocations, IgnoreGoroutines: harness(),
		Lacks: map[drivertest.Feature]string{
			drivertest.Reject:                 "Broker-J delivers rejected messages again unless the queue has a limit of attempts",
			drivertest.Group.On(driver.Topic): "subscriptions of Broker-J have no message groups",
		},
		Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			t.Helper()
			address := dest.Name
			if dest.Kind == driver.Topic {
				address = "amq.topic/" + dest.Name
			}
			return brokertest.InspectAMQP(t, q.AMQPURL(), true, dest.Kind, address, false)
		},
	})
}

func harness() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
	}
}
