// Package memtest has the settings of the conformance suite for package mem.
package memtest

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest/mem"
)

// Config returns settings with which the whole suite runs on b.
func Config(b *mem.Broker) drivertest.Config {
	healthy := mem.Options{}
	healthy.Auth = "u:p"
	b.Set(healthy)
	var tapped sync.Map // headers of the messages of inspected destinations
	b.OnStore = func(dest driver.Destination, m mem.Message) {
		if headers, ok := tapped.Load(dest); ok {
			tapped.Store(dest, append(headers.([]drivertest.Header), header(m)))
		}
	}
	return drivertest.Config{
		Factory: b.Factory(), User: "u", Password: "p", WrongPassword: "x",
		Alone: true, Quiet: 20 * time.Millisecond, TTL: 50 * time.Millisecond, MaxBody: 1 << 20,
		Path: func(testing.TB) drivertest.Path { return b.Line() },
		NewDestination: func(_ testing.TB, kind driver.Kind) driver.Destination {
			return driver.Destination{Kind: kind, Name: rand.Text()}
		},
		Inspect: func(_ testing.TB, dest driver.Destination) func(int) []drivertest.Header {
			tapped.Store(dest, []drivertest.Header(nil))
			return func(int) []drivertest.Header { // stored before they are confirmed
				headers, _ := tapped.Load(dest)
				return headers.([]drivertest.Header)
			}
		},
		Subscriptions: func(_ testing.TB, topic driver.Destination) int { return b.Subscriptions(topic.Name) },
		Rejected:      func(testing.TB) int64 { return int64(b.Stats().Refused) }, //nolint:gosec // small
		Refusing: func(t testing.TB, kind driver.Kind) driver.Destination {
			refusing := healthy
			refusing.FailCommit, refusing.Reject = 1, 2
			b.Set(refusing)
			t.Cleanup(func() { b.Set(healthy) })
			return driver.Destination{Kind: kind, Name: rand.Text()}
		},
	}
}

func header(m mem.Message) drivertest.Header {
	h := drivertest.Header{
		Properties: map[string]string{}, Priority: m.Priority, Persistent: m.Persistent, Group: m.Group, Text: m.Text,
		TTL: m.TTL,
	}
	for _, p := range m.Properties {
		h.Properties[p.Key] = p.Value
	}
	return h
}
