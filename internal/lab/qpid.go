//go:build unix

package main

import (
	"context"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func launchQpid(ctx context.Context, _ *failure) (*cluster, error) {
	q, err := brokertest.LaunchQpid(ctx, brokertest.WithQpidManagement())
	if err != nil {
		return nil, err
	}
	return &cluster{
		title: q.Title(), primary: q, close: q.Close, stored: q.QueueDepth, left: q.QueueDepth,
		dismiss: func(ctx context.Context) error {
			_, err := q.CloseAllConnections(ctx)
			return err
		},
		endpoints: []endpoint{{protocol: "amqp", hosts: []string{hostOf(q.AMQPURL())}, settings: login()}},
	}, nil
}
