package rocketmq

import (
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/library"
	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the settings of this protocol.
type Options struct {
	// Send is how messages are sent. With batch, one request carries BatchSize of them.
	Send        string        `opt:"send" help:"async (in any order), sync (one at a time; with --group in order), oneway (no answer), batch" enum:"async,sync,oneway,batch"`
	BatchSize   int           `opt:"batch-size" help:"messages per request with send=batch, 1 to 1024"`
	BatchLinger time.Duration `opt:"batch-linger" help:"send an incomplete batch after this time"`
	SendTimeout time.Duration `opt:"send-timeout" help:"as --send-timeout"`

	Tag string `opt:"tag" help:"tag of the messages"`

	Transactional   bool `opt:"transactional" help:"send half messages, then commit or roll back each"`
	RollbackPercent int  `opt:"rollback-percent" help:"transactional messages to roll back, 0 to 100"`
	UnknownPercent  int  `opt:"unknown-percent" help:"transactional messages to commit only when the broker checks back, 0 to 100"`

	Group string `opt:"group" help:"consumer group, if not from destination or subscription"`

	PullBatch int `opt:"pull-batch" help:"messages per pull, 1 to 1024 (the broker's limit is 32 by default)"`

	CreateTopic   bool   `opt:"create-topic" help:"create topics that do not exist"`
	Queues        int    `opt:"queues" help:"queues of a created topic, or required of an existing one; 0: 8, or any"`
	BrokerAddress string `opt:"broker-address" help:"HOST:PORT instead of the name server's, for a broker in a container"`
}

// Values of the options.
const (
	sendAsync  = "async"
	sendSync   = "sync"
	sendOneWay = "oneway"
	sendBatch  = "batch"

	defaultQueues = 8
)

func defaultOptions() *Options {
	return &Options{
		Send: sendAsync, BatchSize: 16, BatchLinger: time.Millisecond, SendTimeout: 3 * time.Second,
		PullBatch: 32, CreateTopic: true,
	}
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	queue := driver.KindCapabilities{
		Exists: true, Group: true, Properties: true, Selector: true, Reject: true, Release: true, Delay: true,
	}
	topic := queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return protocol.Factory(driver.Factory{
		Name: "rocketmq", Title: "Apache RocketMQ (remoting)", Client: driver.Native,
		Capabilities: driver.Capabilities{TimesOut: true, TLS: true, Queue: queue, Topic: topic}, InFlight: inFlight,
	}, protocol.RocketMQ(), defaultOptions, checkSettings,
		func(c transport.Settings[Options]) driver.Driver { return newDriver(c) })
}

// inFlight is [driver.Factory.InFlight].
func inFlight(opts any, _ *driver.ProducerSpec) driver.InFlight {
	o, _ := opts.(*Options)
	if o != nil && o.Send == sendSync {
		return driver.InFlight{Messages: 1, Hint: "try -o send=async, or more --producers"}
	}
	return driver.InFlight{Unanswered: o != nil && o.Send == sendOneWay}
}

func checkSettings(s *transport.Settings[Options], fail transport.Fail) {
	if (s.Target.User == "") != (s.Target.Password == "") {
		fail("give --user and --password", "signing needs both an access key and a secret key")
	}
	o := &s.Options
	o.checkRanges(fail)
	if o.Group != "" && !rules().Legal(o.Group) {
		fail("use "+rules().Names(), "option group=%s: not a legal name", o.Group)
	}
	if strings.Contains(o.Tag, "|") || !wire.CarriesProperty(o.Tag) || o.Tag != strings.TrimSpace(o.Tag) {
		fail("a message has one tag, without blanks around it", "option tag=%s: not a legal tag", o.Tag)
	}
	if o.Transactional && (o.Send == sendBatch || o.Send == sendOneWay) {
		fail("", "transactional messages can be neither in a batch nor one-way")
	}
	if !o.Transactional && (o.RollbackPercent|o.UnknownPercent) != 0 {
		fail("add -o transactional=true", "the percentages of outcomes need transactional messages")
	}
	if o.BrokerAddress != "" {
		t, err := protocol.RocketMQ().Parse("rocketmq://" + o.BrokerAddress)
		if err != nil || t.Hosts[0].String() != o.BrokerAddress { // a user, a second host, no port
			fail("write it as HOST:PORT", "option broker-address=%s: not an address", o.BrokerAddress)
		}
	}
}

func (o *Options) checkRanges(fail transport.Fail) {
	between := func(name string, n, low, high int) {
		if n < low || n > high {
			fail("", "option %s=%d: must be %d to %d", name, n, low, high)
		}
	}
	between("batch-size", o.BatchSize, 1, 1024)
	between("rollback-percent", o.RollbackPercent, 0, 100)
	between("unknown-percent", o.UnknownPercent, 0, 100-o.RollbackPercent) // both are shares of all messages
	between("pull-batch", o.PullBatch, 1, 1024)
	between("queues", o.Queues, 0, maxQueues)
	atLeast := func(name string, d, low time.Duration) {
		if d < low {
			fail("", "option %s=%s: must be at least %s", name, d, low)
		}
	}
	atLeast("send-timeout", o.SendTimeout, sweepEvery)
	atLeast("batch-linger", o.BatchLinger, 0)
}

// rules are those of brokers for topics and groups (TopicValidator).
func rules() library.Rules { return library.Rules{Signs: "%|_-", Most: 120} }
