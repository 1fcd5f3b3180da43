package rocketmq5

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

const (
	maxWords = 400 // limit of a quotation from the proxy, in bytes
	maxName  = 100 // the same for a name or address

	hintNotProxy = "is this RocketMQ's proxy? Its port for gRPC is 8081 by default"
	hintLogin    = "check access key (--user), secret key (--password) and the broker's ACL"
)

// Errors of calls without an answer. wrap adds the name of the operation.
var (
	errNoAnswer error = driver.Errorf(driver.ClassTimeout, "",
		transport.Silent(""), "no answer in time")
	errAbandoned error = driver.Errorf(driver.ClassTimeout, "", transport.Silent(""), transport.NotAnswered)
)

// wrap adds the operation to an error, keeping the class.
func wrap(op string, err error) error {
	var e *driver.Error
	switch {
	case errors.As(err, &e) && e.Op == "":
		return &driver.Error{Class: e.Class, Op: op, Hint: e.Hint, Err: e.Err}
	case e != nil:
		return err
	}
	return &driver.Error{Class: driver.ClassOf(err), Op: op, Err: err}
}

// lost returns the error with which an open consumer ends. A call that the proxy refuses is a loss, unless a new
// consumer would be refused as well.
func lost(op string, err error) error {
	switch driver.ClassOf(err) {
	case driver.ClassOther, driver.ClassFull:
		return &driver.Error{Class: driver.ClassClosedByBroker, Op: op, Err: err}
	default:
		return wrap(op, err)
	}
}

// meaning is what a code of the proxy means. State is the end of a message that was refused with it.
type meaning struct {
	codes []int // none for all
	state driver.State
	class driver.Class
	hint  string
}

// meanings returns the meanings of the codes of apache.rocketmq.v2. The first match counts.
func meanings() []meaning {
	return []meaning{
		{[]int{wire.Unauthorized, wire.Forbidden}, driver.Rejected, driver.ClassAuth, hintLogin},
		{
			[]int{wire.TopicNotFound, wire.NotFound},
			driver.Failed, driver.ClassNotFound,
			"create the topic (mqadmin updateTopic), or give -o name-server=HOST:PORT: a proxy creates none",
		},
		{
			[]int{wire.GroupNotFound},
			driver.Failed, driver.ClassNotFound,
			"create the group (mqadmin updateSubGroup), or give -o name-server=HOST:PORT: a proxy creates none",
		},
		{
			[]int{wire.BodyTooLarge, wire.PayloadTooLarge, wire.PropertiesTooLarge},
			driver.Rejected,
			driver.ClassTooLarge, "send smaller messages, or raise maxMessageSize of proxy and broker",
		},
		{[]int{wire.BodyEmpty}, driver.Rejected, driver.ClassUnsupported, "give --message-size 1 or more"},
		{
			[]int{wire.TypeConflict},
			driver.Rejected, driver.ClassUnsupported,
			"send the type of messages that the topic was created for, or create one with +message.type=MIXED",
		},
		{
			[]int{wire.IllegalFilter},
			driver.Failed, driver.ClassUnsupported,
			"check the filter; for SQL set enablePropertyFilter=true in the broker's configuration",
		},
		{
			[]int{wire.IllegalDelivery},
			driver.Rejected, driver.ClassUnsupported,
			"give a shorter --delivery-delay, or raise maxDelayTimeMills of the proxy",
		},
		{
			[]int{wire.TooManyRequests},
			driver.Failed, driver.ClassFull,
			"send slower, or raise the threads of proxy and broker (grpcProducerThreadPoolNums)",
		},
		{
			[]int{wire.PersistenceTimeout, wire.ReplicaTimeout, wire.NoReplica},
			driver.Unknown, driver.ClassTimeout,
			protocol.HintReplica,
		},
		{[]int{wire.ProxyTimeout, wire.RequestTimeout}, driver.Unknown, driver.ClassTimeout, transport.Silent("")},
		{
			[]int{wire.NotImplemented, wire.Unsupported, wire.VersionUnsupported},
			driver.Failed,
			driver.ClassUnsupported, "the proxy, or the broker behind it, may be too old",
		},
		{[]int{wire.InternalError}, driver.Unknown, driver.ClassOther, "look into the logs of proxy and broker"},
	}
}

// statuses returns the meanings of the statuses of gRPC.
func statuses() []meaning {
	return []meaning{
		{[]int{wire.StatusUnauthenticated, wire.StatusPermission}, driver.Rejected, driver.ClassAuth, hintLogin},
		{[]int{wire.StatusUnimplemented}, driver.Failed, driver.ClassUnsupported, hintNotProxy},
		{[]int{wire.StatusDeadline}, driver.Unknown, driver.ClassTimeout, transport.Silent("")},
		{
			[]int{wire.StatusExhausted},
			driver.Failed, driver.ClassFull,
			"send smaller messages or slower, or raise the proxy's limits (grpcMaxInboundMessageSize)",
		},
		{
			[]int{wire.StatusUnavailable, wire.StatusCancelled},
			driver.Unknown, driver.ClassClosedByBroker,
			transport.HintLog,
		},
		{[]int{wire.StatusInvalid}, driver.Rejected, driver.ClassProtocol, transport.HintLog},
	}
}

func meaningOf(table []meaning, code int) meaning {
	i := slices.IndexFunc(table, func(m meaning) bool { return slices.Contains(m.codes, code) })
	if i < 0 {
		return meaning{nil, driver.Unknown, driver.ClassOther, transport.HintLog}
	}
	return table[i]
}

// statusError is the error of a call that ended with a status of gRPC.
func statusError(a *wire.Answer) error {
	m := meaningOf(statuses(), a.Status)
	if a.Status == wire.StatusInvalid && strings.Contains(a.Message, "group not found") { // of ClientProcessor
		m = meaningOf(meanings(), wire.GroupNotFound)
	}
	return m.refusal(strings.TrimSpace(a.Message), "gRPC "+wire.StatusName(a.Status))
}

// refusal is the error that quotes the proxy.
func (m *meaning) refusal(words, code string) error {
	words = cmp.Or(transport.Clip(words, maxWords), "the proxy gives no reason")
	return &refused{driver.Errorf(m.class, "", m.hint, "%s (%s)", words, code), m.state}
}

// codeError is the error of an answer; nil if it is good.
func codeError(s *wire.Status) error {
	if s.Code == wire.OK {
		return nil
	}
	m := meaningOf(meanings(), s.Code)
	if m.class == driver.ClassOther && s.Code/10000 == 4 { // BAD_REQUEST and its kind
		m.state, m.class = driver.Rejected, driver.ClassProtocol
	}
	words, _, _ := strings.Cut(strings.TrimSpace(string(s.Message)), "\n")
	return m.refusal(words, "code "+strconv.Itoa(s.Code))
}

// outcome is the end of a message whose sending failed.
func outcome(op string, err error) driver.Outcome {
	state := driver.Unknown
	var r *refused
	if errors.As(err, &r) {
		state = r.state
	}
	err = wrap(op, err)
	return driver.Outcome{State: state, Class: driver.ClassOf(err), Err: err}
}
