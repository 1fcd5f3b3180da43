package goamqp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/musttest"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestCancelledSessions: an opening that is given up costs the others of its connection nothing, whether the broker has
// heard of its session or not.
func TestCancelledSessions(t *testing.T) {
	t.Parallel()
	b := musttest.Get(broker.Start(broker.Config{Listen: map[string]string{broker.AMQP: "127.0.0.1:0"}}))(t)
	defer b.Close()
	d, err := Factory().Open(t.Context(), driver.OpenOptions{
		URL: "amqp://" + b.Addr(broker.AMQP), ConnectTimeout: time.Minute, Options: Factory().NewOptions(),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(context.WithoutCancel(t.Context()))) }()
	spec := driver.ConsumerSpec{Destination: driver.Destination{Name: "Q"}, Connection: driver.Connection{Key: "shared"}}
	for i := range 40 {
		c := musttest.Get(d.Consumer(t.Context(), spec))(t)
		defer func() { require.NoError(t, c.Close(context.WithoutCancel(t.Context()))) }()
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(i)*5*time.Microsecond, cancel)
		if c, err := d.Consumer(cancelled, spec); err == nil { // in time
			require.NoError(t, c.Close(t.Context()))
		}
	}
}
