//go:build unix

package librarytest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/driver/drivertest"
)

// Real returns the configuration of the suite for a broker with a login.
func Real(f driver.Factory, title, url string) drivertest.Config {
	return drivertest.Config{
		Factory: f, URL: url, User: brokertest.User, Password: brokertest.Password, WrongPassword: "wrong",
		Broker: title, IgnoreGoroutines: Harness(),
	}
}

// Harness are the goroutines of the brokers' harness, which outlive a sub-test.
func Harness() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("github.com/perfmq/perfmq/internal/brokertest.(*process).run"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
	}
}

// Managed asks a broker for its own counters over HTTP; of topics, if the broker has those.
func Managed(t *testing.T, url string, topics bool) func(driver.Kind) driver.Inspector {
	t.Helper()
	h, err := (&brokerside.Management{URL: url, User: brokertest.User, Password: brokertest.Password}).Open()
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return func(kind driver.Kind) driver.Inspector {
		if kind == driver.Topic && !topics {
			return nil
		}
		return h
	}
}
