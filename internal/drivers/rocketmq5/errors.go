package rocketmq5

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

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

// meaning is what codes of the proxy, or of gRPC, mean. State is the end of a message that was refused with one.
type meaning[C comparable] struct {
	codes []C // none for all
	state driver.State
	class driver.Class
	hint  string
}

// meanings returns the meanings of the codes of apache.rocketmq.v2. The first match counts.
func meanings() []meaning[wire.Code] {
	const rejected, failed, unknown = driver.Rejected, driver.Failed, driver.Unknown
	type of = []wire.Code
	return []meaning[wire.Code]{
		{of{wire.CodeUnauthorized, wire.CodeForbidden}, rejected, driver.ClassAuth, hintLogin},
		{
			of{wire.CodeTopicNotFound, wire.CodeNotFound},
			failed, driver.ClassNotFound,
			"create the topic (mqadmin updateTopic), or give -o name-server=HOST:PORT: a proxy creates none",
		},
		{
			of{wire.CodeConsumerGroupNotFound},
			failed, driver.ClassNotFound,
			"create the group (mqadmin updateSubGroup), or give -o name-server=HOST:PORT: a proxy creates none",
		},
		{
			of{wire.CodeMessageBodyTooLarge, wire.CodePayloadTooLarge, wire.CodeMessagePropertiesTooLarge},
			rejected,
			driver.ClassTooLarge, "send smaller messages, or raise maxMessageSize of proxy and broker",
		},
		{of{wire.CodeMessageBodyEmpty}, rejected, driver.ClassUnsupported, "give --message-size 1 or more"},
		{
			of{wire.CodeMessagePropertyConflictWithType},
			rejected, driver.ClassUnsupported,
			"send the type of messages that the topic was created for, or create one with +message.type=MIXED",
		},
		{
			of{wire.CodeIllegalFilterExpression},
			failed, driver.ClassUnsupported,
			"check the filter; for SQL set enablePropertyFilter=true in the broker's configuration",
		},
		{
			of{wire.CodeIllegalDeliveryTime},
			rejected, driver.ClassUnsupported,
			"give a shorter --delivery-delay, or raise maxDelayTimeMills of the proxy",
		},
		{
			of{wire.CodeTooManyRequests},
			failed, driver.ClassFull,
			"send slower, or raise the threads of proxy and broker (grpcProducerThreadPoolNums)",
		},
		{
			of{wire.CodeMasterPersistenceTimeout, wire.CodeSlavePersistenceTimeout, wire.CodeHaNotAvailable},
			unknown,
			driver.ClassTimeout, protocol.HintReplica,
		},
		{of{wire.CodeProxyTimeout, wire.CodeRequestTimeout}, unknown, driver.ClassTimeout, transport.Silent("")},
		{
			of{wire.CodeNotImplemented, wire.CodeUnsupported, wire.CodeVersionUnsupported},
			failed,
			driver.ClassUnsupported, "the proxy, or the broker behind it, may be too old",
		},
		{of{wire.CodeInternalServerError}, unknown, driver.ClassOther, "look into the logs of proxy and broker"},
	}
}

// statuses returns the meanings of the statuses of gRPC.
func statuses() []meaning[codes.Code] {
	const rejected, failed, unknown = driver.Rejected, driver.Failed, driver.Unknown
	type of = []codes.Code
	return []meaning[codes.Code]{
		{of{codes.Unauthenticated, codes.PermissionDenied}, rejected, driver.ClassAuth, hintLogin},
		{of{codes.Unimplemented}, failed, driver.ClassUnsupported, hintNotProxy},
		{of{codes.DeadlineExceeded}, unknown, driver.ClassTimeout, transport.Silent("")},
		{
			of{codes.ResourceExhausted},
			failed, driver.ClassFull,
			"send smaller messages or slower, or raise the proxy's limits (grpcMaxInboundMessageSize)",
		},
		{of{codes.Unavailable, codes.Canceled}, unknown, driver.ClassClosedByBroker, transport.HintLog},
		{of{codes.InvalidArgument}, rejected, driver.ClassProtocol, transport.HintLog},
	}
}

func meaningOf[C comparable](table []meaning[C], code C) meaning[C] {
	i := slices.IndexFunc(table, func(m meaning[C]) bool { return slices.Contains(m.codes, code) })
	if i < 0 {
		return meaning[C]{nil, driver.Unknown, driver.ClassOther, transport.HintLog}
	}
	return table[i]
}

// statusError is the error of a call that ended with a status of gRPC.
func statusError(a *wire.Answer) error {
	words, code := strings.TrimSpace(a.Message), "gRPC "+a.Status.String()
	if a.Status == codes.InvalidArgument && strings.Contains(words, "group not found") { // of ClientProcessor
		m := meaningOf(meanings(), wire.CodeConsumerGroupNotFound)
		return m.refusal(words, code)
	}
	m := meaningOf(statuses(), a.Status)
	return m.refusal(words, code)
}

// refusal is the error that quotes the proxy.
func (m *meaning[C]) refusal(words, code string) error {
	words = cmp.Or(transport.Clip(words, maxWords), "the proxy gives no reason")
	return &refused{driver.Errorf(m.class, "", m.hint, "%s (%s)", words, code), m.state}
}

// codeError is the error of an answer; nil if it is good.
func codeError(s *wire.Status) error {
	if s.Code == wire.CodeOk {
		return nil
	}
	m := meaningOf(meanings(), s.Code)
	if m.class == driver.ClassOther && s.Code/10000 == 4 { // BAD_REQUEST and its kind
		m.state, m.class = driver.Rejected, driver.ClassProtocol
	}
	words, _, _ := strings.Cut(strings.TrimSpace(string(s.Message)), "\n")
	return m.refusal(words, "code "+strconv.Itoa(int(s.Code)))
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
