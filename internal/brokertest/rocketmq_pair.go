//go:build unix

package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// askForReplicas is RequestCode.GET_BROKER_HA_STATUS of RocketMQ 5.
const askForReplicas = 907

// LaunchRocketMQPair starts a master, with its name server, and a slave that copies what the master stores. It returns
// when the slave has caught up. The options are those of both; the role of the master is one of them, ASYNC_MASTER
// without it. Both must be closed, the slave first. The context bounds the start only.
func LaunchRocketMQPair(ctx context.Context, opts ...RocketMQOption) (master, slave *RocketMQ, err error) {
	master, err = LaunchRocketMQ(ctx, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("start the master: %w", err)
	}
	slave, err = LaunchRocketMQ(ctx, append(slices.Clone(opts), withRocketMQMaster(master))...)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the slave: %w", err), master.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, rocketManageTimeout)
	defer cancel()
	err = poll(ctx, 50*time.Millisecond, func() (bool, error) {
		n, err := master.Replicas(ctx)
		return n > 0, err
	})
	if err != nil {
		err = fmt.Errorf("wait for the slave to have caught up: %w", err)
		return nil, nil, errors.Join(err, slave.Close(), master.Close())
	}
	return master, slave, nil
}

// withRocketMQMaster starts only a broker: the slave of a master, whose name server it uses.
func withRocketMQMaster(master *RocketMQ) RocketMQOption {
	return func(c *rocketConfig) {
		WithRocketMQCluster(master, master.cfg.broker["brokerName"])(c)
		c.broker["brokerId"], c.broker["brokerRole"] = "1", "SLAVE"
	}
}

// Replicas returns how many slaves have all messages of a master, but for a few that are under way.
func (r *RocketMQ) Replicas(ctx context.Context) (int, error) {
	body, err := r.ask(ctx, r.Broker(), askForReplicas, nil)
	if err != nil {
		return 0, fmt.Errorf("ask the master for its slaves: %w", err)
	}
	var status struct {
		InSync int `json:"inSyncSlaveNums"`
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return 0, fmt.Errorf("read the answer of the master about its slaves: %w", err)
	}
	return status.InSync, nil
}
