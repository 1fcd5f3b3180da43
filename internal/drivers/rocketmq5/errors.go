package rocketmq5

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
)

// Errors of calls without an answer. [transport.Explain] adds the name of the operation.
var (
	errNoAnswer error = driver.Errorf(driver.ClassTimeout, "",
		transport.Silent(""), "no answer in time")
	errAbandoned error = transport.NoAnswer("", "")
)

// lost returns the error with which an open consumer ends. A call that the proxy refuses is a loss, unless a new
// consumer would be refused as well.
func lost(op string, err error) error {
	switch driver.ClassOf(err) {
	case driver.ClassOther, driver.ClassFull:
		return &driver.Error{Class: driver.ClassClosedByBroker, Op: op, Err: err}
	default:
		return transport.Explain(op, err)
	}
}

// meaning is what a refusal by the proxy means. Its codes are those of apache.rocketmq.v2 and the statuses of gRPC,
// which are smaller.
type meaning struct {
	class driver.Class
	hint  string
	codes []wire.Code
}

// meanings returns the table.
func meanings() []meaning {
	const create = ", or give -o name-server=HOST:PORT: a proxy creates none"
	row := func(class driver.Class, hint string, codes ...wire.Code) meaning { return meaning{class, hint, codes} }
	return []meaning{
		row(driver.ClassAuth, "check access key (--user), secret key (--password) and the broker's ACL",
			wire.CodeUnauthorized, wire.CodeForbidden, grpc(codes.Unauthenticated), grpc(codes.PermissionDenied)),
		row(driver.ClassNotFound, "create the topic (mqadmin updateTopic)"+create,
			wire.CodeTopicNotFound, wire.CodeNotFound),
		row(driver.ClassNotFound, "create the group (mqadmin updateSubGroup)"+create,
			wire.CodeConsumerGroupNotFound),
		row(driver.ClassTooLarge, "send smaller messages, or raise maxMessageSize of proxy and broker",
			wire.CodeMessageBodyTooLarge, wire.CodePayloadTooLarge, wire.CodeMessagePropertiesTooLarge),
		row(driver.ClassUnsupported, "give --message-size 1 or more", wire.CodeMessageBodyEmpty),
		row(driver.ClassUnsupported,
			"send the type of messages that the topic was created for, or create one with +message.type=MIXED",
			wire.CodeMessagePropertyConflictWithType),
		row(driver.ClassUnsupported,
			"check the filter; for SQL set enablePropertyFilter=true in the broker's configuration",
			wire.CodeIllegalFilterExpression),
		row(driver.ClassUnsupported, "give a shorter --delivery-delay, or raise maxDelayTimeMills of the proxy",
			wire.CodeIllegalDeliveryTime),
		row(driver.ClassUnsupported, "the proxy, or the broker behind it, may be too old",
			wire.CodeNotImplemented, wire.CodeUnsupported, wire.CodeVersionUnsupported),
		row(driver.ClassUnsupported, hintNotProxy, grpc(codes.Unimplemented)),
		row(driver.ClassFull, "send slower, or raise the threads of proxy and broker (grpcProducerThreadPoolNums)",
			wire.CodeTooManyRequests),
		row(driver.ClassFull,
			"send smaller messages or slower, or raise the proxy's limits (grpcMaxInboundMessageSize)",
			grpc(codes.ResourceExhausted)),
		row(driver.ClassTimeout, protocol.HintReplica,
			wire.CodeMasterPersistenceTimeout, wire.CodeSlavePersistenceTimeout, wire.CodeHaNotAvailable),
		row(driver.ClassTimeout, transport.Silent(""),
			wire.CodeProxyTimeout, wire.CodeRequestTimeout, grpc(codes.DeadlineExceeded)),
		row(driver.ClassClosedByBroker, transport.HintLog, grpc(codes.Unavailable), grpc(codes.Canceled)),
		row(driver.ClassProtocol, transport.HintLog, grpc(codes.InvalidArgument)),
		row(driver.ClassOther, "look into the logs of proxy and broker", wire.CodeInternalServerError),
	}
}

// grpc is a status of gRPC as a code of the table.
func grpc(status codes.Code) wire.Code { return wire.Code(status) } //nolint:gosec // 16 bits

// refused is the end of a call about which the proxy has said more than that it failed.
type refused struct {
	cause *driver.Error
	state driver.State // of its message
}

// Error returns the cause.
func (r *refused) Error() string { return r.cause.Error() }

// Unwrap returns the cause.
func (r *refused) Unwrap() error { return r.cause }

// refusal is the error that quotes the proxy. Whether a refused message can have been stored follows from the class.
func refusal(code wire.Code, words, name string) error {
	m := meaning{driver.ClassOther, transport.HintLog, nil}
	table := meanings()
	if i := slices.IndexFunc(table, func(m meaning) bool { return slices.Contains(m.codes, code) }); i >= 0 {
		m = table[i]
	} else if code/10000 == 4 { // BAD_REQUEST and its kind
		m.class = driver.ClassProtocol
	}
	state := driver.Unknown
	switch m.class {
	case driver.ClassNotFound, driver.ClassFull:
		state = driver.Failed
	case driver.ClassAuth, driver.ClassTooLarge, driver.ClassUnsupported, driver.ClassProtocol:
		state = driver.Rejected
	}
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	words = cmp.Or(transport.Clip(words, maxWords), "the proxy gives no reason")
	return &refused{driver.Errorf(m.class, "", m.hint, "%s (%s)", words, name), state}
}

// statusError is the error of a call that ended with a status of gRPC.
func statusError(a *wire.Answer) error {
	code := grpc(a.Status)
	if a.Status == codes.InvalidArgument && strings.Contains(a.Message, "group not found") { // of ClientProcessor
		code = wire.CodeConsumerGroupNotFound
	}
	return refusal(code, a.Message, "gRPC "+a.Status.String())
}

// codeError is the error of an answer; nil if it is good.
func codeError(s *wire.Status) error {
	if s.Code == wire.CodeOk {
		return nil
	}
	return refusal(s.Code, string(s.Message), fmt.Sprintf("code %d", s.Code))
}

// outcome is the end of a message whose sending failed.
func outcome(op string, err error) driver.Outcome {
	state := driver.Unknown
	var r *refused
	if errors.As(err, &r) {
		state = r.state
	}
	err = transport.Explain(op, err)
	return driver.Outcome{State: state, Class: driver.ClassOf(err), Err: err}
}
