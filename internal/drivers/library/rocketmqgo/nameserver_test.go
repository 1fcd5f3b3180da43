//go:build unix && !race

package rocketmqgo_test

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/drivers/library/rocketmqgo"
	"github.com/perfmq/perfmq/pkg/driver"
)

// TestBrokerAsNameServer: a broker, which does not know the request for a route, is no name server.
func TestBrokerAsNameServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go refuseAll(c)
		}
	}()
	f := rocketmqgo.Factory()
	d, err := f.Open(t.Context(), driver.OpenOptions{
		URL: "rocketmq://" + l.Addr().String(), ConnectTimeout: time.Minute, Options: f.NewOptions(),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close(t.Context())) }()
	_, err = d.Consumer(t.Context(), driver.ConsumerSpec{
		Destination: driver.Destination{Name: "any"}, Connection: driver.Connection{Key: "c", Name: "c"}, Name: "c",
	})
	require.ErrorContains(t, err, l.Addr().String()+": CODE: 3  DESC: request type not supported")
	require.Equal(t, driver.ClassConnect, driver.ClassOf(err))
	require.Contains(t, driver.HintOf(err), "give the address of a name server")
}

// refuseAll answers all requests as a broker does that does not know them.
func refuseAll(c net.Conn) {
	defer func() { _ = c.Close() }()
	for {
		var lengths [2]uint32 // of the frame, and of its header, which is JSON
		if binary.Read(c, binary.BigEndian, &lengths) != nil {
			return
		}
		rest := make([]byte, lengths[0]-4)
		if _, err := io.ReadFull(c, rest); err != nil {
			return
		}
		var request struct{ Opaque int32 }
		if json.Unmarshal(rest[:lengths[1]&0xffffff], &request) != nil {
			return
		}
		header, _ := json.Marshal(map[string]any{
			"code": 3, "language": "JAVA", "version": 0, "opaque": request.Opaque, "flag": 1,
			"remark": "request type not supported",
		})
		lengths = [2]uint32{uint32(len(header)) + 4, uint32(len(header))}
		if binary.Write(c, binary.BigEndian, lengths) != nil {
			return
		}
		if _, err := c.Write(header); err != nil {
			return
		}
	}
}
