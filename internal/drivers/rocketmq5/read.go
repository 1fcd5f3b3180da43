package rocketmq5

import (
	"errors"
	"fmt"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

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
		size := wire.HeadSize + int(h.Length)
		if b, err = c.In.Peek(size); err != nil {
			return err
		}
		if err = c.frame(h, b[wire.HeadSize:]); err != nil {
			return err
		}
		_, _ = c.In.Discard(size) // they are buffered
	}
}

func malformed(format string, args ...any) *driver.Error {
	return driver.Errorf(driver.ClassProtocol, "", transport.HintProxy, "the proxy sends "+format, args...)
}

// frame handles a frame.
func (c *conn) frame(h http2.FrameHeader, b []byte) (err error) {
	switch h.Type {
	case http2.FrameData:
		err = c.data(h, b)
	case http2.FrameHeaders:
		err = c.header(h, b)
	case http2.FrameRSTStream:
		err = c.reset(h, b)
	case http2.FrameSettings:
		if !h.Flags.Has(http2.FlagSettingsAck) {
			err = c.settings(b)
		}
	case http2.FramePushPromise, http2.FrameContinuation: // of more headers than we accept
		return malformed("what we did not ask for: %w", wire.ErrFrame)
	case http2.FramePing:
		if len(b) != wire.PingSize {
			err = wire.ErrFrame
		} else if !h.Flags.Has(http2.FlagPingAck) {
			err = c.Gather(func(out []byte) []byte {
				return append(wire.AppendHead(out, wire.PingSize, http2.FramePing, http2.FlagPingAck, 0), b...)
			})
		}
	case http2.FrameGoAway:
		return c.goneAway(b)
	case http2.FrameWindowUpdate:
		err = c.enlarge(h.StreamID, b)
	}
	if err == nil || errors.As(err, new(*driver.Error)) {
		return err
	}
	return malformed("a frame of type %d: %w", h.Type, err)
}

func (c *conn) settings(b []byte) error {
	table := uint32(wire.HeaderTable)
	c.mu.Lock()
	err := wire.EachSetting(b, func(s http2.Setting) {
		value := s.Val
		switch s.ID {
		case http2.SettingHeaderTableSize:
			table = min(table, value)
		case http2.SettingMaxConcurrentStreams:
			c.maxStreams = int(min(value, lastStream))
		case http2.SettingMaxFrameSize:
			c.maxFrame = int(min(max(value, wire.LeastMaxFrame), wire.MostMaxFrame))
		case http2.SettingInitialWindowSize:
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
		return wire.AppendHead(out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
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
func (c *conn) data(h http2.FrameHeader, b []byte) error {
	if c.taken += int(h.Length); c.taken >= connWindow/2 {
		n := uint32(c.taken) //nolint:gosec // little more than the window
		c.taken = 0
		_ = c.Gather(func(out []byte) []byte { return wire.AppendWord(out, http2.FrameWindowUpdate, 0, n) })
	}
	s := c.find(h.StreamID)
	if s == nil {
		return nil // an answer that came too late
	}
	p, err := wire.Payload(h, b)
	if err != nil {
		return err
	}
	if err := c.assemble(s, p); err != nil {
		return err
	}
	if h.Flags.Has(http2.FlagDataEndStream) {
		c.finish(s, h.StreamID, malformed("an answer without a status"))
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
func (c *conn) header(h http2.FrameHeader, b []byte) error {
	block, err := wire.Payload(h, b)
	if err != nil {
		return err
	}
	a, err := c.headers.Read(block)
	if err != nil {
		return err
	}
	s := c.find(h.StreamID)
	if s == nil {
		return nil
	}
	first := !s.began
	s.began = true
	if first && (a.HTTP != "200" || !a.GRPC) && !a.Ended {
		return driver.Errorf(driver.ClassProtocol, "", hintNotProxy,
			"the server speaks HTTP/2, but not gRPC: it answers with status %s", transport.Clip(a.HTTP, maxName))
	}
	if !h.Flags.Has(http2.FlagHeadersEndStream) {
		return nil
	}
	switch {
	case a.Broken || !a.Ended:
		err = malformed("an answer without a status")
	case a.Status != codes.OK:
		err = statusError(a)
	case !s.whole && s.many == nil:
		err = malformed("no answer, and no reason for it")
	}
	c.finish(s, h.StreamID, err)
	return nil
}

// reset takes a frame RST_STREAM.
func (c *conn) reset(h http2.FrameHeader, b []byte) error {
	code, err := wire.ParseWord(b)
	if err != nil {
		return err
	}
	if s := c.find(h.StreamID); s != nil {
		state := driver.Unknown
		if http2.ErrCode(code) == http2.ErrCodeRefusedStream {
			state = driver.Failed
		}
		c.finish(s, h.StreamID, &refused{driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog,
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
