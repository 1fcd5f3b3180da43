// Package memtest has the settings of the conformance suite for package mem.
package memtest

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/mem"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// Config returns settings with which the whole suite runs on b.
func Config(b *mem.Broker) drivertest.Config {
	healthy := mem.Options{}
	healthy.Auth = "u:p"
	var before mem.Stats // as of the last new destination
	return drivertest.Config{
		Factory: b.Factory(), User: "u", Password: "p", WrongPassword: "x", Options: []string{"auth=u:p"},
		Unreachable: "mem://unreachable", Silent: "mem://silent",
		Alone: true, Quiet: 20 * time.Millisecond, TTL: 50 * time.Millisecond, MaxBody: 1 << 20,
		Path:   func(testing.TB) drivertest.Path { return b.Line() },
		Victim: func(testing.TB) (string, func()) { return "mem://local", b.Disconnect },
		NewDestination: func(_ testing.TB, kind driver.Kind) driver.Destination {
			before = b.Stats()
			return driver.Destination{Kind: kind, Name: rand.Text()}
		},
		Inspect: func(_ testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			tap := b.Tap(dest)
			return func(int) []drivertest.Header { return headers(tap()) } // stored before they are confirmed
		},
		Subscriptions: func(_ testing.TB, topic driver.Destination) int { return b.Subscriptions(topic.Name) },
		QueueCounters: func(testing.TB, driver.Destination) (added, acknowledged int64) {
			s := b.Stats()
			return int64(s.Stored - before.Stored), int64(s.Acknowledged - before.Acknowledged) //nolint:gosec // small
		},
		Rejected: func(testing.TB) int64 { return int64(b.Stats().Refused) }, //nolint:gosec // small
		Refusing: func(t testing.TB, kind driver.Kind) driver.Destination {
			refusing := healthy
			refusing.FailCommit, refusing.Reject = 1, 2
			require.NoError(t, b.Set(refusing))
			t.Cleanup(func() { require.NoError(t, b.Set(healthy)) })
			return driver.Destination{Kind: kind, Name: rand.Text()}
		},
	}
}

func headers(list []mem.Message) []drivertest.Header {
	headers := make([]drivertest.Header, 0, len(list))
	for _, m := range list {
		h := drivertest.Header{
			Properties: map[string]string{}, Priority: m.Priority, Persistent: m.Persistent, Group: m.Group, Text: m.Text,
			TTL: m.TTL,
		}
		for _, p := range m.Properties {
			h.Properties[p.Key] = p.Value
		}
		headers = append(headers, h)
	}
	return headers
}
