//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func launchRabbitMQ(ctx context.Context, f *failure) (*cluster, error) {
	r, err := brokertest.LaunchRabbitMQ(ctx, brokertest.WithRabbitMQManagement())
	if err != nil {
		return nil, err
	}
	if f.expect.refused {
		policy := fmt.Sprintf(`{"max-length": %d, "overflow": "reject-publish"}`, fullAt)
		if _, err := r.Ctl(ctx, "set_policy", "full", "^full", policy, "--apply-to", "queues"); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	set := func() settings { return login().with("management-url", r.ManagementURL()) }
	depth := rabbitDepth(r)
	return &cluster{
		title: r.Title(), primary: r, close: r.Close, stored: depth, left: depth,
		alarm: func(ctx context.Context, on bool) error {
			limit := "0.4"
			if on {
				limit = "0.000001"
			}
			_, err := r.Ctl(ctx, "set_vm_memory_high_watermark", limit)
			return err
		},
		endpoints: []endpoint{
			{protocol: "amqp", hosts: []string{hostOf(r.AMQPURL())}, settings: set(), prefix: "full."},
			{protocol: "stomp", hosts: []string{hostOf(r.STOMPURL())}, settings: set(), prefix: "full."},
		},
	}, nil
}

// rabbitDepth asks a queue itself: the counts of the management plugin are seconds old.
func rabbitDepth(r *brokertest.RabbitMQ) func(context.Context, string) (int64, error) {
	return func(ctx context.Context, queue string) (int64, error) {
		text, err := r.Ctl(ctx, "list_queues", "name", "messages")
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(text) {
			if name, n, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == queue {
				return strconv.ParseInt(n, 10, 64)
			}
		}
		return 0, fmt.Errorf("rabbitmqctl lists no queue %s: %s", queue, text)
	}
}
