//go:build unix

package brokertest

import (
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
)

// Refusing is [drivertest.Config.Refusing]: an address that is full after some messages.
func (a *Artemis) Refusing(t testing.TB, kind driver.Kind) driver.Destination {
	const size = 20_000
	dest := driver.Destination{Kind: kind, Name: "full." + rand.Text()}
	require.NoError(t, a.SetAddressLimit(t.Context(), AddressLimit{Match: dest.Name, MaxBytes: size, Policy: PolicyFail}))
	if kind == driver.Topic { // which stores nothing without a subscription
		require.NoError(t, a.CreateQueue(t.Context(), dest.Name, dest.Name, "MULTICAST"))
	}
	return dest
}

// Rejected is [drivertest.Config.Rejected]: rejected messages go to the queue DLQ.
func (a *Artemis) Rejected(t testing.TB) int64 {
	stats, err := a.Queue(t.Context(), "DLQ")
	require.NoError(t, err)
	return stats.MessagesAdded
}
