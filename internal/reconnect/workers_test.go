package reconnect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// trier is a driver.TrySender that always sends.
type trier struct {
	driver.Producer
	tried int
}

func (t *trier) TrySend(*driver.Message) bool { t.tried++; return true }

// TrySend leaves a message to Send if the connection is lost or has no TrySend.
func TestProducerTries(t *testing.T) {
	inner := new(trier)
	p := &Producer{present: inner}
	require.True(t, p.TrySend(new(driver.Message)))
	p.opening = make(chan error)
	require.False(t, p.TrySend(new(driver.Message)))
	require.Equal(t, 1, inner.tried)
	p.opening, p.present = nil, struct{ driver.Producer }{}
	require.False(t, p.TrySend(new(driver.Message)))
}
