package rocketmq5

import (
	"cmp"
	"errors"

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
		err := c.frame()
		switch {
		case err == nil:
		case errors.Is(err, http2.ErrFrameTooLarge), errors.Is(err, wire.ErrHeaders), errors.Is(err, errFrame),
			errors.As(err, new(http2.ConnectionError)), errors.As(err, new(http2.StreamError)):
			return malformed("a malformed frame: %w", cmp.Or(c.frames.ErrorDetail(), err))
		default:
			return err
		}
	}
}

// errFrame is for a frame that golang.org/x/net/http2 takes, but not a client as we are.
var errFrame = errors.New("it is not allowed, or we did not ask for it")

func malformed(format string, args ...any) *driver.Error {
	return driver.Errorf(driver.ClassProtocol, "", transport.HintProxy, "the proxy sends "+format, args...)
}

// frame reads and handles a frame. Those of each call are read in place, as the library allocates memory for headers.
func (c *conn) frame() error {
	h, err := c.frames.ReadFrameHeader()
	if err != nil {
		return err
	}
	if h.Type != http2.FrameData && h.Type != http2.FrameHeaders {
		f, err := c.frames.ReadFrameForHeader(h)
		if err == nil {
			err = c.control(f)
		}
		return err
	}
	b, err := c.In.Peek(int(h.Length))
	if err == nil {
		b, err = unpad(h, b)
	}
	switch {
	case err != nil:
	case h.Type == http2.FrameData:
		err = c.data(h, b)
	default:
		err = c.header(h, b)
	}
	_, _ = c.In.Discard(int(h.Length)) // they are buffered, unless there is an error
	return err
}

// unpad returns the payload of a frame DATA or HEADERS without padding, for which both have the same flag.
func unpad(h http2.FrameHeader, b []byte) ([]byte, error) {
	if !h.Flags.Has(http2.FlagDataPadded) {
		return b, nil
	}
	if len(b) == 0 || int(b[0]) >= len(b) {
		return nil, errFrame
	}
	return b[1 : len(b)-int(b[0])], nil
}

// control handles a frame of another type.
func (c *conn) control(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.RSTStreamFrame:
		c.reset(f)
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.settings(f)
		}
	case *http2.PushPromiseFrame:
		return errFrame
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.Gather(func(out []byte) []byte {
				return append(wire.AppendHead(out, len(f.Data), http2.FramePing, http2.FlagPingAck, 0), f.Data[:]...)
			})
		}
	case *http2.GoAwayFrame:
		return c.goneAway(f)
	case *http2.WindowUpdateFrame:
		return c.enlarge(f)
	}
	return nil
}

func (c *conn) settings(f *http2.SettingsFrame) error {
	table := uint32(wire.HeaderTable)
	c.mu.Lock()
	_ = f.ForeachSetting(func(s http2.Setting) error {
		switch s.ID {
		case http2.SettingHeaderTableSize:
			table = min(table, s.Val)
		case http2.SettingMaxConcurrentStreams:
			c.maxStreams = int(min(s.Val, lastStream))
		case http2.SettingMaxFrameSize:
			c.maxFrame = int(min(max(s.Val, wire.LeastMaxFrame), wire.MostMaxFrame))
		case http2.SettingInitialWindowSize:
			change := int64(min(s.Val, wire.MaxWindow)) - c.initial
			c.initial += change
			for _, s := range c.streams {
				s.window += change
			}
		}
		return nil
	})
	c.wake()
	c.mu.Unlock()
	return c.Gather(func(out []byte) []byte {
		if table < wire.HeaderTable {
			c.encoder.SetMaxDynamicTableSizeLimit(table)
			c.changes++
		}
		return wire.AppendHead(out, 0, http2.FrameSettings, http2.FlagSettingsAck, 0)
	})
}

// enlarge takes a frame WINDOW_UPDATE.
func (c *conn) enlarge(f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	window := &c.window
	if f.StreamID != 0 {
		s := c.streams[f.StreamID]
		if s == nil {
			return nil
		}
		window = &s.window
	}
	c.wake()
	if *window += int64(f.Increment); *window > wire.MaxWindow {
		return errFrame
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
	if err := c.assemble(s, b); err != nil {
		return err
	}
	if h.Flags.Has(http2.FlagDataEndStream) {
		c.finish(s, h.StreamID, malformed("an answer without a status"))
	}
	return nil
}

// assemble cuts the bytes of a stream into messages.
func (c *conn) assemble(s *stream, b []byte) error {
	limit := maxAnswer
	if s.many != nil {
		limit = c.maxMessage
	}
	whole := len(s.part) == 0
	if !whole {
		s.part = append(s.part, b...)
		b = s.part
	}
	for len(b) >= wire.PrefixSize {
		size, err := sizeOf(b, limit)
		if err == nil && len(b) < size {
			break
		}
		if err == nil {
			err = c.message(s, b[wire.PrefixSize:size])
		}
		if err != nil {
			return err
		}
		b = b[size:]
	}
	if whole || len(b) < len(s.part) {
		s.part = append(s.part[:0], b...)
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

// header takes a block of headers, or of trailers. We told the proxy that it must fit into a frame, and only clients
// give priorities.
func (c *conn) header(h http2.FrameHeader, b []byte) error {
	if h.Flags&(http2.FlagHeadersEndHeaders|http2.FlagHeadersPriority) != http2.FlagHeadersEndHeaders {
		return errFrame
	}
	a, err := c.headers.Read(b)
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
func (c *conn) reset(f *http2.RSTStreamFrame) {
	if s := c.find(f.StreamID); s != nil {
		state := driver.Unknown
		if f.ErrCode == http2.ErrCodeRefusedStream {
			state = driver.Failed
		}
		c.finish(s, f.StreamID, &refused{driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog,
			"the proxy ended the call (%s)", f.ErrCode), state})
	}
}

// goneAway takes a frame GOAWAY: what the proxy will not process has failed, and the connection ends.
func (c *conn) goneAway(f *http2.GoAwayFrame) error {
	reason := "the proxy closes the connection (" + f.ErrCode.String() + ")"
	if words := f.DebugData(); len(words) > 0 {
		reason += ": " + transport.Clip(string(words), maxWords)
	}
	why := driver.Errorf(driver.ClassClosedByBroker, "", transport.HintLog, "%s", reason)
	c.endCalls(&refused{why, driver.Failed}, func(s *stream) bool { return s.id > f.LastStreamID })
	return why
}
