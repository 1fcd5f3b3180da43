package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Class is a kind of failure, the same for all protocols. Failures are counted by class.
type Class uint8

// The classes of failures.
const (
	ClassNone           Class = iota // no failure
	ClassConnect                     // no connection could be made
	ClassAuth                        // the broker rejects the credentials, or the user lacks the permission
	ClassTLS                         // the TLS handshake failed
	ClassNotFound                    // the destination does not exist
	ClassFull                        // a limit of the broker was reached: queue full, quota used up
	ClassTooLarge                    // the message is larger than the broker or link allows
	ClassTimeout                     // no answer in time
	ClassConnectionLost              // the connection ended
	ClassClosedByBroker              // the broker closed the link, session or subscription
	ClassUnsupported                 // the broker lacks the requested feature
	ClassProtocol                    // the peer broke the protocol, or reports that we did
	ClassOther                       // anything else
	NumClasses                       // the number of classes, for tables indexed by Class
)

// String returns the class as it is printed and exported: lower case, words joined by hyphens.
func (c Class) String() string {
	names := [NumClasses]string{
		"none", "connect", "auth", "tls", "not-found", "full", "too-large", "timeout",
		"connection-lost", "closed-by-broker", "unsupported", "protocol", "other",
	}
	if c < NumClasses {
		return names[c]
	}
	return "invalid"
}

// Permanent reports whether a new connection cannot mend a failure of the class.
func (c Class) Permanent() bool {
	return slices.Contains([]Class{ClassAuth, ClassNotFound, ClassTooLarge, ClassUnsupported}, c)
}

// LossBy returns the class of the end of an open connection, session, link or subscription that the broker ended for a
// reason of class reason: the loss c, which is [ClassConnectionLost] or [ClassClosedByBroker], unless the reason is
// permanent.
func (c Class) LossBy(reason Class) Class {
	if reason.Permanent() {
		return reason
	}
	return c
}

// Error is a failure with its class and, where the user can do something, a hint.
type Error struct {
	Class Class
	// Op is the operation that failed: "open receiver on queue://A".
	Op string
	// Hint advises the user on the next step; it may be empty.
	Hint string
	Err  error
}

// Error returns "op: cause".
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an [*Error]; format and args are as in [fmt.Errorf].
func Errorf(class Class, op, hint, format string, args ...any) *Error {
	return &Error{Class: class, Op: op, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// ClassOf returns the class of the outermost [*Error] in the chain of err, or the class that follows from the errors of
// the standard library. It is ClassNone for nil.
func ClassOf(err error) Class {
	var de *Error
	var ne net.Error
	switch {
	case err == nil:
		return ClassNone
	case errors.As(err, &de):
		return de.Class
	case errors.Is(err, syscall.ECONNREFUSED):
		return ClassConnect
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &ne) && ne.Timeout():
		return ClassTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ClassConnectionLost
	default:
		return ClassOther
	}
}

// HintOf returns the hints in err's tree, outermost first, joined by "; ". It is empty when there are none.
func HintOf(err error) string {
	var hints []string
	var walk func(error)
	walk = func(err error) {
		if e, ok := err.(*Error); ok && e.Hint != "" { //nolint:errorlint // each layer is looked at in turn
			hints = append(hints, e.Hint)
		}
		switch u := err.(type) { //nolint:errorlint // each layer is looked at in turn
		case interface{ Unwrap() error }:
			if inner := u.Unwrap(); inner != nil {
				walk(inner)
			}
		case interface{ Unwrap() []error }:
			for _, inner := range u.Unwrap() {
				walk(inner)
			}
		}
	}
	if err != nil {
		walk(err)
	}
	return strings.Join(hints, "; ")
}
