//go:build unix

package main

import (
	"context"
	"errors"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// smallHeap does for all but a backlog, of which a broker keeps a part in memory; hugeHeap is for an Artemis with a
// million messages: with less it does little but collect garbage.
const (
	smallHeap = "256M"
	largeHeap = "768M"
	soakHeap  = "1G"
	hugeHeap  = "3G"
)

// fullAt is how many messages a queue takes that is to be full: reached after some seconds.
const fullAt = 1000

func launchArtemis(ctx context.Context, f *failure) (*cluster, error) {
	options := []brokertest.ArtemisOption{brokertest.WithHeap(smallHeap)}
	limit := brokertest.AddressLimit{Match: "full.#", MaxMessages: fullAt}
	switch {
	case f.expect.blocked:
		limit.Policy = brokertest.PolicyBlock
	case f.expect.refused:
		limit.Policy = brokertest.PolicyFail
	}
	if limit.Policy != "" {
		options = append(options, brokertest.WithAddressLimit(limit))
	}
	switch {
	case f.load.backlog >= 1_000_000:
		options = append(options, brokertest.WithHeap(hugeHeap))
	case f.load.backlog > 0:
		options = append(options, brokertest.WithHeap(largeHeap))
	}
	if f.expect.soak {
		options = append(options, brokertest.WithHeap(soakHeap))
	}
	a, err := brokertest.LaunchArtemis(ctx, options...)
	if err != nil {
		return nil, err
	}
	depth := func(ctx context.Context, queue string) (int64, error) { return artemisDepth(ctx, a, queue) }
	set := func() settings { return login().with("management-url", a.ManagementURL()) }
	return &cluster{
		title: a.Title(), primary: a, close: a.Close, stored: depth, left: depth, dismiss: a.CloseAllConnections,
		endpoints: []endpoint{
			{protocol: "amqp", hosts: []string{hostOf(a.AMQPURL())}, settings: set(), prefix: "full."},
			{protocol: "stomp", hosts: []string{hostOf(a.STOMPURL())}, settings: set(), prefix: "full."},
		},
	}, nil
}

func artemisDepth(ctx context.Context, a *brokertest.Artemis, queue string) (int64, error) {
	q, err := a.Queue(ctx, queue)
	if errors.Is(err, brokertest.ErrNoQueue) { // one without messages, which died with them
		return 0, nil
	}
	return q.MessageCount, err
}
