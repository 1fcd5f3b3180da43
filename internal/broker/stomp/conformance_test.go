package stomp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/perfmq/perfmq/internal/broker/store"
	driverstomp "github.com/perfmq/perfmq/internal/drivers/stomp"
	"github.com/perfmq/perfmq/internal/drivers/stomp/stomptest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// TestConformance runs the suite of perfmq's own driver.
func TestConformance(t *testing.T) { conformance(t, nil) }

func conformance(t *testing.T, lacks map[drivertest.Feature]string, options ...string) {
	t.Helper()
	s := serve(t, store.Config{}, Options{
		Authenticate: func(user, password string) bool { return user == "u" && password == "p" },
	})
	broker := "" // of the table of features: only as the driver finds us
	if len(options) == 0 {
		broker = "the embedded broker"
	}
	drivertest.Run(t, drivertest.Config{
		Broker:  broker,
		Mode:    len(options) > 0,
		Factory: driverstomp.Factory(), URL: "stomp://" + s.addr, User: "u", Password: "p", WrongPassword: "wrong",
		Options: options, Lacks: lacks, Allocations: 5, // the broker's own are among them
		Inspect: stomptest.Broker{URL: "stomp://" + s.addr, User: "u", Password: "p", Destination: stomptest.Whole}.Inspect,
		Victim: func(t testing.TB) (string, func()) {
			victim := serve(t, store.Config{}, Options{})
			return "stomp://" + victim.addr, victim.stop
		},
		QueueCounters: func(t testing.TB, queue driver.Destination) (added, acknowledged int64) {
			d := s.store.Find(store.Address{Kind: store.KindQueue, Name: queue.Name})
			if d == nil {
				return 0, 0
			}
			stats := d.Stats()
			assert.Len(t, stats.Queues, 1)
			return int64(stats.Queues[0].Stored), int64(stats.Queues[0].Settled)
		},
	})
}
