package rocketmq

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Errors of requests without an answer. wrap adds the name of the operation.
var (
	errNoAnswer error = driver.Errorf(driver.ClassTimeout, "",
		transport.Silent(""), "no answer in time")
	errAbandoned error = driver.Errorf(driver.ClassTimeout, "",
		"is the broker short of disk? "+transport.Silent(""),
		transport.NotAnswered)
)

// unanswered returns the error about a server that does not answer before ctx ends.
func unanswered(ctx context.Context, op, addr string) error {
	return driver.Errorf(driver.ClassTimeout, op, overloaded, "%s did not answer: %w", addr, ctx.Err())
}

// silent returns the error about a connection to a broker that does not answer a request in time.
func silent(request string, limit time.Duration) error {
	return driver.Errorf(driver.ClassConnectionLost, "", "the broker, or the network, hangs",
		"no answer to a %s within %s", request, limit)
}

// turn is permission to ask the broker a question that one user after the other asks. It is a channel of capacity one,
// so that waiting for it ends with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context, op string) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unanswered(ctx, op, "the server")
	}
}

func (t turn) give() { <-t }

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
	lookAtBroker = transport.HintProxy
)

// refusal returns the error that a broker's answer reports. It copies the answer's texts.
func refusal(r *reply) *driver.Error {
	_, class, hint := protocol.RocketMQRefusal(r.Code, string(r.Remark))
	words := strings.TrimSpace(string(r.Remark))
	// Brokers append their help page and, to some, a stack trace.
	words, _, _ = strings.Cut(words, "\n")
	if i := strings.Index(words, "For more information"); i > 0 {
		words = strings.TrimSpace(words[:i])
	}
	words = cmp.Or(words, "the broker gives no reason")
	return driver.Errorf(class, "", hint, "%s (code %d)", transport.Clip(words, maxWords), r.Code)
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
	state, _, _ := protocol.RocketMQRefusal(r.Code, string(r.Remark))
	return driver.Outcome{State: state, Class: e.Class, Err: e}
}
