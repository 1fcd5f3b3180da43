// Package protocol has the common parts of the drivers of one protocol, for all their clients: the syntax of URLs,
// features, the meaning of brokers' texts over STOMP and of RocketMQ's codes, and names that mean many destinations.
package protocol

import (
	"slices"
	"strings"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
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

// LibraryFeatures are those that drivers on client libraries have for queues and topics.
func LibraryFeatures() driver.KindCapabilities {
	kind, _ := Features()
	kind.Transactions, kind.TransactedReceive, kind.Delay = false, false, false
	kind.RequestReply, kind.DynamicReply = false, false
	return kind
}

// RocketMQProxy returns the protocol of RocketMQ 5's proxy, by gRPC. Its server insists on the name of HTTP/2 in TLS.
func RocketMQProxy() *transport.Protocol {
	return &transport.Protocol{
		Title: "RocketMQ proxy", Schemes: []string{"rocketmq+grpc", "rocketmqs+grpc"},
		Encrypted: []string{"rocketmqs+grpc"}, PlainPort: "8081", TLSPort: "8081", NextProtos: []string{"h2"},
	}
}

// Features returns all features: topics have subscriptions, too.
func Features() (queue, topic driver.KindCapabilities) {
	queue = driver.KindCapabilities{
		Exists: true, Persistent: true, TTL: true, Priority: true, Group: true, Properties: true, Selector: true,
		Transactions: true, TransactedReceive: true, Credit: true, Reject: true, Release: true, Redelivered: true,
		Delay: true, Text: true, RequestReply: true, DynamicReply: true,
	}
	topic = queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return queue, topic
}

// refusal is the meaning of a refusal by a broker. It has the end of the send of a refused message, too, which is
// unknown for a message that is stored but not safe yet.
type refusal struct {
	codes []int    // ResponseCode.java; none for any
	words []string // any of these; none for any text
	state driver.State
	class driver.Class
	hint  string
}

var refusals = allRefusals() //nolint:gochecknoglobals // a table that never changes; rejections may be many

// allRefusals returns the table, in which the first match counts.
func allRefusals() []refusal {
	const (
		login = "check access key (--user), secret key (--password) and the broker's ACL"
		log   = transport.HintLog

		sqlFilters = "set enablePropertyFilter=true in the broker's configuration"
	)
	row := func(state driver.State, class driver.Class, hint string, words []string, codes ...int) refusal {
		return refusal{codes, words, state, class, hint}
	}
	return []refusal{
		row(driver.Failed, driver.ClassFull,
			"send slower, or raise sendMessageThreadPoolNums and waitTimeMillsInSendQueue",
			nil, wire.ResSystemBusy, wire.ResFlowControl),
		row(driver.Rejected, driver.ClassAuth, "look at brokerPermission and the topic's perm",
			[]string{"sending message is forbidden"}, wire.ResNoPermission),
		row(driver.Rejected, driver.ClassAuth, login, nil, wire.ResNoPermission),
		row(driver.Failed, driver.ClassNotFound, "create the topic, or leave -o create-topic at true",
			nil, wire.ResTopicNotExist),
		row(driver.Failed, driver.ClassNotFound,
			"was the group deleted, or do its members' filters differ?",
			nil, wire.ResSubscriptionNotExist, wire.ResSubscriptionNotLatest, wire.ResSubscriptionGroupNotExist),
		row(driver.Unknown, driver.ClassTimeout, HintReplica, nil,
			wire.ResFlushDiskTimeout, wire.ResSlaveNotAvailable, wire.ResFlushSlaveTimeout),
		row(driver.Failed, driver.ClassUnsupported,
			"check the filter; for SQL "+sqlFilters,
			nil, wire.ResSubscriptionParseFailed),
		row(driver.Failed, driver.ClassUnsupported, "the broker may be too old", nil, wire.ResRequestCodeNotSupported),
		row(driver.Rejected, driver.ClassTooLarge, "send smaller messages or raise the broker's maxMessageSize",
			[]string{"size", "length", "too long"}, wire.ResMessageIllegal),
		row(driver.Rejected, driver.ClassProtocol, log, nil, wire.ResMessageIllegal),
		row(driver.Failed, driver.ClassClosedByBroker, log, nil, wire.ResServiceNotAvailable, wire.ResGoAway),
		row(driver.Failed, driver.ClassAuth, login, []string{ // of ACL 1.0 and 2.0, which have a general code
			"AclException", "AuthenticationException", "AuthorizationException", "No accessKey is configured",
			"signature",
		}, wire.ResSystemError),
		row(driver.Failed, driver.ClassUnsupported, sqlFilters,
			[]string{"SQL92"}, wire.ResSystemError),
		row(driver.Failed, driver.ClassProtocol, "give the address of the name server, not of a proxy",
			[]string{"field bname"}), // brokers do not ask for their name
	}
}

// RocketMQRefusal returns the meaning of a refusal by its code and words.
func RocketMQRefusal(code int, words string) (state driver.State, class driver.Class, hint string) {
	said := func(part string) bool { return strings.Contains(words, part) }
	for _, r := range refusals {
		matches := r.codes == nil || slices.Contains(r.codes, code)
		if matches && (r.words == nil || slices.ContainsFunc(r.words, said)) {
			return r.state, r.class, r.hint
		}
	}
	return driver.Failed, driver.ClassOther, transport.HintLog
}
