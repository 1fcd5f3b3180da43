//go:build unix

package rocketmq

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestOtherServers: the error names the server that answered.
func TestOtherServers(t *testing.T) {
	for name, c := range map[string]struct {
		greeting string
		class    driver.Class
		text     string
	}{
		"gRPC":   {"\x00\x00\x0c\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04\x00\x10\x00\x00", driver.ClassProtocol, "HTTP/2, as gRPC"},
		"empty":  {"\x00\x00\x00\x04\x00\x00\x00\x00\x00", driver.ClassProtocol, "HTTP/2"},
		"HTTP":   {"HTTP/1.1 400 Bad Request\r\n\r\n", driver.ClassProtocol, `it answered "HTTP`},
		"AMQP":   {"AMQP\x00\x01\x00\x00", driver.ClassProtocol, `it answered "AMQP`},
		"STOMP":  {"ERROR\nmessage:x\n\n\x00", driver.ClassProtocol, `it answered "ERROR`},
		"TLS":    {"\x15\x03\x03\x00\x02\x02\x32", driver.ClassProtocol, "no RocketMQ broker"},
		"closes": {"", driver.ClassConnectionLost, "closed the connection before it said anything"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, stop := greet(t, c.greeting)
			defer stop()
			d := openDriver(t, url)
			_, err := d.Producer(t.Context(), producerSpec(topicNamed("t"), 1), &outcomes{})
			require.Equal(t, c.class, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, c.text)
			require.NotEmpty(t, driver.HintOf(err))
		})
	}
}

// greet starts a server that answers the first bytes of each connection with a greeting, and closes it.
func greet(t *testing.T, greeting string) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 1024)
			_, _ = c.Read(b)
			_, _ = c.Write([]byte(greeting))
			_ = c.(*net.TCPConn).CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(patience))
			for err == nil { // a reset could outrun the greeting
				_, err = c.Read(b)
			}
			_ = c.Close()
		}
	})
	return "rocketmq://" + l.Addr().String(), func() {
		_ = l.Close()
		serving.Wait()
	}
}

// TestSilentServer: a server that waits for the bytes of another protocol, such as AMQP, is not called overloaded.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, theirs := piped()
		c.addr = "127.0.0.1:9876"
		go func() { _, _ = io.Copy(io.Discard, theirs) }()
		defer c.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.call(ctx, wire.ReqGetRouteInfoByTopic, nil, nil)
		require.Equal(t, driver.ClassTimeout, driver.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "did not answer the first question within")
		require.Contains(t, driver.HintOf(err), "is this the broker's RocketMQ port")
	})
}

// TestBrokerOrNameServer: the error says which of them the address is.
func TestBrokerOrNameServer(t *testing.T) {
	for name, c := range map[string]struct {
		unknown int // request
		text    string
		hint    string
	}{
		"broker":      {wire.ReqGetRouteInfoByTopic, "is a RocketMQ broker, not a name server", "name server"},
		"name server": {wire.ReqHeartBeat, "is a RocketMQ name server, not a broker", "broker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTold(t, version55)
			p.unknown = c.unknown
			d := p.open()
			_, err := d.Producer(t.Context(), producerSpec(topicNamed("t"), 1), &outcomes{})
			require.Equal(t, driver.ClassProtocol, driver.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, c.text)
			require.Contains(t, driver.HintOf(err), c.hint)
			_, err = d.Consumer(t.Context(), consumerSpec(topicNamed("t")))
			require.ErrorContains(t, err, c.text)
		})
	}
}
