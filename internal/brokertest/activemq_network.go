//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// LaunchActiveMQNetwork starts two brokers with stores of their own that pass messages on to each other: each where
// there are consumers for them. The second one connects to the first, again whenever the connection is lost. Both must
// be closed. The context bounds the start only.
func LaunchActiveMQNetwork(ctx context.Context, opts ...ActiveMQOption) (first, second *ActiveMQ, err error) {
	opts = slices.Clip(opts)
	first, err = LaunchActiveMQ(ctx, append(opts, inNetwork("first", nil))...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the first broker: %w", err)
	}
	second, err = LaunchActiveMQ(ctx, append(opts, inNetwork("second", first))...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the second broker: %w", err), first.Close())
	}
	return first, second, nil
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
