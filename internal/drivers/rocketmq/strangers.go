package rocketmq

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// greet waits for the first frame. The error reports a server that is not RocketMQ.
func (c *conn) greet() error {
	const (
		size  = 4
		least = 9 // bytes of the first frame over HTTP/2
		shown = 20
	)
	first, err := c.In.Peek(size)
	if err != nil {
		if errors.Is(err, io.EOF) && c.In.Buffered() == 0 {
			return driver.Errorf(driver.ClassConnectionLost, "", notRocketMQ,
				"%s closed the connection before it said anything (%w)", c.addr, err)
		}
		return err
	}
	n := binary.BigEndian.Uint32(first)
	tooLong := c.checkLength(n)
	if tooLong == nil {
		if _, err = c.In.Peek(min(least, size+int(n))); err != nil {
			return err
		}
	}
	first, _ = c.In.Peek(min(c.In.Buffered(), shown))
	if transport.IsHTTP2(first) || tooLong != nil && isOther(first[:size]) {
		return c.notRocketMQ(protocol.RocketMQ().Stranger(c.tls, first))
	}
	if tooLong != nil {
		return driver.Errorf(driver.ClassProtocol, "", notRocketMQ,
			"the peer sends a frame of %d bytes; perfmq accepts %d to %d: %w",
			n, wire.MinFrame, c.maxFrame, wire.ErrFrame)
	}
	return nil
}

// isOther reports whether the first bytes of a peer are text, or an alert or handshake of TLS.
func isOther(first []byte) bool {
	const alert, handshake = 0x15, 0x16 // RFC 8446, section 5.1
	return first[0] == alert || first[0] == handshake ||
		!slices.ContainsFunc(first, func(b byte) bool { return b > '~' || b < ' ' && b != '\n' })
}

// notRocketMQ returns the error about a server that has not proven to be RocketMQ.
func (c *conn) notRocketMQ(err error) error {
	host, port, _ := net.SplitHostPort(c.addr) // dial has checked it
	return protocol.RocketMQ().ConnectError(transport.Endpoint{Host: host, Port: port}, err)
}

// misplaced returns the error about a request to the wrong kind of server; nil for other refusals.
func (c *conn) misplaced(request int, r *reply) error {
	switch {
	case r.Code != wire.ResRequestCodeNotSupported:
	case request == wire.ReqGetRouteInfoByTopic, request == wire.ReqGetBrokerClusterInfo:
		return driver.Errorf(driver.ClassProtocol, "",
			protocol.HintNameServer, "%s is a RocketMQ broker, not a name server", c.addr)
	case request == wire.ReqHeartBeat, request == wire.ReqUpdateAndCreateTopic:
		return driver.Errorf(driver.ClassProtocol, "",
			"give a broker's address (port 10911 by default), or leave out -o broker-address",
			"%s is a RocketMQ name server, not a broker", c.addr)
	}
	return nil
}
