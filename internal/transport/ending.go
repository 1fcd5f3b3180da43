package transport

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

// ErrClosed is the cause of the end of a connection that we closed.
var ErrClosed = errors.New("the connection was closed")

// Hints about a broker that gives no reason, or a wrong one.
const (
	HintLog   = "look into the broker's log"
	HintProxy = HintLog + "; see also whether a proxy on the way changes its messages"
	HintAlive = "is the broker still running?"
	hintSlow  = "is the broker overloaded or paused? See also --connect-timeout"

	HintLarger = "--max-message-size SIZE accepts larger messages"
)

// TooLarge returns the error about something with more bytes than perfmq takes, such as "a message of".
func TooLarge[N int | uint64](op, what string, size, limit N) error {
	return driver.Errorf(driver.ClassTooLarge, op, HintLarger,
		"the broker sends %s %d bytes; perfmq accepts at most %d", what, size, limit)
}

// Explain describes in plain words why a connection can no longer be used for op. A [driver.Error] keeps its words. It
// returns nil for nil.
func Explain(op string, err error) error {
	var known *driver.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		if known.Op != "" {
			return err
		}
		return &driver.Error{Class: known.Class, Op: op, Hint: known.Hint, Err: known.Err}
	case errors.Is(err, ErrClosed):
		return driver.Errorf(driver.ClassConnectionLost, op, "perfmq closed the connection",
			"%w", err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return driver.Errorf(driver.ClassTimeout, op, hintSlow,
			"no answer from the broker: %w", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return driver.Errorf(driver.ClassConnectionLost, op, HintLog,
			"the broker closed the connection without saying why (%w)", err)
	default:
		return driver.Errorf(driver.ClassConnectionLost, op, HintAlive, "the connection broke: %w", err)
	}
}

// Clip shortens a text of a broker to at most that many bytes.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
