package rocketmq5

import (
	"errors"
	"fmt"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq5"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// run reads until the connection ends, and ends all its calls.
func (c *conn) run() {
	c.Fail(c.read())
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.endCalls(c.Why(), func(*stream) bool { return true })
}

func (c *conn) read() error {
	for {
		b, err := c.In.Peek(wire.HeadSize)
		if err != nil {
			return err
		}
		h := wire.ParseHead(b)
		if h.Length > wire.LeastMaxFrame {
			return malformed("a frame of %d bytes: %w", h.Length, wire.ErrFrame)
		}
		if b, err = c.In.Peek(wire.HeadSize + h.Length); err != nil {
			return err
		}
		if err = c.frame(h, b[wire.HeadSize:]); err != nil {
			return err
		}
		_, _ = c.In.Discard(wire.HeadSize + h.Length) // they are buffered
	}
}

func malformed(format string, args ...any) *driver.Error {
	return driver.Errorf(driver.ClassProtocol, "", transport.HintProxy, "the proxy sends "+format, args...)
}

// frame handles a frame.
func (c *conn) frame(h wire.Head, b []byte) (err error) {
	switch h.Type {
	case wire.FrameData:
		err = c.data(h, b)
	case wire.FrameHeaders:
		err = c.header(h, b)
	case wire.FrameReset:
		err = c.reset(h, b)
	case wire.FrameSettings:
		if h.Flags&wire.FlagAck == 0 {
			err = c.settings(b)
		}
	case wire.FramePush, wire.FrameContinuation: // of more headers than we accept
		return malformed("what we did not ask for: %w", wire.ErrFrame)
	case wire.FramePing:
		if len(b) != wire.PingSize {
			err = wire.ErrFrame
		} else if h.Flags&wire.FlagAck == 0 {
			err = c.Gather(func(out []byte) []byte {
				head := wire.Head{Length: wire.PingSize, Type: wire.FramePing, Flags: wire.FlagAck}
				return append(wire.AppendHead(out, head), b...)
			})
		}
	case wire.FrameGoAway:
		return c.goneAway(b)
	case wire.FrameWindow:
		err = c.enlarge(h.Stream, b)
	}
	if err == nil || errors.As(err, new(*driver.Error)) {
		return err
	}
	return malformed("a frame of type %d: %w", h.Type, err)
}

func (c *conn) settings(b []byte) error {
	table := uint32(wire.HeaderTable)
	c.mu.Lock()
	err := wire.EachSetting(b, func(setting uint16, value uint32) {
		switch setting {
		case wire.SettingHeaderTable:
			table = min(table, value)
		case wire.SettingMaxStreams:
			c.maxStreams = int(min(value, lastStream))
		case wire.SettingMaxFrame:
			c.maxFrame = int(min(max(value, wire.LeastMaxFrame), wire.MostMaxFrame))
		case wire.SettingWindow:
			change := int64(min(value, wire.MaxWindow)) - c.initial
			c.initial += change
			for _, s := range c.streams {
				s.window += change
			}
		}
	})
	c.wake()
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.Gather(func(out []byte) []byte {
		if table < wire.HeaderTable {
			c.encoder.SetMaxDynamicTableSizeLimit(table)
			c.changes++
		}
		return wire.AppendHead(out, wire.Head{Type: wire.FrameSettings, Flags: wire.FlagAck})
	})
}

// enlarge takes a frame WINDOW_UPDATE.
func (c *conn) enlarge(id uint32, b []byte) error {
	n, err := wire.ParseWord(b)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	window := &c.window
	if id != 0 {
		s := c.streams[id]
		if s == nil {
			return nil
		}
		window = &s.window
	}
	c.wake()
	if *window += int64(n); *window > wire.MaxWindow {
		return wire.ErrFrame
	}
	return nil
}

// find returns the stream with that number; nil if it has ended.
func (c *conn) find(id uint32) *stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[id]
}

// data takes a frame DATA.
func (c *conn) data(h wire.Head, b []byte) error {
	if c.taken += h.Length; c.taken >= connWindow/2 {
		n := uint32(c.taken) //nolint:gosec // little more than the window
		c.taken = 0
		_ = c.Gather(func(out []byte) []byte { return wire.AppendWord(out, wire.FrameWindow, 0, n) })
	}
	s := c.find(h.Stream)
	if s == nil {
		return nil // an answer that came too late
	}
	p, err := h.Payload(b)
	if err != nil {
		return err
	}
	if err := c.assemble(s, p); err != nil {
		return err
	}
	if h.Flags&wire.FlagEndStream != 0 {
		c.finish(s, h.Stream, malformed("an answer without a status"))
	}
	return nil
}

