package goamqp

import (
	"context"
	"sync/atomic"
	"time"
)

// handover is the context under which one message is handed to the library. It answers the one question that the
// library's errors do not: can this message have left?
//
// The library (v1.7.0) looks at a send's context in three places, and handover answers differently in each:
//
//   - Sender.send asks Done for each frame of the message, to give up waiting for credit. Only the first frame gets the
//     caller's channel: giving up in the middle of a message would leave half a delivery on the link.
//   - Conn.connWriter asks Err right before it writes a frame. The first time this marks the message as taken; from
//     then on it may have left. If the sender has given the message up before, the frame is refused.
//   - Conn.connWriter asks Deadline for the deadline of the write. There is none: a write that times out costs the
//     whole connection and all that is in flight on it.
//
// A test holds the library to that.
type handover struct {
	credit <-chan struct{} // ends the wait for credit
	asked  bool            // used by the sending goroutine only
	state  atomic.Int32
}

const (
	handoverOpen     = iota
	handoverTaken    // the connection's writer has taken the message
	handoverRecalled // the message will not be written
)

var _ context.Context = (*handover)(nil)

// begin prepares for the next message, whose wait for credit ends with done.
func (h *handover) begin(done <-chan struct{}) {
	h.credit, h.asked = done, false
	h.state.CompareAndSwap(handoverTaken, handoverOpen) // recalled is for good: the link has ended
}

// recall reports whether the message has not left; if so it never will, nor will a later one.
func (h *handover) recall() bool {
	return h.state.CompareAndSwap(handoverOpen, handoverRecalled) || h.state.Load() == handoverRecalled
}

func (h *handover) Done() <-chan struct{} {
	if h.asked {
		return nil
	}
	h.asked = true
	return h.credit
}

func (h *handover) Err() error {
	if h.state.CompareAndSwap(handoverOpen, handoverTaken) || h.state.Load() == handoverTaken {
		return nil
	}
	return context.Canceled
}

func (*handover) Deadline() (time.Time, bool) { return time.Time{}, false }

func (*handover) Value(any) any { return nil }
