package tcpproxy

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// Line delays bytes in order, as a TCP connection over a slow network does. It is fast until it is slowed down.
type Line struct {
	// Delay is added to each piece of a connection, Loss to one piece in LossOneIn: its retransmission takes that time,
	// and the pieces after it wait for it.
	Delay, Loss time.Duration
	LossOneIn   int

	slow atomic.Bool
}

// Slow slows the line down, or ends that.
func (l *Line) Slow(on bool) { l.slow.Store(on) }

// piece is the data of one read, and its due time.
type piece struct {
	data []byte
	due  time.Time
}

// pass moves bytes one way until from ends or to fails. change, if not nil, replaces a piece.
func (l *Line) pass(to io.Writer, from io.Reader, change func([]byte) []byte) {
	pieces := make(chan piece, 4096)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		for p := range pieces {
			time.Sleep(time.Until(p.due)) //nolint:forbidigo // the delay is what the line is for
			if _, err := to.Write(p.data); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for ended := false; !ended; {
		n, err := from.Read(buf)
		if n > 0 {
			p := piece{data: append([]byte(nil), buf[:n]...), due: l.due(time.Now())}
			if change != nil {
				p.data = change(p.data)
			}
			select {
			case pieces <- p:
			case <-failed:
				ended = true
			}
		}
		ended = ended || err != nil
	}
	close(pieces)
	<-failed
}

// due returns when a piece of now is to be passed on. Those after it come no earlier: they wait in the channel.
func (l *Line) due(now time.Time) time.Time {
	if !l.slow.Load() {
		return now
	}
	now = now.Add(l.Delay)
	if l.LossOneIn > 0 && rand.IntN(l.LossOneIn) == 0 { //nolint:gosec // no secret
		now = now.Add(l.Loss)
	}
	return now
}
