//go:build unix

package brokertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// RabbitMQCluster is RabbitMQ over several nodes, which share one epmd.
type RabbitMQCluster struct {
	Nodes []*RabbitMQ // the first one was there first
}

// LaunchRabbitMQCluster starts nodes that are one cluster, one after the other: about seven seconds for each. Queues
// that clients declare without a type are quorum queues, with a replica on each of the first three nodes. The caller
// must Close it. The context bounds the start only.
func LaunchRabbitMQCluster(ctx context.Context, nodes int, opts ...RabbitMQOption) (*RabbitMQCluster, error) {
	c := &RabbitMQCluster{}
	for i := range nodes {
		each := opts
		if i > 0 {
			each = append(slices.Clone(opts), withRabbitMQCluster(c.Nodes[0]))
		}
		r, err := LaunchRabbitMQ(ctx, each...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start node %d of %d: %w", i+1, nodes, err), c.Close())
		}
		c.Nodes = append(c.Nodes, r)
	}
	// RabbitMQ 3.10 has no command and no key of its configuration for that.
	const quorum = `rabbit_misc:execute_mnesia_transaction(fun() -> rabbit_vhost:update(<<"/">>,
		fun(V) -> vhost:merge_metadata(V, #{default_queue_type => <<"quorum">>}) end) end).`
	if _, err := c.Nodes[0].Ctl(ctx, "eval", quorum); err != nil {
		return nil, errors.Join(fmt.Errorf("make quorum queues the default: %w", err), c.Close())
	}
	return c, nil
}

// withRabbitMQCluster makes a node join the cluster of the first one, and use its epmd and cookie.
func withRabbitMQCluster(first *RabbitMQ) RabbitMQOption {
	return func(c *rabbitmqConfig) { c.join = first }
}

// Ctl runs rabbitmqctl on the first node that is alive; see [RabbitMQ.Ctl].
func (c *RabbitMQCluster) Ctl(ctx context.Context, args ...string) (string, error) {
	for _, r := range c.Nodes {
		if r.Alive() {
			return r.Ctl(ctx, args...)
		}
	}
	return "", errors.New("run rabbitmqctl: no node of the cluster is alive")
}

// Close kills all nodes and removes their folders.
func (c *RabbitMQCluster) Close() error {
	var errs []error
	for _, r := range slices.Backward(c.Nodes) { // the first one's epmd ends with it
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// home returns the folder that has the cookie, which all nodes of a cluster must share.
func (r *RabbitMQ) home() string {
	if r.cfg.join != nil {
		return r.cfg.join.dir
	}
	return r.seen(r.dir)
}

// discovery adds to a configuration where the cluster is that the node joins at its first start.
func (r *RabbitMQ) discovery(conf map[string]string) {
	if r.cfg.join == nil {
		return
	}
	conf["cluster_formation.peer_discovery_backend"] = "classic_config"
	conf["cluster_formation.classic_config.nodes.1"] = r.cfg.join.node()
	conf["cluster_formation.classic_config.nodes.2"] = r.node()
}
