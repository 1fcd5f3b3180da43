package rocketmq

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/broker/store"
)

// ask sends a question that any broker answers, and reads the answer.
func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	const header = `{"code":105,"opaque":1,"extFields":{"topic":"T"}}`
	b := binary.BigEndian.AppendUint32(nil, 4+uint32(len(header)))
	_, err := conn.Write(append(binary.BigEndian.AppendUint32(b, uint32(len(header))), header...))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, b)
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, binary.BigEndian.Uint32(b)))
	require.NoError(t, err)
}

// TestSilentClientsAreDead: a connection over which nothing comes ends, with the memberships of its client; one that
// speaks now and then does not, nor one that could not be read for as long as the broker stalled.
func TestSilentClientsAreDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(store.New(store.Config{}), Options{})
		defer s.Close()
		client, nc := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.Serve(nc)
		}()
		for range 20 {
			ask(t, client)
			pass(time.Minute)
		}
		s.store.Stall(time.Hour)
		ask(t, client)
		start := time.Now()
		<-ended
		assert.InDelta(t, idleTimeout.Seconds(), time.Since(start).Seconds(), idleTimeout.Seconds()/8)
		_, err := client.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// TestSilentFromTheStart: connections end without a request, within an endless request, and when the client does not
// read the answers.
func TestSilentFromTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		says func(t *testing.T, client net.Conn)
		most time.Duration
	}{
		"nothing": {func(*testing.T, net.Conn) {}, firstTimeout},
		"half a request": {func(_ *testing.T, client net.Conn) {
			_, _ = client.Write([]byte{0, 0, 1, 0, 0, 0})
		}, firstTimeout},
		"a drop now and then, from the start": {func(_ *testing.T, client net.Conn) {
			for _, err := client.Write([]byte{0, 0, 1, 0}); err == nil; _, err = client.Write([]byte{1}) {
				pass(time.Second)
			}
		}, firstTimeout + time.Second},
		"a drop now and then, later": {func(t *testing.T, client net.Conn) {
			ask(t, client)
			for _, err := client.Write([]byte{0, 0, 1, 0}); err == nil; _, err = client.Write([]byte{1}) {
				pass(time.Second)
			}
		}, 2*time.Minute + 20*time.Second},
		"and reads nothing": {func(_ *testing.T, client net.Conn) {
			const header = `{"code":105,"opaque":1,"extFields":{"topic":"T"}}`
			b := binary.BigEndian.AppendUint32(nil, 4+uint32(len(header)))
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(header))), header...)
			for _, err := client.Write(b); err == nil; _, err = client.Write(b) {
				pass(time.Millisecond)
			}
		}, 2*time.Minute + 20*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(store.New(store.Config{}), Options{})
				defer s.Close()
				client, nc := net.Pipe()
				defer client.Close()
				ended := make(chan struct{})
				start := time.Now()
				go func() {
					defer close(ended)
					s.Serve(nc)
				}()
				c.says(t, client)
				<-ended
				assert.LessOrEqual(t, time.Since(start), c.most+idleTimeout/8)
				used, _ := s.store.Memory()
				assert.Zero(t, used)
			})
		})
	}
}
