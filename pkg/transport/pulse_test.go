package transport_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// pulsed is a connection with the test as its peer.
type pulsed struct {
	*transport.Conn
	far   net.Conn
	reads chan struct{}      // closed to let the reader read
	beats chan time.Duration // since the beginning
}

func newPulsed(t *testing.T, owed, patience time.Duration) *pulsed {
	t.Helper()
	near, far := net.Pipe()
	raw := transport.Meter(near)
	p := &pulsed{
		Conn: transport.NewConn(transport.Endpoint{}, raw, raw, new(transport.Buffers)),
		far:  far, reads: make(chan struct{}), beats: make(chan time.Duration, 1000),
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
	p.Start(func() {}, func() {
		select {
		case <-p.reads:
		case <-p.Over():
		}
		for {
			if _, err := p.In.Discard(1); err != nil {
				return
			}
			p.Heard.Add(1)
		}
	}, owed, patience, func(b []byte) []byte { return append(b, '\n') }, "-o beat")
	return p
}

func (p *pulsed) end(t *testing.T) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.Leave(ended, nil)
	_ = p.far.Close()
}

// TestPulseBeats: the peer hears from us in time, until the end.
func TestPulseBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulsed(t, time.Second, 0)
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
		p.end(t)
		<-time.After(time.Minute)
		require.Empty(t, p.beats)
	})
}

// TestPulseIsSilent: silence is the time in which the reader waits for the peer and hears nothing.
func TestPulseIsSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulsed(t, 0, time.Second)
		<-time.After(time.Hour)
		require.NoError(t, p.Why(), "the reader was busy elsewhere")
		close(p.reads)
		for range 100 {
			<-time.After(900 * time.Millisecond)
			_, err := p.far.Write([]byte{1})
			require.NoError(t, err)
		}
		silent := time.Now()
		<-p.Over()
		require.ErrorContains(t, p.Why(), "nothing was heard from the broker for 1s")
		require.Contains(t, driver.HintOf(p.Why()), "-o beat")
		require.GreaterOrEqual(t, time.Since(silent), time.Second)
		require.LessOrEqual(t, time.Since(silent), 1500*time.Millisecond)
		require.Empty(t, p.beats, "the peer wants none")
		p.end(t)
	})
}

// TestPulseOfNothing: without heartbeats and a limit there is no timer.
func TestPulseOfNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPulsed(t, 0, 0)
		close(p.reads)
		<-time.After(time.Hour)
		require.NoError(t, p.Why())
		require.Empty(t, p.beats)
		p.end(t)
	})
}