// assemble cuts the bytes of a stream into messages.
func (c *conn) assemble(s *stream, p []byte) error {
	limit := maxAnswer
	if s.many != nil {
		limit = c.maxMessage
	}
	for len(p) > 0 {
		if len(s.part) == 0 && len(p) >= wire.PrefixSize {
			size, err := sizeOf(p, limit)
			if err != nil {
				return err
			}
			if len(p) >= size {
				if err = c.message(s, p[wire.PrefixSize:size]); err != nil {
					return err
				}
				p = p[size:]
				continue
			}
		}
		size := wire.PrefixSize
		if len(s.part) >= wire.PrefixSize {
			size, _ = sizeOf(s.part, limit) // judged before
		}
		n := min(size-len(s.part), len(p))
		s.part, p = append(s.part, p[:n]...), p[n:]
		if len(s.part) < wire.PrefixSize {
			return nil
		}
		size, err := sizeOf(s.part, limit)
		if err == nil && len(s.part) == size {
			err = c.message(s, s.part[wire.PrefixSize:])
			s.part = s.part[:0]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the size of a message with its prefix.
func sizeOf(b []byte, limit int) (int, error) {
	n, ok := wire.ParsePrefix(b)
	switch {
	case !ok:
		return 0, malformed("a compressed message, which we did not ask for")
	case int64(n) > int64(limit):
		return 0, transport.TooLarge("", "an answer of", uint64(n), uint64(limit)) //nolint:gosec // a limit
	}
	return wire.PrefixSize + int(n), nil
}

// message passes a whole message on, or keeps it until the status comes.
func (c *conn) message(s *stream, b []byte) error {
	if s.many != nil {
		return s.many.take(b)
	}
	if s.whole {
		return malformed("two answers to one call")
	}
	s.whole, s.body = true, append(s.body[:0], b...)
	return nil
}

// header takes a block of headers, or of trailers.
func (c *conn) header(h wire.Head, b []byte) error {
	block, err := h.Payload(b)
	if err != nil {
		return err
	}
	a, err := c.headers.Read(block)
	if err != nil {
		return err
	}
	s := c.find(h.Stream)
	if s == nil {
		return nil
	}
	first := !s.began
	s.began = true
	if first && (a.HTTP != "200" || !a.GRPC) && a.Status < 0 {
		return driver.Errorf(driver.ClassProtocol, "", hintNotProxy,
			"the server speaks HTTP/2, but not gRPC: it answers with status %s", transport.Clip(a.HTTP, maxName))
	}
	if h.Flags&wire.FlagEndStream == 0 {
		return nil
	}
	switch {
	case a.Broken || a.Status < 0:
		err = malformed("an answer without a status")
	case a.Status != wire.StatusOK:
		err = statusError(a)
	case !s.whole && s.many == nil:
		err = malformed("no answer, and no reason for it")
	}
	c.finish(s, h.Stream, err)
	return nil
}

// reset takes a frame RST_STREAM.
func (c *conn) reset(h wire.Head, b []byte) error {
	code, err := wire.ParseWord(b)
	if err != nil {
		return err
	}
	if s := c.find(h.Stream); s != nil {
		state := driver.Unknown
		if code == wire.CodeRefusedStream {
			state = driver.Failed
		}
		c.finish(s, h.Stream, &refused{driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog,
			"the proxy ended the call (code %d)", code), state})
	}
	return nil
}

// refused is the end of a call about which the proxy has said more than that it failed.
type refused struct {
	cause *driver.Error
	state driver.State // of its message
}

// Error returns the cause.
func (r *refused) Error() string { return r.cause.Error() }

// Unwrap returns the cause.
func (r *refused) Unwrap() error { return r.cause }

// goneAway takes a frame GOAWAY: what the proxy will not process has failed, and the connection ends.
func (c *conn) goneAway(b []byte) error {
	last, code, words, err := wire.GoAway(b)
	if err != nil {
		return malformed("a frame GOAWAY: %w", err)
	}
	reason := fmt.Sprintf("the proxy closes the connection (code %d)", code)
	if len(words) > 0 {
		reason += ": " + transport.Clip(string(words), maxWords)
	}
	why := driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog, "%s", reason)
	c.endCalls(&refused{why, driver.Failed}, func(s *stream) bool { return s.id > last })
	return why
}
