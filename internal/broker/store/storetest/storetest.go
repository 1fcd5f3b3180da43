// Package storetest has the answers of a store to the questions of the conformance suite, see [drivertest.Config].
package storetest

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// Limits are the limits of a store that can refuse messages, see [Configure].
func Limits() store.Config { return store.Config{Full: store.Reject} }

// Configure sets the functions that look into the store of an embedded broker, which was made with [Limits].
func Configure(cfg *drivertest.Config, s *store.Store) {
	cfg.QueueCounters = func(_ testing.TB, dest driver.Destination) (added, acknowledged int64) {
		d := s.Find(store.Address{Kind: store.KindQueue, Name: dest.Name})
		if d == nil {
			return 0, 0
		}
		q := d.Stats().Queues[0]
		return int64(q.Stored), int64(q.Settled) //nolint:gosec // a test's
	}
	cfg.Rejected = func(testing.TB) int64 {
		_, total, _ := s.Page(0)
		return int64(total.Rejected) //nolint:gosec // a test's
	}
	cfg.Refusing = func(t testing.TB, kind driver.Kind) driver.Destination {
		dest := driver.Destination{Kind: kind, Name: rand.Text()}
		if kind == driver.Topic { // which has no room to run out of without a subscription
			sub, err := s.Subscribe(dest.Name, store.Subscription{}, func() {})
			require.NoError(t, err)
			t.Cleanup(func() { sub.Close(false) })
		}
		s.SetFaults(store.Faults{Full: true})
		t.Cleanup(func() { s.SetFaults(store.Faults{}) })
		return dest
	}
}

// Content is the content of a message of no protocol.
type Content struct {
	Text string
	Head store.Header
}

// Size implements [store.Content].
func (c Content) Size() int { return len(c.Text) }

// Body implements [store.Content].
func (c Content) Body() []byte { return []byte(c.Text) }

// Header implements [store.Content].
func (c Content) Header() store.Header { return c.Head }

// Property implements [store.Content].
func (c Content) Property(key string) any { return c.Head.Lookup(key) }

// WithBody implements [store.Content].
func (c Content) WithBody(body []byte) store.Content { return Content{string(body), c.Head} }
