package rocketmq

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
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
		RequestReply: true, DynamicReply: true,
	}
	topic := queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return transport.Factory(driver.Factory{
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
	CheckSettings(&s.Target, &s.Options, fail)
}

// CheckSettings checks the settings, those of the proxy's driver, too.
func CheckSettings(t *transport.Target, o *Options, fail transport.Fail) {
	if (t.User == "") != (t.Password == "") {
		fail("give --user and --password", "signing needs both an access key and a secret key")
	}
	o.checkRanges(fail)
	if o.Group != "" && !Rules().Legal(o.Group) {
		fail("use "+Rules().Names(), "option group=%s: not a legal name", o.Group)
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

// Rules are those of brokers for topics and groups (TopicValidator).
func Rules() library.Rules { return library.Rules{Signs: "%|_-", Most: 120} }

// membership is the consumer group of a consumer.
type membership struct {
	group string
	// passing groups belong to one run: they start at the next message and are deleted when their last member leaves.
	passing bool
	// alone: the group belongs to one consumer, and ends with it.
	alone bool
	// fromNext: a new group starts at the next message sent instead of at the first one stored.
	fromNext bool
}

// membershipOf chooses the group. A queue is a topic with one group that all its consumers share and that stays as long
// as the topic: the group's offsets make it a queue. A subscription is a group of its own.
func (o *Options) membershipOf(spec *driver.ConsumerSpec, unique string) membership {
	m := membership{}
	filter := ""
	if spec.Selector != "" { // all members of a group must have the same filter
		filter = fmt.Sprintf("-%08x", fold(spec.Selector))
	}
	switch {
	case o.Group != "":
		m.group, m.fromNext = o.Group, spec.Destination.Kind == driver.Topic
	case spec.Destination.Kind == driver.Queue:
		m.group = groupName("perfmq-queue-" + spec.Destination.Name + filter)
	case spec.Durable || spec.Shared:
		name := spec.Subscription
		if spec.Connection.ClientID != "" {
			name = spec.Connection.ClientID + "-" + name
		}
		m.group, m.fromNext = groupName("perfmq-sub-"+spec.Destination.Name+"-"+name+filter), true
		m.passing = !spec.Durable || !spec.KeepSubscription
	default:
		m.group, m.fromNext, m.passing = groupName("perfmq-run-"+spec.Destination.Name+"-"+unique), true, true
		m.alone = true
	}
	return m
}

// GroupOf is the group of a consumer, with these options; unique is a text of its own for one without a name. FromNext:
// a new one starts at the next message sent. Passing: it is deleted with its last member.
func (o *Options) GroupOf(spec *driver.ConsumerSpec, unique string) (group string, fromNext, passing bool) {
	m := o.membershipOf(spec, unique)
	return m.group, m.fromNext, m.passing
}

// groupName makes a legal name from any text: if the text contains illegal characters, or is too long, these become _,
// it is cut to 100 bytes, and a hash of the whole text is appended.
func groupName(text string) string {
	if Rules().Legal(text) {
		return text
	}
	legal := strings.Map(func(r rune) rune {
		if r < 128 && Rules().Legal(string(r)) {
			return r
		}
		return '_'
	}, text)
	return fmt.Sprintf("%s-%08x", legal[:min(len(legal), 100)], fold(text))
}

func fold(text string) uint32 {
	h := uint32(2_166_136_261) // FNV-1a
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16_777_619
	}
	return h
}

// ParseSelector parses tag:A || B, a filter by tags, or else an SQL92 expression.
func ParseSelector(selector string) wire.Subscription {
	s := wire.Subscription{Expression: "*", Kind: wire.KindTag, Tags: []string{}, Codes: []int32{}}
	tags, ok := strings.CutPrefix(selector, "tag:")
	if !ok && selector != "" {
		s.Expression, s.Kind = strings.TrimPrefix(selector, "sql:"), wire.KindSQL
		return s
	}
	for tag := range strings.SplitSeq(tags, "||") {
		if tag = strings.TrimSpace(tag); tag != "" && tag != "*" {
			s.Tags, s.Codes = append(s.Tags, tag), append(s.Codes, wire.HashCode([]byte(tag)))
		}
	}
	if len(s.Tags) > 0 {
		s.Expression = strings.Join(s.Tags, " || ")
	}
	return s
}

// takes reports whether a message with this tag matches. Brokers compare only hashes of tags.
func (c *consumer) takes(tag []byte) bool {
	tags := c.filter.Tags
	return len(tags) == 0 || slices.ContainsFunc(tags, func(t string) bool { return t == string(tag) })
}

// data describes the consumer. It is set before the consumer is registered and does not change.
func (c *consumer) data() wire.ConsumerData {
	retry := ParseSelector("")
	retry.Topic, retry.Version = wire.RetryPrefix+c.group, c.filter.Version
	return wire.ConsumerData{
		Group: c.group, Type: "CONSUME_PASSIVELY", Model: "CLUSTERING", From: "CONSUME_FROM_FIRST_OFFSET",
		Subscriptions: []wire.Subscription{c.filter, retry},
	}
}
