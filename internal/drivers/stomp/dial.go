package stomp

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// dial opens a connection to the first host that accepts it.
func (d *stompDriver) dial(ctx context.Context, spec driver.Connection) (*connection, error) {
	return transport.Dial(ctx, protocol.STOMP(), &d.cfg, &spec, func(
		ctx context.Context, host transport.Endpoint, conn net.Conn, raw *transport.Metered,
	) (*connection, error) {
		limit := transport.TimeLeft(ctx)
		c := newConnection(d, host, conn, raw, cmp.Or(spec.ClientID, spec.Name))
		if err := c.Shake(ctx, func() error { return c.shakeHands(&d.cfg) }); err != nil {
			if driver.ClassOf(err) == driver.ClassTimeout {
				err = protocol.STOMP().Unanswered("CONNECT", d.cfg.Target.TLS, limit, err)
			}
			return nil, err
		}
		c.start()
		return c, nil
	})
}

// shakeHands sends CONNECT and reads CONNECTED (STOMP 1.2, "Connecting").
func (s *connection) shakeHands(c *transport.Settings[Options]) error {
	if _, err := s.Net.Write(connectFrame(c, s.identity).Append(nil)); err != nil {
		return err
	}
	f, err := s.greeting(c)
	if err != nil {
		return err
	}
	s.server = string(f.Get("server"))
	s.dialect = dialect(protocol.STOMPBroker(s.server))
	if version := f.Get("version"); string(version) != wire.Version {
		return driver.Errorf(driver.ClassProtocol, "", lookAtBroker,
			"the broker chose version %q, which was not offered", clip(version))
	}
	s.driver.Tell(protocol.STOMPServer(s.server))
	if value := f.Get("heart-beat"); value != nil && c.Options.HeartBeat > 0 {
		canSend, wants, ok := wire.ParseHeartBeat(string(value))
		if !ok {
			return driver.Errorf(driver.ClassProtocol, "", "leave heart-beats out by -o heart-beat=0",
				"the broker sent the heart-beat %q: invalid heart-beat", clip(value))
		}
		if wants > 0 {
			s.sendEvery = max(c.Options.HeartBeat, wants)
		}
		if canSend > 0 {
			s.hearEvery = max(c.Options.HeartBeat, canSend)
		}
	}
	return nil
}

// greeting reads the answer to CONNECT.
func (s *connection) greeting(c *transport.Settings[Options]) (*wire.Received, error) {
	// The first byte distinguishes a broker from another server, which may never send a whole frame.
	head, err := s.In.Peek(1)
	if err != nil {
		return nil, err
	}
	if !strings.ContainsRune("CE\r\n", rune(head[0])) {
		head, _ = s.In.Peek(s.In.Buffered())
		return nil, protocol.STOMP().Stranger(c.Target.TLS, head)
	}
	f, err := s.next("is this the broker's STOMP port?")
	switch {
	case err != nil:
		return nil, err
	case f.Command == wire.ERROR:
		e := errorFrame("", f)
		if e.Class == driver.ClassOther {
			e.Class = driver.ClassConnect
		}
		return nil, e
	case f.Command != wire.CONNECTED:
		return nil, driver.Errorf(driver.ClassProtocol, "", lookAtBroker,
			"the broker did not answer CONNECT, but sent something else")
	}
	return f, nil
}

func connectFrame(c *transport.Settings[Options], identity string) *wire.Frame {
	f := wire.NewFrame(wire.CONNECT, "accept-version", wire.Version, "host", c.Options.VirtualHost)
	if c.Options.HeartBeat > 0 {
		ms := strconv.FormatInt(c.Options.HeartBeat.Milliseconds(), 10)
		f.Add("heart-beat", ms+","+ms)
	}
	if c.Target.User != "" || c.Target.Password != "" {
		f.Add("login", c.Target.User)
		f.Add("passcode", c.Target.Password)
	}
	if identity != "" {
		f.Add("client-id", identity)
	}
	return f
}
