package setting

import (
	"math"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

func messageRows(role plan.Role) []Setting {
	var commitAliases []string
	if role == plan.Producer { // where it can mean nothing else
		commitAliases = []string{"tx-size"}
	}
	return []Setting{
		{
			Name:   "message-size",
			Brief:  "bytes, or such as 64KiB; 1024 unless given",
			Places: inProducers | inMessage, Section: SectionMessage, Arg: argSize, Default: "1024", Roles: sending(),
			Help: "bytes: 1024, 10k, 64KiB, 1MB; several by weight as SIZE/WEIGHT:SIZE/WEIGHT, such as 1KiB/80:64KiB/20",
			Set:  setMessageSizes,
		},
		{
			Name: "body-file", Places: inProducers | inMessage, Section: SectionMessage, Arg: argFile, Files: true,
			Roles: sending(),
			Help:  "file that is the body of every message, read once; of a folder, each file in turn, by name",
			Set:   text(func(s *Values) *string { return &s.BodyFile }),
		},
		{
			Name: "fill", Places: inProducers | inMessage, Section: SectionMessage, Arg: argName, Default: string(plan.Random),
			Roles: sending(),
			Help: "what the bodies of --message-size are, the same in every run: random (text), compressible (text that gzip " +
				"halves), zeros",
			Words: plan.Fills(), Set: oneOf(plan.Fills(), func(s *Values) *string { return &s.Fill }),
		},
		{
			Name: "message-type", Places: inProducers | inMessage, Section: SectionMessage, Arg: argName,
			Default: string(plan.Bytes),
			Roles:   sending(), Words: plan.MessageTypes(),
			Help: "text: an AMQP string, or over STOMP no content-length, of which ActiveMQ makes a text message; or bytes",
			Set:  oneOf(plan.MessageTypes(), func(s *Values) *string { return &s.MessageType }),
		},
		{
			Name: "property", Places: inProducers | inMessage, Section: SectionMessage, Arg: "KEY=VALUE", List: true,
			Roles: sending(), Help: "message property; may be repeated", Pairs: true, Set: setProperty,
		},
		{
			Name:   "persistent",
			Brief:  "messages survive a restart of the broker",
			Places: inProducers, Section: SectionMessage, Roles: sending(), Help: "messages survive a restart of the broker",
			Set: onOff(func(s *Values) *bool { return &s.Persistent }),
		},
		{
			Name: "ttl", Places: inProducers, Section: SectionMessage, Arg: argTime, Default: "for ever", Roles: sending(),
			Help: "time to live: 5s, or a plain number of milliseconds",
			Set:  span(time.Millisecond, func(s *Values) *time.Duration { return &s.TTL }),
		},
		{
			Name: "delivery-delay", Places: inProducers, Section: SectionMessage, Arg: argTime, Default: "0s", Roles: sending(),
			Help: "let the broker hold each message back for this time; a plain number is milliseconds. Lateness is how much " +
				"later it comes",
			Set: span(time.Millisecond, func(s *Values) *time.Duration { return &s.DeliveryDelay }),
		},
		{
			Name: "priority", Places: inProducers | inMessage, Section: SectionMessage, Arg: "0-9", Default: "the protocol's",
			Roles: sending(), Help: "message priority, 9 is the highest",
			Set: whole(0, 9, func(s *Values) *int { return &s.Priority }), Suggest: suggestFixed("0", "1", "2", "3", "4", "5",
				"6", "7", "8", "9"),
		},
		{
			Name: "group", Places: inProducers | inMessage, Section: SectionMessage, Arg: argName, Roles: sending(),
			Help: "message group of all messages",
			Set:  text(func(s *Values) *string { return &s.MessageGroup }),
		},
		{
			Name: "commit-interval", FlagAliases: commitAliases, Places: inGroups, Section: SectionMessage, Arg: argNumber,
			Default: "no transactions",
			Help:    "messages per transaction of a producer; a consumer ignores it, see --tx-size",
			Set:     whole(0, math.MaxInt32, func(s *Values) *int { return &s.CommitInterval }),
		},
	}
}

func consumerRows() []Setting {
	return []Setting{
		{
			Name: "durable", Places: inConsumers, Section: SectionConsumer, Roles: reading(),
			Help: "durable topic subscriptions; needs --clientID; they are removed at the end",
			Set:  onOff(func(s *Values) *bool { return &s.Durable }),
		},
		{
			Name: "shared", Places: inConsumers, Section: SectionConsumer, Arg: argNumber, Default: "0", Roles: reading(),
			Help: "shared subscriptions per topic, each with --consumers consumers",
			Set:  whole(0, math.MaxInt32, func(s *Values) *int { return &s.Shared }),
		},
		{
			Name: "keep-subscription", Places: inConsumers, Section: SectionConsumer, Roles: reading(),
			Help: "leave durable subscriptions at the broker",
			Set:  onOff(func(s *Values) *bool { return &s.KeepSubscription }),
		},
		{
			Name: "selector", Places: inConsumers, Section: SectionConsumer, Arg: argText, Roles: reading(),
			Help: "message selector: which messages to receive",
			Set:  text(func(s *Values) *string { return &s.Selector }),
		},
		{
			Name: "credit", Places: inConsumers, Section: SectionConsumer, Arg: argNumber, Default: "the protocol's",
			Roles: reading(), Help: "messages that the broker may send ahead to a consumer",
			Set: whole(1, math.MaxInt32, func(s *Values) *int { return &s.Credit }),
		},
		{
			Name: "consumer-work", Places: inConsumers, Section: SectionConsumer, Arg: argTime, Roles: reading(),
			Help: "time that a consumer works on each message before it settles it: 2ms, 1ms-5ms (uniform), exp:2ms " +
				"(exponential with that mean)",
			Set: setConsumerWork,
		},
		{
			Name: "consumer-rate", Places: inConsumers, Section: SectionConsumer, Arg: argNumber, Default: "as fast as possible",
			Roles: reading(),
			Help:  "messages per second that all consumers together receive at most, in equal shares",
			Set:   setConsumerRate,
		},
		{
			Name: "consumer-fail", Places: inConsumers, Section: SectionConsumer, Arg: "PERCENT", Default: "0%",
			Roles: reading(),
			Help: "share of the deliveries that consumers do not accept, on purpose: 1%, 0.25%; exact for all consumers " +
				"together",
			Set: setConsumerFail,
		},
		{
			Name: "consumer-fail-as", Places: inConsumers, Section: SectionConsumer, Arg: argName,
			Default: driver.Release.String(),
			Roles:   reading(), Words: failures(), Set: setConsumerFailAs,
			Help: "what consumers do then: release (the broker is to deliver the message again) or reject (it drops it, or " +
				"puts it into its dead letters)",
		},
		{
			Name: "max-message-size", Places: inConsumers, Section: SectionConsumer, Arg: argSize, Default: "16MiB",
			Roles: reading(),
			Help:  "largest message to accept from the broker; what the run itself sends is always accepted",
			Set:   size(1, func(s *Values) *int { return &s.MaxMessageSize }),
		},
		{
			Name: "tx", Places: inConsumers, Section: SectionConsumer, Roles: reading(), Help: "receive in transactions",
			Set: onOff(func(s *Values) *bool { return &s.Tx }),
		},
		{
			Name: "tx-size", Places: inConsumers, Section: SectionConsumer, Arg: argNumber, Default: "1", Roles: reading(),
			Help: "messages per transaction of a consumer; more than there are credits for would never be committed. It " +
				"implies --tx",
			Set: whole(1, math.MaxInt32, func(s *Values) *int { return &s.TxSize }),
		},
	}
}
