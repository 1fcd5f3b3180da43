//go:build unix

package brokertest

import (
	"context"
	"errors"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/pkg/driver"
)

// jolokiaRequest is a read of attributes, a call of an operation, or a search.
type jolokiaRequest = brokerside.JolokiaRequest

// askJolokia asks a broker's JMX beans over HTTP. It adds no connection and no queue to the broker's counts, and does
// not use the clients under test. No connection is left, which tests would take for a leak.
func askJolokia(ctx context.Context, url string, r jolokiaRequest, out any) error {
	if url == "" {
		return errors.New("ask the broker's management: it was started without management")
	}
	management := brokerside.Management{URL: url, User: User, Password: Password}
	inspector, err := management.Open()
	if err != nil {
		return err
	}
	defer inspector.Close()
	return inspector.Call(ctx, r, out)
}

// noBean reports whether nothing has the name asked for.
func noBean(err error) bool { return driver.ClassOf(err) == driver.ClassNotFound }
