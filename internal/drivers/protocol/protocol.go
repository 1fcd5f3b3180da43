// Package protocol has the common parts of the drivers of one protocol, for all their clients: the syntax of URLs, the
// parts of a factory that follow from it, the meaning of brokers' texts over STOMP, and names that mean many
// destinations.
package protocol

import (
	"context"
	"net"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// AMQP returns the protocol with the ports assigned by IANA.
func AMQP() *transport.Protocol {
	return &transport.Protocol{
		Title: "AMQP", Schemes: []string{"amqp", "amqps", "amqp+ssl", "tcp", "ssl"},
		Encrypted: []string{"amqps", "amqp+ssl", "ssl"}, PlainPort: "5672", TLSPort: "5671",
	}
}

// STOMP returns the protocol with the port assigned by IANA, and the usual port for TLS.
func STOMP() *transport.Protocol {
	return &transport.Protocol{
		Title: "STOMP", Schemes: []string{"stomp", "stomp+ssl", "stomps", "tcp", "ssl"},
		Encrypted: []string{"stomp+ssl", "stomps", "ssl"}, PlainPort: "61613", TLSPort: "61614",
	}
}

// RocketMQ returns the protocol: its hosts are name servers, in lists as RocketMQ's own tools write them, and a user is
// an access key.
func RocketMQ() *transport.Protocol {
	return &transport.Protocol{
		Title: "RocketMQ", Schemes: []string{"rocketmq", "rocketmq+ssl"}, Encrypted: []string{"rocketmq+ssl"},
		PlainPort: "9876", TLSPort: "9876", Lists: true,
		Absent: "is the name server, or the broker that it names, reachable there? See also -o broker-address",
	}
}

// Features returns all features: topics have subscriptions, too.
func Features() (queue, topic driver.KindCapabilities) {
	queue = driver.KindCapabilities{
		Exists: true, Persistent: true, TTL: true, Priority: true, Group: true, Properties: true, Selector: true,
		Transactions: true, TransactedReceive: true, Credit: true, Reject: true, Release: true, Redelivered: true,
		Delay: true, Text: true,
	}
	topic = queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return queue, topic
}

// Factory completes f for drivers with the options O. Further reports mistakes in the settings beside those that
// [transport.Check] finds.
func Factory[O any](
	f driver.Factory, p *transport.Protocol, options func() *O, further func(*transport.Settings[O], transport.Fail),
	open func(transport.Settings[O]) driver.Driver,
) driver.Factory {
	check := func(opts driver.OpenOptions) (transport.Settings[O], error) {
		return transport.Check(p, opts, *options(), further)
	}
	f.Diagnose = p.Diagnose
	f.Schemes, f.DefaultURL = p.Schemes, p.Schemes[0]+"://localhost:"+p.PlainPort
	f.NewOptions = func() any { return options() }
	f.Check = func(opts driver.OpenOptions) error {
		_, err := check(opts)
		return err
	}
	f.Open = func(_ context.Context, opts driver.OpenOptions) (driver.Driver, error) {
		s, err := check(opts)
		if err != nil {
			return nil, err
		}
		return open(s), nil
	}
	return f
}

// Dial opens a connection to the first host that accepts it, tried in the given order. open gets a connection to one
// host: conn is raw, or TLS on top of it. If open fails, Dial closes the connection.
func Dial[C, O any](
	ctx context.Context, p *transport.Protocol, s *transport.Settings[O], order []int,
	open func(ctx context.Context, host transport.Endpoint, conn net.Conn, raw *transport.Metered) (C, error),
) (C, error) {
	return transport.First(ctx, s.Target.Hosts, order, s.ConnectTimeout,
		func(ctx context.Context, host transport.Endpoint) (c C, err error) {
			conn, raw, err := p.Dial(ctx, host, s.Target.TLS, s.TLS)
			if err != nil {
				return c, err
			}
			if c, err = open(ctx, host, conn, raw); err != nil {
				_ = raw.Close() // not TLS, which would first send a close alert to a peer that may not read
				return c, p.ConnectError(host, err)
			}
			return c, nil
		})
}

// Silent is the hint about a broker that does not answer. Ends are the settings that end a silent connection; empty if
// there are none.
func Silent(ends string) string {
	hint := "is the broker overloaded or paused? --send-timeout ends messages without an answer"
	if ends != "" {
		hint += ", and " + ends + " a silent connection"
	}
	return hint
}
