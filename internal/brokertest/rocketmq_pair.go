//go:build unix

package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// askForReplicas is RequestCode.GET_BROKER_HA_STATUS of RocketMQ 5.
const askForReplicas = 907

// LaunchRocketMQPair starts a master, with its name server, and a slave that copies its messages. It returns when the
// slave has caught up. Both brokers get the options; without the option brokerRole the master is ASYNC_MASTER. Both
// must be closed, the slave first. The context bounds the start only.
func LaunchRocketMQPair(ctx context.Context, opts ...RocketMQOption) (master, slave *RocketMQ, err error) {
	if master, slave, err = launchTwo(ctx, LaunchRocketMQ, opts, withRocketMQMaster); err != nil {
		return nil, nil, err
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

// withRocketMQMaster starts only a broker: the slave of a master, with the same name server.
func withRocketMQMaster(master *RocketMQ) RocketMQOption {
	return func(c *rocketConfig) {
		WithRocketMQCluster(master, master.cfg.broker["brokerName"])(c)
		c.broker["brokerId"], c.broker["brokerRole"] = "1", "SLAVE"
	}
}

// Replicas returns the number of slaves that have all messages of a master, but for the last few.
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
