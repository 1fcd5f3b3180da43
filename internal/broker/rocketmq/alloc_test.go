package rocketmq

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
	wire "github.com/perfmq/perfmq/internal/wire/rocketmq"
)

// sink is a connection that takes all and gives nothing.
type sink struct{ net.Conn }

func (sink) Read([]byte) (int, error)         { return 0, io.EOF }
func (sink) Write(b []byte) (int, error)      { return len(b), nil }
func (sink) Close() error                     { return nil }
func (sink) SetWriteDeadline(time.Time) error { return nil }
func (sink) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (sink) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }

// TestAllocations: a message that is sent costs itself and its texts, and one that is delivered nothing.
func TestAllocations(t *testing.T) {
	s := New(store.New(store.Config{Limit: 1000}), Options{Queues: 1})
	c := newConn(s, sink{})
	w := wire.Writer{}
	w.Begin(wire.ReqSendMessageV2, 0, 1, "")
	for _, f := range [][2]string{{"a", "p"}, {"b", "T"}, {"e", "0"}, {"f", "0"}, {"g", "1700000000000"}, {"i", "time\x0112\x02UNIQ_KEY\x01id\x02"}, {"m", "false"}} {
		w.Text(f[0], f[1])
	}
	w.End(1024)
	w.B = append(w.B, make([]byte, 1024)...)
	send := func() {
		require.NoError(t, c.frame(w.B[4:]))
		require.NoError(t, c.flush())
	}
	for range 2000 { // until all buffers are there
		send()
	}
	require.LessOrEqual(t, testing.AllocsPerRun(500, send), 2.0)

	p := &pull{c: c, q: s.findTopic([]byte("T")).queue(0), max: 32, deadline: time.Now().Add(time.Hour)}
	first, _ := p.q.limits()
	pull := func() {
		p.offset = first + 300
		c.written.B = c.written.B[:0]
		require.True(t, c.answerPull(&c.written, p))
	}
	first, _ = p.q.limits()
	pull()
	require.Zero(t, testing.AllocsPerRun(100, pull))
	c.release()
	s.Close()
}
