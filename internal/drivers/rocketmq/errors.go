package rocketmq

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Errors of requests without an answer. wrap adds the name of the operation.
var (
	errNoAnswer error = driver.Errorf(driver.ClassTimeout, "",
		protocol.Silent(""), "no answer in time")
	errAbandoned error = driver.Errorf(driver.ClassTimeout, "",
		"is the broker short of disk? "+protocol.Silent(""),
		"the broker had not answered when the producer closed")
)

// wrap adds the operation to an error, keeping the class.
func wrap(op string, err error) error {
	if e, ok := err.(*driver.Error); ok && e.Op == "" { //nolint:errorlint // only the outermost, which is ours
		return &driver.Error{Class: e.Class, Op: op, Hint: e.Hint, Err: e.Err}
	}
	return &driver.Error{Class: driver.ClassOf(err), Op: op, Err: err}
}

// lost returns the error with which an open consumer ends. A request that the broker refuses is a loss, unless a new
// consumer would be refused as well.
func lost(op string, err error) error {
	switch driver.ClassOf(err) {
	case driver.ClassOther, driver.ClassFull:
		return &driver.Error{Class: driver.ClassClosedByBroker, Op: op, Err: err}
	default:
		return wrap(op, err)
	}
}

const (
	maxWords = 400 // limit of a quotation from a broker, in bytes
	maxName  = 100 // the same for a name or address

	notRocketMQ  = "is this a RocketMQ name server or broker?"
	overloaded   = "is it overloaded, or not a RocketMQ server?"
	lookAtBroker = "look into the broker's log; see also whether a proxy on the way changes its messages"
)

// refusal returns the error that a broker's answer reports. It copies the answer's texts.
func refusal(r *reply) *driver.Error {
	m := meaningOf(r)
	words := strings.TrimSpace(string(r.Remark))
	// Brokers append their help page and, to some, a stack trace.
	words, _, _ = strings.Cut(words, "\n")
	if i := strings.Index(words, "For more information"); i > 0 {
		words = strings.TrimSpace(words[:i])
	}
	words = cmp.Or(words, m.words, "the broker gives no reason")
	return driver.Errorf(m.class, "", m.hint, "%s (code %d)", transport.Clip(words, maxWords), r.Code)
}

// meaning is the meaning of an error code in an answer.
type meaning struct {
	class driver.Class
	hint  string
	words string       // used if the answer has no text: brokers add none to the codes for stored messages
	send  driver.State // outcome of the messages sent
}

func meaningOf(r *reply) meaning {
	const (
		login = "check the access key (--user), the secret key (--password) and the broker's ACL"
		log   = "look into the broker's log"
		slow  = "is its disk slow, or its slave away?"
	)
	remark := string(r.Remark)
	failed := func(class driver.Class, hint string) meaning { return meaning{class, hint, "", driver.Failed} }
	rejected := func(class driver.Class, hint string) meaning { return meaning{class, hint, "", driver.Rejected} }
	stored := func(words string) meaning { return meaning{driver.ClassTimeout, slow, words, driver.Unknown} }
	switch r.Code {
	case wire.ResSystemBusy, wire.ResFlowControl:
		return failed(driver.ClassFull,
			"the broker sheds load: send slower, or raise its sendMessageThreadPoolNums and waitTimeMillsInSendQueue")
	case wire.ResNoPermission:
		if strings.Contains(remark, "sending message is forbidden") {
			return rejected(driver.ClassAuth,
				"the broker or topic does not allow writing: look at brokerPermission and the topic's perm")
		}
		return rejected(driver.ClassAuth, login)
	case wire.ResTopicNotExist:
		return failed(driver.ClassNotFound, "create the topic, or leave -o create-topic at true")
	case wire.ResSubscriptionNotExist, wire.ResSubscriptionNotLatest, wire.ResSubscriptionGroupNotExist:
		return failed(driver.ClassNotFound,
			"the broker does not know the consumer group: was it deleted, or do its members differ in their filters?")
	case wire.ResFlushDiskTimeout:
		return stored("the broker has the message, but not on disk in time")
	case wire.ResSlaveNotAvailable:
		return stored("the broker has the message, but no slave that is up to date")
	case wire.ResFlushSlaveTimeout:
		return stored("the broker has the message, but its slave has not confirmed it in time")
	case wire.ResSubscriptionParseFailed:
		return failed(driver.ClassUnsupported,
			"check the filter; SQL needs enablePropertyFilter=true in the broker's configuration")
	case wire.ResRequestCodeNotSupported:
		return failed(driver.ClassUnsupported, "the broker may be too old")
	case wire.ResMessageIllegal:
		if hint := protocol.MessageTypeHint(remark); hint != "" {
			return rejected(driver.ClassUnsupported, hint)
		}
		if containsAny(remark, "size", "length", "too long") {
			return rejected(driver.ClassTooLarge, "send smaller messages or raise the broker's maxMessageSize")
		}
		return rejected(driver.ClassProtocol, log)
	case wire.ResServiceNotAvailable, wire.ResGoAway:
		return failed(driver.ClassClosedByBroker,
			"the broker is shutting down, a replica, or short of disk: look at its log")
	case wire.ResSystemError:
		if authFailed(remark) {
			return failed(driver.ClassAuth, login)
		}
		if strings.Contains(remark, "SQL92") {
			return failed(driver.ClassUnsupported, "set enablePropertyFilter=true in the broker's configuration")
		}
	}
	if strings.HasSuffix(remark, "field bname") { // brokers do not ask for their name
		return failed(driver.ClassProtocol, "this is the port of a proxy: give the address of the name server")
	}
	return failed(driver.ClassOther, log)
}

// authFailed recognises the texts of refusals by ACL 1.0 and 2.0, which have a general code.
func authFailed(remark string) bool {
	return containsAny(remark, "AclException", "AuthenticationException", "AuthorizationException",
		"No accessKey is configured", "signature")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// outcome converts the end of a request that sent messages. A code for a message that was stored but is not yet safe
// gives Unknown.
func outcome(op string, r *reply) driver.Outcome {
	if r.err != nil {
		err := wrap(op, r.err)
		return driver.Outcome{State: driver.Unknown, Class: driver.ClassOf(err), Err: err}
	}
	if r.Code == wire.ResSuccess {
		return driver.Outcome{}
	}
	e := refusal(r)
	e.Op = op
	return driver.Outcome{State: meaningOf(r).send, Class: e.Class, Err: e}
}
