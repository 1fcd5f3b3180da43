//go:build unix && features

package goamqp_test

import (
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/drivers/library/goamqp"
	"github.com/perfmq/perfmq/internal/drivers/library/librarytest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// These brokers take part in `make features` only: see scripts/features.sh.

func TestConformanceActiveMQ(t *testing.T) {
	a := brokertest.StartActiveMQ(t, brokertest.WithActiveMQLogin())
	cfg := librarytest.Real(goamqp.Factory(), a.Title(), a.AMQPURL())
	conformance(t, cfg, map[driver.Kind]string{driver.Queue: "queue://", driver.Topic: "topic://"})
}

func TestConformanceQpid(t *testing.T) {
	q := brokertest.StartQpid(t)
	cfg := librarytest.Real(goamqp.Factory(), q.Title(), q.AMQPURL())
	cfg.Lacks = map[drivertest.Feature]string{
		drivertest.Reject:                 "Broker-J delivers rejected messages again unless the queue has a limit of attempts",
		drivertest.Group.On(driver.Topic): "subscriptions of Broker-J have no message groups",
	}
	conformance(t, cfg, map[driver.Kind]string{driver.Topic: "amq.topic/"})
}
