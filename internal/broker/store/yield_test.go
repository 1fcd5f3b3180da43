package store

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestYieldTellsTheOthers(t *testing.T) {
	t.Parallel()
	d, q := queue(New(Config{}), "Q")
	told := [2]int{}
	var c [2]*Consumer
	for i := range c {
		var err error
		c[i], err = q.Consume(nil, func() { told[i]++ })
		require.NoError(t, err)
		bodies, _ := take(c[i], 1)
		require.Empty(t, bodies)
	}
	sendNumbers(t, d, 1, 1)
	require.Equal(t, [2]int{1, 0}, told)
	c[0].Yield() // it was told, and has no use for it
	require.Equal(t, [2]int{1, 1}, told)
	bodies, _ := take(c[1], 2)
	require.Equal(t, []string{"1"}, bodies)

	c[1].Yield() // before it is told
	bodies, _ = take(c[0], 1)
	require.Empty(t, bodies)
	sendNumbers(t, d, 2, 2)
	require.Equal(t, [2]int{2, 1}, told)
}

// TestWhoHasEnoughIsNotTold: one that got all that it asked for although it waited (it looked without having been told)
// may have no use for the next message, which must not be left to it.
func TestWhoHasEnoughIsNotTold(t *testing.T) {
	t.Parallel()
	d, q := queue(New(Config{}), "Q")
	told := [2]int{}
	var c [2]*Consumer
	for i := range c {
		var err error
		c[i], err = q.Consume(nil, func() { told[i]++ })
		require.NoError(t, err)
		bodies, _ := take(c[i], 1)
		require.Empty(t, bodies)
	}
	sendNumbers(t, d, 1, 1)
	require.Equal(t, [2]int{1, 0}, told)
	bodies, _ := take(c[1], 1) // is quicker than the one that was told
	require.Equal(t, []string{"1"}, bodies)
	bodies, _ = take(c[0], 1)
	require.Empty(t, bodies)
	sendNumbers(t, d, 2, 2)
	require.Equal(t, [2]int{2, 0}, told)
}

// rig is a gate of a broker with queues for one message.
func rig(t *testing.T) (g *Gate, s *Store, frames chan string) {
	s = New(Config{Limit: 1})
	frames = make(chan string, 9)
	return &Gate{Done: make(chan struct{}), Write: func(b []byte) { frames <- string(b) }}, s, frames
}

func sendOne(s *Store, name string) *Destination {
	d, _ := queue(s, name)
	d.Send(message("x"))
	return d
}

// makeRoom receives the message of a queue.
func makeRoom(t *testing.T, s *Store, name string) {
	c, err := s.Queue(name).Consume(nil, func() {})
	if assert.NoError(t, err) {
		var got [1]Delivery
		assert.Equal(t, 1, c.Take(got[:]))
		c.Settle(got[0].ID, Accepted)
	}
}

// TestWithhold: answers of one destination are written together, in order, when it has room. Answers of another
// destination stay.
func TestWithhold(t *testing.T) {
	g, s, frames := rig(t)
	a, b := sendOne(s, "a"), sendOne(s, "b")
	g.Withhold(a, []byte("1"), 10)
	g.Withhold(b, []byte("2"), highWater-20)
	g.Withhold(a, []byte("3"), 10)
	assert.False(t, g.Shut())
	g.Withhold(b, []byte("4"), 1)
	assert.True(t, g.Shut())
	makeRoom(t, s, "a")
	assert.Equal(t, "13", <-frames)
	assert.False(t, g.Shut())
	assert.Empty(t, frames)
	g.Flush()
	assert.Equal(t, "24", <-frames)
	assert.Zero(t, g.bytes.Load())
}

func TestAwait(t *testing.T) {
	g, s, _ := rig(t)
	d := sendOne(s, "a")
	enough := make(chan time.Time, 1)
	enough <- time.Time{}
	require.NoError(t, g.Await(d, enough), "that was long enough")
	go makeRoom(t, s, "a")
	require.NoError(t, g.Await(d, nil), "there is room")
	done := make(chan struct{})
	g.Done = done
	close(done)
	require.ErrorIs(t, g.Await(sendOne(s, "b"), nil), net.ErrClosed)
}

// TestLinger: further input is discarded, so that the peer can read our last frame.
func TestLinger(t *testing.T) {
	peer, conn := net.Pipe()
	go func() {
		_, _ = io.WriteString(peer, strings.Repeat("x", 1<<16))
		_ = peer.Close()
	}()
	Linger(conn, time.Minute) // returns at the end
}
