package protocol

import (
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// RocketMQRefusal returns the meaning of a refusal by a broker, by its code (ResponseCode.java) and words: for a
// refused message also how its send ended, which is unknown for a message that is stored but not safe yet.
func RocketMQRefusal(code int, words string) (state driver.State, class driver.Class, hint string) {
	const (
		login = "check access key (--user), secret key (--password) and the broker's ACL"
		log   = transport.HintLog
	)
	switch code {
	case wire.ResSystemBusy, wire.ResFlowControl:
		return driver.Failed, driver.ClassFull,
			"send slower, or raise the broker's sendMessageThreadPoolNums and waitTimeMillsInSendQueue"
	case wire.ResNoPermission:
		if strings.Contains(words, "sending message is forbidden") {
			return driver.Rejected, driver.ClassAuth, "look at brokerPermission and the topic's perm"
		}
		return driver.Rejected, driver.ClassAuth, login
	case wire.ResTopicNotExist:
		return driver.Failed, driver.ClassNotFound, "create the topic, or leave -o create-topic at true"
	case wire.ResSubscriptionNotExist, wire.ResSubscriptionNotLatest, wire.ResSubscriptionGroupNotExist:
		return driver.Failed, driver.ClassNotFound,
			"was the consumer group deleted, or do its members differ in their filters?"
	case wire.ResFlushDiskTimeout, wire.ResSlaveNotAvailable, wire.ResFlushSlaveTimeout:
		return driver.Unknown, driver.ClassTimeout, "the broker has the message: is its disk slow, or its slave away?"
	case wire.ResSubscriptionParseFailed:
		return driver.Failed, driver.ClassUnsupported,
			"check the filter; SQL needs enablePropertyFilter=true in the broker's configuration"
	case wire.ResRequestCodeNotSupported:
		return driver.Failed, driver.ClassUnsupported, "the broker may be too old"
	case wire.ResMessageIllegal:
		if hint := MessageTypeHint(words); hint != "" {
			return driver.Rejected, driver.ClassUnsupported, hint
		}
		if containsAny(words, "size", "length", "too long") {
			return driver.Rejected, driver.ClassTooLarge, "send smaller messages or raise the broker's maxMessageSize"
		}
		return driver.Rejected, driver.ClassProtocol, log
	case wire.ResServiceNotAvailable, wire.ResGoAway:
		return driver.Failed, driver.ClassClosedByBroker, log
	}
	switch {
	case code == wire.ResSystemError && RocketMQLoginFailed(words):
		return driver.Failed, driver.ClassAuth, login
	case code == wire.ResSystemError && strings.Contains(words, "SQL92"):
		return driver.Failed, driver.ClassUnsupported, "set enablePropertyFilter=true in the broker's configuration"
	case strings.HasSuffix(words, "field bname"): // brokers do not ask for their name
		return driver.Failed, driver.ClassProtocol, "give the address of the name server, not of a proxy"
	}
	return driver.Failed, driver.ClassOther, log
}

// RocketMQLoginFailed recognises the texts of refusals by ACL 1.0 and 2.0, which have a general code.
func RocketMQLoginFailed(words string) bool {
	return containsAny(words, "AclException", "AuthenticationException", "AuthorizationException",
		"No accessKey is configured", "signature")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// MessageTypeHint returns the hint for a refusal of a message by the type of its topic (message.type), which the
// proxies of RocketMQ 5 check. It is empty for other refusals.
func MessageTypeHint(words string) string {
	_, types, refused := strings.Cut(words, "the expected type is ")
	wanted, sent, named := strings.Cut(types, ", but actual type is ")
	if !refused || !named {
		return ""
	}
	if add := map[string]string{
		"FIFO": "add --group", "DELAY": "add --delivery-delay, or -o delay-level",
		"TRANSACTION": "add -o transactional=true", "NORMAL": "leave out --group, the delay, or -o transactional",
	}[wanted]; add != "" {
		return "the topic takes only messages of type " + wanted + ": " + add
	}
	return "use a topic of type " + sent
}
