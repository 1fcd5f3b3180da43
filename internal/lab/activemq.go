//go:build unix

package main

import (
	"context"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func launchActiveMQ(ctx context.Context, f *failure) (*cluster, error) {
	options := []brokertest.ActiveMQOption{brokertest.WithActiveMQHeap(smallHeap), brokertest.WithActiveMQManagement()}
	if f.expect.blocked || f.expect.refused {
		// Both protocols have the store in common.
		options = append(options, brokertest.WithActiveMQSetting("journalMaxFileLength", "1mb"),
			brokertest.WithActiveMQSetting("storeUsage", "4mb"))
	}
	if f.expect.refused {
		options = append(options, brokertest.WithActiveMQSetting("sendFailIfNoSpace", "true"))
	}
	if f.load.backlog > 0 {
		options = append(options, brokertest.WithActiveMQHeap(largeHeap),
			brokertest.WithActiveMQSetting("memoryUsage", "64mb"))
	}
	a, err := brokertest.LaunchActiveMQ(ctx, options...)
	if err != nil {
		return nil, err
	}
	return activemqAlone("KahaDB", a), nil
}

func activemqAlone(store string, a *brokertest.ActiveMQ) *cluster {
	depth := func(ctx context.Context, queue string) (int64, error) { return activemqDepth(ctx, a, queue) }
	set := func() settings { return login().with("management-url", a.ManagementURL()) }
	return &cluster{
		title: a.Title() + ", " + store, primary: a, close: a.Close, stored: depth, left: depth,
		dismiss: func(ctx context.Context) error {
			_, err := a.CloseAllConnections(ctx)
			return err
		},
		endpoints: []endpoint{
			{protocol: "amqp", hosts: []string{hostOf(a.AMQPURL())}, settings: set()},
			{protocol: "stomp", hosts: []string{hostOf(a.STOMPURL())}, settings: set()},
		},
	}
}

func activemqDepth(ctx context.Context, a *brokertest.ActiveMQ, queue string) (int64, error) {
	q, err := a.Queue(ctx, queue)
	return q.QueueSize, err
}
