//go:build unix

package brokertest

import (
	"context"
	"slices"
)

// LaunchActiveMQPair starts two brokers with one store on a shared file system: the master, and the slave that waits
// for the lock of the store. The master's folder has the store: both must be closed, the slave first. The context
// bounds the start only.
func LaunchActiveMQPair(ctx context.Context, opts ...ActiveMQOption) (master, slave *ActiveMQ, err error) {
	return launchTwo(ctx, LaunchActiveMQ, opts, func(master *ActiveMQ) ActiveMQOption {
		return func(c *activemqConfig) { c.slaveOf = master }
	})
}

// LaunchActiveMQNetwork starts two brokers with stores of their own that pass messages on to each other: each where
// there are consumers for them. The second one connects to the first, again whenever the connection is lost. Both must
// be closed. The context bounds the start only.
func LaunchActiveMQNetwork(ctx context.Context, opts ...ActiveMQOption) (first, second *ActiveMQ, err error) {
	return launchTwo(ctx, LaunchActiveMQ, append(slices.Clone(opts), inNetwork("first", nil)),
		func(first *ActiveMQ) ActiveMQOption { return inNetwork("second", first) })
}

func inNetwork(name string, other *ActiveMQ) ActiveMQOption {
	return func(c *activemqConfig) { c.network, c.name, c.bridgeTo = true, name, other }
}

// bridgePort is where the broker connects to another one of its network; 0 if it does not.
func (a *ActiveMQ) bridgePort() int {
	if a.cfg.bridgeTo == nil {
		return 0
	}
	return a.cfg.bridgeTo.ports.openWire
}
