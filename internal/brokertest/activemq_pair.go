//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
)

// LaunchActiveMQPair starts two brokers with one store on a shared file system: the master, and the slave that waits
// for the lock of the store. The master's folder has the store: both must be closed, the slave first. The context
// bounds the start only.
func LaunchActiveMQPair(ctx context.Context, opts ...ActiveMQOption) (master, slave *ActiveMQ, err error) {
	master, err = LaunchActiveMQ(ctx, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the master: %w", err)
	}
	slave, err = LaunchActiveMQ(ctx, append(opts, func(c *activemqConfig) { c.slaveOf = master })...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the slave: %w", err), master.Close())
	}
	return master, slave, nil
}
