//go:build unix

package main

import (
	"bytes"
	"context"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func launchRocketMQ(ctx context.Context, _ *failure) (*cluster, error) {
	r, err := brokertest.LaunchRocketMQ(ctx, brokertest.WithRocketMQHeap("320m"),
		brokertest.WithRocketMQProperty("flushDiskType", "SYNC_FLUSH"))
	if err != nil {
		return nil, err
	}
	return &cluster{
		title: r.Title() + ", synchronous flush", primary: r, close: r.Close, stored: r.TopicMessages, lasting: true,
		endpoints: []endpoint{{protocol: "rocketmq", hosts: []string{r.NameServer()}, durable: true}},
		// Clients learn the broker's address from the name server.
		answers: func(ctx context.Context, c *cutter) (func([]byte) []byte, error) {
			proxied, err := c.through(ctx, r.Broker(), nil)
			if err != nil {
				return nil, err
			}
			return func(b []byte) []byte { // both have as many bytes
				return bytes.ReplaceAll(b, []byte(`"`+r.Broker()+`"`), []byte(`"`+proxied+`"`))
			}, nil
		},
	}, nil
}
