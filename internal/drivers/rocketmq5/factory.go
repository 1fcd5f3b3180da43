package rocketmq5

import (
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Options are the settings of this protocol. Those of RocketMQ over remoting have their meaning.
type Options struct {
	SendTimeout time.Duration `opt:"send-timeout" help:"as --send-timeout"`

	Tag string `opt:"tag" help:"tag of the messages"`

	Transactional   bool `opt:"transactional" help:"send half messages, then commit or roll back each"`
	RollbackPercent int  `opt:"rollback-percent" help:"transactional messages to roll back, 0 to 100"`
	UnknownPercent  int  `opt:"unknown-percent" help:"transactional messages to commit only when the broker checks back, 0 to 100"`

	Group string `opt:"group" help:"consumer group, if not from the destination"`

	Consumer  string        `opt:"consumer" help:"simple (messages are invisible for invisible-time) or push (until they are settled)" enum:"simple,push"`
	Invisible time.Duration `opt:"invisible-time" help:"time until a message that was not settled is delivered again, with consumer=simple"`
	PullBatch int           `opt:"pull-batch" help:"messages per request of a consumer, 1 to 32"`

	NameServer string `opt:"name-server" help:"HOST:PORT of a name server, to create topics and groups, remove groups, and count"`
}

const simple = "simple"

// Client is the name of this client of RocketMQ.
const Client = "proxy"

func defaultOptions() *Options {
	return &Options{
		SendTimeout: 3 * time.Second, Consumer: simple, Invisible: 30 * time.Second, PullBatch: 32,
	}
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	queue := driver.KindCapabilities{
		Exists: true, Group: true, Properties: true, Selector: true, Reject: true, Release: true, Delay: true,
		Redelivered: true,
	}
	topic := queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return transport.Factory(driver.Factory{
		Name: "rocketmq", Title: "Apache RocketMQ 5 (gRPC)", Client: Client, ByScheme: true, Hosts: proxy().Hosts,
		Capabilities: driver.Capabilities{TimesOut: true, TLS: true, Queue: queue, Topic: topic},
	}, proxy(), defaultOptions, checkSettings,
		func(c transport.Settings[Options]) driver.Driver { return newDriver(c) })
}

// shared are the options as those of RocketMQ over remoting.
func (o *Options) shared() *rocketmq.Options {
	return &rocketmq.Options{
		BatchSize: 1, SendTimeout: o.SendTimeout, Tag: o.Tag, Transactional: o.Transactional,
		RollbackPercent: o.RollbackPercent, UnknownPercent: o.UnknownPercent, Group: o.Group, PullBatch: o.PullBatch,
	}
}

func checkSettings(s *transport.Settings[Options], fail transport.Fail) {
	o := &s.Options
	rocketmq.CheckSettings(&s.Target, o.shared(), fail)
	if o.PullBatch > 32 {
		fail("", "option pull-batch=%d: must be 1 to 32", o.PullBatch)
	}
	if o.Invisible < 10*time.Second { // minInvisibleTimeMillsForRecv
		fail("", "option invisible-time=%s: must be at least 10s", o.Invisible)
	}
	if control(o.Tag) {
		fail("", "option tag=%s: not a legal tag", o.Tag)
	}
	if o.NameServer != "" {
		if t, err := protocol.RocketMQ().Parse("rocketmq://" + o.NameServer); err != nil || t.User != "" {
			fail("write it as HOST:PORT", "option name-server=%s: not an address", o.NameServer)
		}
	}
}
