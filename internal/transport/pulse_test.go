package transport_test

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/transport"
)

var errSilent = errors.New("silent")

// pulsed is a connection whose peer is the test.
type pulsed struct {
	*transport.Ending
	transport.Pulse
	raw   *transport.Metered
	far   net.Conn
	heard atomic.Uint32
	beats chan time.Duration // since the beginning
}

// newPulsed returns a connection on which nothing is read yet.
func newPulsed(owed, patience time.Duration) *pulsed {
	near, far := net.Pipe()
	p := &pulsed{
		raw: transport.Meter(near), far: far, Ending: transport.NewEnding(), beats: make(chan time.Duration, 1000),
	}
	out := transport.NewOutput(p.raw, p.raw, new(transport.Buffers), func(error) {})
	p.Pulse = transport.Pulse{
		Ending: p.Ending, Out: out, In: p.raw, Heard: &p.heard, Owed: owed, Patience: patience,
		Beat: func() {
			_ = out.Put(func(b []byte) []byte { return append(b, '\n') })
			out.Flush()
		},
		Silent: func() { p.Fail(errSilent, out, p.raw) },
	}
	began := time.Now()
	go func() {
		for b := make([]byte, 1); ; {
			if _, err := far.Read(b); err != nil {
				return
			}
			p.beats <- time.Since(began)
		}
	}()
	p.Start()
	return p
}

// read reads until the connection ends.
func (p *pulsed) read() {
	for b := make([]byte, 1); ; p.heard.Add(1) {
		if _, err := p.raw.Read(b); err != nil {
			return
		}
	}
}

func (p *pulsed) end() {
	p.Stop()
	_, _ = p.raw.Close(), p.far.Close()
}

// TestPulseBeats: the peer hears from us in time, until Stop.
func TestPulseBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulsed(time.Second, 0)
		<-time.After(time.Minute)
		last, beats := time.Duration(0), len(p.beats)
		require.Less(t, beats, 150, "no more often than need be")
		for range beats {
			at := <-p.beats
			require.Less(t, at-last, time.Second)
			last = at
		}
		require.Greater(t, last, 59*time.Second)
		require.NoError(t, p.Why())
		p.Stop()
		<-time.After(time.Minute)
		require.Empty(t, p.beats)
		p.end()
	})
}

// TestPulseIsSilent: only the time counts in which the reader waits for the peer, and only if it hears nothing.
func TestPulseIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulsed(0, time.Second)
		<-time.After(time.Hour)
		require.NoError(t, p.Why(), "the reader was busy elsewhere")
		go p.read()
		for range 100 {
			<-time.After(900 * time.Millisecond)
			_, err := p.far.Write([]byte{1})
			require.NoError(t, err)
		}
		silent := time.Now()
		<-p.Over()
		require.ErrorIs(t, p.Why(), errSilent)
		require.GreaterOrEqual(t, time.Since(silent), time.Second)
		require.LessOrEqual(t, time.Since(silent), 1500*time.Millisecond)
		require.Empty(t, p.beats, "the peer wants none")
		p.end()
	})
}

// TestPulseOfNothing: a connection whose sides want nothing of each other has no timer.
func TestPulseOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulsed(0, 0)
		go p.read()
		<-time.After(time.Hour)
		require.NoError(t, p.Why())
		require.Empty(t, p.beats)
		p.end()
	})
}
