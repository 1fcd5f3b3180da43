package plan

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Connections is the role of a group that opens connections as its load.
const Connections Role = "connections"

// Opening is the load of a group of connections.
type Opening struct {
	// Connections is the exact number of connections to open; 0 means no limit.
	Connections uint64 `set:"count,daily" roles:"connections" section:"Load" none:"no limit" help:"exact number of connections to open"`
	// Hold is the time for which all connections are open together; with Churn, each for itself.
	Hold time.Duration `set:"hold,daily" roles:"connections" default:"0s" help:"keep the connections after the last has opened; with --churn, each after its own opening"`
	// Churn closes each connection after Hold, while others open.
	Churn bool `set:"churn,daily" roles:"connections" needs:"hold" help:"close each connection after --hold while others open, until --duration or --count"`
	// Messages is the number of messages that each connection sends.
	Messages int `set:"messages,daily" roles:"connections" default:"0" range:"0..1000000" help:"messages of 1 KiB that each connection sends, one after the other"`
	// Attach is what is opened on each connection: producer, consumer or both; empty for the usual.
	Attach string `set:"attach" roles:"connections" words:"consumer,producer,both" none:"consumer; both with --messages" help:"open a consumer, a producer or both on the destination; without a destination, the connection alone"`
}

// Attached returns what is opened on each connection of the group.
func (g *Group) Attached() (producer, consumer bool) {
	at := g.Attach
	switch {
	case len(g.Destinations) == 0:
		return false, false
	case at == "" && g.Messages > 0:
		at = "both"
	}
	return at == "producer" || at == "both", at != "producer"
}

// Default numbers of openings in progress: brokers refuse floods, and an open loop hides no wait.
const (
	atOnceClosed = 16
	atOnceOpen   = 1000
)

// SetAtOnce sets the number of openings in progress of a group of connections to the usual one.
func (g *Group) SetAtOnce() {
	if g.MaxPending = atOnceClosed; g.Rated() {
		g.MaxPending = atOnceOpen
	}
}

// ConnectionSpec returns connection number n of the group, and what is opened on it.
func (g *Group) ConnectionSpec(n uint64, process string) (
	c driver.Connection, producer *driver.ProducerSpec, consumer *driver.ConsumerSpec,
) {
	index := int(n) //nolint:gosec // no run opens more
	c = g.connection("connection", index, g.ProducerBroker, process)
	sends, receives := g.Attached()
	if sends {
		producer = new(g.producerSpec())
		producer.Name, producer.Destination = c.Key, g.Destinations[index%len(g.Destinations)]
		producer.MaxPending = 1
	}
	if receives {
		d := g.Destinations[index%len(g.Destinations)]
		consumer = new(g.consumerSpec(d.Kind))
		consumer.Name, consumer.Destination = c.Key, d
	}
	return c, producer, consumer
}

// opening finds the mistakes of a group of connections in a step.
func (v *validator) opening(g *Group, s *Step) {
	v.group = g
	f := v.driver(g.ProducerBroker)
	sends, _ := g.Attached()
	_, ends := g.Rate.End()
	v.refuse(g.Rate.Random(), "leave --arrivals poisson out", "--arrivals poisson: connections open at even times")
	v.wrong(g.Rate.Relative != nil, Excludes("the role connections", "--rate "+g.Rate.String()))
	v.wrong(g.Connections == 0 && !ends && s.Duration == 0 && !g.Rated(), Needs("connections", "--count or --duration"))
	v.wrong(g.Churn && !g.Rated(), Needs("--churn", "--rate"))
	v.wrong(g.Churn && g.Connections == 0 && !ends && s.Duration == 0, Needs("--churn", "--duration or --count"))
	v.wrong(len(g.Destinations) == 0 && (g.Messages > 0 || g.Attach != ""),
		Needs(map[bool]string{true: "--messages", false: "--attach"}[g.Messages > 0], "a destination"))
	v.wrong(len(g.Destinations) > 0 && g.Messages > 0 && !sends, Excludes("--messages", "--attach consumer"))
	v.refuse(len(g.Destinations) == 0 && !f.Capabilities.Connects, "name a destination: queue://NAME",
		"%s opens no connection without a destination", f.Spoken())
	v.wrong(v.verify && g.Messages > 0, Excludes("--verify", "--messages"))
}

// openings returns the groups of connections of a step.
func (s *Step) openings() (list []*Group) {
	return slices.DeleteFunc(slices.Clone(s.Groups), func(g *Group) bool { return g.Role != Connections })
}

// opens returns the figures that a group of connections will have.
func (g *Group) opens() result.Role {
	sends, receives := g.Attached()
	return threshold.Openings | threshold.Producers.If(sends && g.Messages > 0) |
		threshold.Consumers.If(receives && g.Messages > 0)
}
