package gostomp

import (
	"errors"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// lost returns the error about a connection that was lost.
func lost(op string, err error) *driver.Error {
	return &driver.Error{Class: driver.ClassConnectionLost, Op: op, Hint: transport.HintAlive, Err: err}
}

// errEnded says that a connection has ended without a reason of the broker.
func errEnded() error { return errors.New("the connection has ended") }

// errorFrame returns the broker's ERROR frame inside err, or nil. The library also makes such frames itself, to report
// the end of a connection: they have a nil body, while a received frame has at least an empty one.
func errorFrame(err error) *frame.Frame {
	var value stomp.Error
	var pointer *stomp.Error // of a subscription
	switch {
	case errors.As(err, &pointer):
		value = *pointer
	case !errors.As(err, &value):
		return nil
	}
	if f := value.Frame; f != nil && f.Command == frame.ERROR && f.Body != nil {
		return f
	}
	return nil
}

// said returns the broker's error, of the operation op, if err is about an ERROR frame; else nil.
func (d *dialect) said(op string, err error) *driver.Error {
	f := errorFrame(err)
	if f == nil {
		return nil
	}
	e := protocol.STOMPError(d.broker, f.Header.Get(frame.Message), f.Body)
	e.Op = op
	return e
}

// explain returns why a connection can no longer be used for op: the broker's reason, or that it was lost.
func (d *dialect) explain(op string, err error) *driver.Error {
	if e := d.said(op, err); e != nil {
		e.Class = driver.ClassClosedByBroker.LossBy(e.Class)
		return e
	}
	return lost(op, err)
}
