package plan

import (
	"fmt"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/pkg/driver"
)

// ProducerSpecs returns the specification of each producer of the run. Producers of different destinations alternate,
// so that a rate is spread over the destinations evenly.
func (g *Group) ProducerSpecs(process string) []driver.ProducerSpec {
	if !g.Role.Produces() {
		return nil
	}
	total := g.Producers * len(g.Destinations)
	all := g.producerSpec()
	specs := make([]driver.ProducerSpec, 0, total)
	for i := range total {
		conn := i
		if g.SharedConnections {
			conn = i % g.ProducerConnections
		}
		spec := all
		spec.Connection = g.connection("producer", conn, g.ProducerBroker, process)
		spec.Destination, spec.Name = g.Destinations[i%len(g.Destinations)], g.worker("producer", i)
		specs = append(specs, spec)
	}
	return specs
}

// producerSpec returns what the producers have in common.
func (g *Group) producerSpec() driver.ProducerSpec {
	spec := g.ProducerSpec
	spec.MaxPending = g.Pending()
	for _, v := range g.Mix {
		if g.Keys > 0 {
			v.Group = load.KeyName(0, g.Keys)
		}
		spec.Variants = append(spec.Variants, v.Variant)
	}
	return spec
}

// ConsumerSpecs returns the specification of each consumer of the run.
func (g *Group) ConsumerSpecs(process string) []driver.ConsumerSpec {
	if !g.Role.Consumes() {
		return nil
	}
	var specs []driver.ConsumerSpec
	for _, dest := range g.Destinations {
		for sub := range max(g.Shared, 1) {
			for range g.Consumers {
				specs = append(specs, g.consumer(len(specs), sub, dest, process))
			}
		}
	}
	return specs
}

// consumerSpec returns what the consumers of one kind of destinations have in common.
func (g *Group) consumerSpec(kind driver.Kind) driver.ConsumerSpec {
	spec := g.ConsumerSpec
	if g.ConsumerFail.IsZero() {
		spec.Failing = driver.Accept
	}
	spec.Durable = spec.Durable && kind == driver.Topic
	spec.Shared = g.Shared > 0 && kind == driver.Topic
	return spec
}

func (g *Group) consumer(i, sub int, dest driver.Destination, process string) driver.ConsumerSpec {
	conn := i
	switch {
	case g.Shared > 0 && g.ClientID != "":
		// A shared subscription belongs to a client ID, and a client ID to one connection.
		conn = i / g.Consumers
	case g.ConsumerConnections > 0:
		conn = i % g.ConsumerConnections
	}
	spec := g.consumerSpec(dest.Kind)
	spec.Connection = g.connection("consumer", conn, g.ConsumerBroker, process)
	spec.Destination, spec.Name = dest, g.worker("consumer", i)
	switch {
	case spec.Shared:
		spec.Subscription = g.subscription(dest, sub)
	case spec.Durable:
		spec.Subscription = g.subscription(dest, i)
	}
	return spec
}

// worker returns the name of a producer or consumer: its group's name, or its role on a command line, with its index.
func (g *Group) worker(role string, index int) string {
	if g.Name != "" {
		role = g.Name
	}
	return fmt.Sprintf("%s-%d", role, index)
}

// subscription returns the name of a subscription at the broker. It is the same in every run.
func (g *Group) subscription(topic driver.Destination, index int) string {
	if g.Name != "" {
		return fmt.Sprintf("perfmq-%s-%s-%d", g.Name, topic.Name, index)
	}
	return fmt.Sprintf("perfmq-%s-%d", topic.Name, index)
}

func (g *Group) connection(role string, index int, b *Broker, process string) driver.Connection {
	worker := g.worker(role, index)
	c := driver.Connection{Key: worker, Name: process + "-" + worker, Order: g.HostsOf(index, len(b.Hosts))}
	if g.ClientID != "" {
		c.ClientID = g.ClientID + "-" + worker
	}
	return c
}
