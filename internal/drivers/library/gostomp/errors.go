package gostomp

import (
	"errors"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
)

// lost is the error of a connection that has ended by itself.
func lost(op string, err error) *driver.Error {
	return &driver.Error{Class: driver.ClassConnectionLost, Op: op, Hint: "is the broker still running?", Err: err}
}

// errorFrame returns the ERROR frame of the broker that err of the library is about; nil if there is none. The library
// tells of the end of a connection by such frames of its own: these have no body, where one that was read has an empty
// one at least.
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

// said returns what the broker says, if err of the library is about an ERROR frame; else nil.
func (d *dialect) said(err error) *driver.Error {
	f := errorFrame(err)
	if f == nil {
		return nil
	}
	says := "the broker says"
	if d.title != "" {
		says = d.title + " says"
	}
	return protocol.STOMPError(says, "create it on the broker, or let the broker create it", f.Header.Get(frame.Message),
		f.Body)
}

// explain tells why a connection cannot be used for op any more: as the broker says, or it was lost.
func (d *dialect) explain(op string, err error) *driver.Error {
	e := d.said(err)
	if e == nil {
		return lost(op, err)
	}
	e.Op = op
	return e
}
