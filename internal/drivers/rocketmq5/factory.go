package rocketmq5

import (
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/drivers/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Options are the settings of this protocol. Those of RocketMQ over remoting have their meaning.
type Options struct {
	Send        string        `opt:"send" help:"async (in any order), sync (one at a time; with --group in order)" enum:"async,sync"`
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

// Values of the options.
const (
	sendAsync = "async"
	sendSync  = "sync"
	simple    = "simple"
)

// Client is the name of this client of RocketMQ.
const Client = "proxy"

func defaultOptions() *Options {
	return &Options{
		Send: sendAsync, SendTimeout: 3 * time.Second, Consumer: simple, Invisible: 30 * time.Second, PullBatch: 32,
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
		Capabilities: driver.Capabilities{TimesOut: true, TLS: true, Queue: queue, Topic: topic}, InFlight: inFlight,
	}, proxy(), defaultOptions, checkSettings,
		func(c transport.Settings[Options]) driver.Driver { return newDriver(c) })
}

// inFlight is [driver.Factory.InFlight].
func inFlight(opts any, _ *driver.ProducerSpec) driver.InFlight {
	if o, _ := opts.(*Options); o != nil && o.Send == sendSync {
		return driver.InFlight{Messages: 1, Hint: "try -o send=async, or more --producers"}
	}
	return driver.InFlight{}
}

func checkSettings(s *transport.Settings[Options], fail transport.Fail) {
	if (s.Target.User == "") != (s.Target.Password == "") {
		fail("give --user and --password", "signing needs both an access key and a secret key")
	}
	o := &s.Options
	between := func(name string, n, low, high int) {
		if n < low || n > high {
			fail("", "option %s=%d: must be %d to %d", name, n, low, high)
		}
	}
	between("rollback-percent", o.RollbackPercent, 0, 100)
	between("unknown-percent", o.UnknownPercent, 0, 100-o.RollbackPercent) // both are shares of all messages
	between("pull-batch", o.PullBatch, 1, 32)
	atLeast := func(name string, d, low time.Duration) {
		if d < low {
			fail("", "option %s=%s: must be at least %s", name, d, low)
		}
	}
	atLeast("send-timeout", o.SendTimeout, sweepEvery)
	atLeast("invisible-time", o.Invisible, 10*time.Second) // minInvisibleTimeMillsForRecv
	if o.Group != "" && !rocketmq.Rules().Legal(o.Group) {
		fail("use "+rocketmq.Rules().Names(), "option group=%s: not a legal name", o.Group)
	}
	if strings.Contains(o.Tag, "|") || control(o.Tag) || o.Tag != strings.TrimSpace(o.Tag) {
		fail("a message has one tag, without blanks around it", "option tag=%s: not a legal tag", o.Tag)
	}
	if o.NameServer != "" {
		if t, err := protocol.RocketMQ().Parse("rocketmq://" + o.NameServer); err != nil || t.User != "" {
			fail("write it as HOST:PORT", "option name-server=%s: not an address", o.NameServer)
		}
	}
	if !o.Transactional && (o.RollbackPercent|o.UnknownPercent) != 0 {
		fail("add -o transactional=true", "the percentages of outcomes need transactional messages")
	}
}
