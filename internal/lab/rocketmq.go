//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func launchRocketMQ(ctx context.Context, f *failure) (*cluster, error) {
	options := []brokertest.RocketMQOption{
		brokertest.WithRocketMQHeap("320m"), brokertest.WithRocketMQProperty("flushDiskType", "SYNC_FLUSH"),
	}
	if f.expect.soak {
		options = append(options, brokertest.WithRocketMQHeap(soakHeap))
	}
	r, err := brokertest.LaunchRocketMQ(ctx, options...)
	if err != nil {
		return nil, err
	}
	c := rocketCluster(r)
	c.title, c.close = r.Title()+", synchronous flush", r.Close
	return c, nil
}

// Values of flushDiskType and brokerRole.
const (
	syncFlush   = "SYNC_FLUSH"
	asyncFlush  = "ASYNC_FLUSH"
	syncMaster  = "SYNC_MASTER"
	asyncMaster = "ASYNC_MASTER"
)

// launchRocketMQPair starts a master and its slave. The slave does not take over: it only lets consumers read, and
// those of perfmq read from masters. The master waits until so many brokers have a message, itself included.
func launchRocketMQPair(flush, role string, replicas int) func(context.Context, *failure) (*cluster, error) {
	return func(ctx context.Context, _ *failure) (*cluster, error) {
		opts := []brokertest.RocketMQOption{
			brokertest.WithRocketMQHeap("320m"), brokertest.WithRocketMQProperty("flushDiskType", flush),
			brokertest.WithRocketMQProperty("brokerRole", role),
			brokertest.WithRocketMQProperty("inSyncReplicas", strconv.Itoa(replicas)),
		}
		master, slave, err := brokertest.LaunchRocketMQPair(ctx, opts...)
		if err != nil {
			return nil, err
		}
		c := rocketCluster(master)
		c.title, c.backup = fmt.Sprintf("%s, master and slave, %s, %s", master.Title(), flush, role), slave
		if role == syncMaster {
			c.title += fmt.Sprintf(", inSyncReplicas %d", replicas)
		}
		c.close = func() error { return errors.Join(slave.Close(), master.Close()) }
		// A slave learns some seconds later of a topic that its master has.
		c.endpoints[0].declare = func(ctx context.Context, queue string) error {
			if err := master.CreateTopic(ctx, queue, 8); err != nil {
				return err
			}
			for {
				_, err := slave.TopicMessages(ctx, queue)
				if err == nil {
					return nil
				}
				if waitErr := wait(ctx, 100*time.Millisecond); waitErr != nil {
					return fmt.Errorf("wait until the slave knows the topic: %w: %w", waitErr, err)
				}
			}
		}
		c.copied = func(ctx context.Context) (sum int64, err error) {
			for _, queue := range slices.Concat(c.live, c.kept) {
				n, err := slave.TopicMessages(ctx, queue)
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		}
		return c, nil
	}
}

// rocketCluster is a broker with its name server.
func rocketCluster(r *brokertest.RocketMQ) *cluster {
	return &cluster{
		primary: r, stored: r.TopicMessages, lasting: true,
		endpoints: []endpoint{{protocol: "rocketmq", hosts: []string{r.NameServer()}, durable: true}},
		announced: r.Broker(),
	}
}
