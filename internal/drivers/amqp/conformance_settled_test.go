//go:build unix

package amqp

import (
	"maps"
	"testing"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// settledLacks adds to the features that a broker lacks the ones that settled messages rule out.
func settledLacks(lacks map[drivertest.Feature]string) map[drivertest.Feature]string {
	all := maps.Clone(lacks)
	if all == nil {
		all = map[drivertest.Feature]string{}
	}
	all[drivertest.Transactions] = "transactions are confirmed by their commit"
	all[drivertest.TransactedReceive] = "a broker forgets what it sends settled"
	return all
}

// conformanceSettled runs the suite with messages that are sent and received settled, on a broker that has passed it
// otherwise: on Artemis always, on others in make features.
func conformanceSettled(t *testing.T, url string, d dialect, lacks map[drivertest.Feature]string, maxBody int) {
	t.Helper()
	t.Run("settled", func(t *testing.T) {
		drivertest.Run(t, drivertest.Config{
			Factory: Factory(), URL: url, User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
			Options: []string{"settle=" + settleAtMostOnce, "max-frame-size=66000"}, MaxBody: maxBody,
			Mode: true, AtMostOnce: true, SettledReceive: true, Lacks: settledLacks(lacks),
			Inspect:          inspect(url, d),
			IgnoreGoroutines: harnessGoroutines(),
		})
	})
}
