package amqp_test

import (
	"testing"
	"time"

	driveramqp "github.com/perfmq/perfmq/internal/drivers/amqp"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

func TestConformance(t *testing.T) {
	check := func(user, password string) bool { return user == brokertest.User && password == brokertest.Password }
	r := start(t, storetest.Limits(), amqp.Server{Authenticate: check})
	cfg := drivertest.Config{
		Broker:  "the embedded broker",
		Factory: driveramqp.Factory(), URL: "amqp://" + r.addr, User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Quiet: 100 * time.Millisecond, MaxBody: 1 << 20, // TestSizes has more
		// allocations of the broker, which is in the process: TestAllocations in package drivers/amqp counts the
		// driver's.
		Allocations: 20,
		Inspect: func(t testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			t.Helper()
			return brokertest.InspectAMQP(t, "amqp://"+r.addr, true, dest.Kind, dest.Name, false)
		},
	}
	storetest.Configure(&cfg, r.store)
	drivertest.Run(t, cfg)
}
