package stomp

import (
	"testing"

	"github.com/perfmq/perfmq/internal/broker/store/storetest"
	driverstomp "github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/drivers/stomp/stomptest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformance runs the suite of perfmq's own driver.
func TestConformance(t *testing.T) { conformance(t) }

func conformance(t *testing.T, options ...string) {
	t.Helper()
	s := serve(t, storetest.Limits(), Server{
		Authenticate: func(user, password string) bool { return user == "u" && password == "p" },
	})
	broker := "" // of the table of features: only as the driver finds us
	if len(options) == 0 {
		broker = "the embedded broker"
	}
	cfg := drivertest.Config{
		Broker:  broker,
		Mode:    len(options) > 0,
		Factory: driverstomp.Factory(), URL: "stomp://" + s.addr, User: "u", Password: "p", WrongPassword: "wrong",
		Options: options, Allocations: 5, // the broker's own are among them
		Inspect: stomptest.Broker{URL: "stomp://" + s.addr, User: "u", Password: "p", Destination: stomptest.Whole}.Inspect,
	}
	storetest.Configure(&cfg, s.store)
	drivertest.Run(t, cfg)
}
