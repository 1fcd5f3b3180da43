//go:build unix

package main

import (
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A slow line passes each piece on after slowDelay. One piece in lossOneIn is lost: it comes after lossDelay more,
// which the retransmission takes, and those after it wait for it.
const (
	slowDelay, lossDelay = 100 * time.Millisecond, 200 * time.Millisecond
	lossOneIn            = 100
	slowFor              = 15 * time.Second
)

// slowLine passes bytes on in order, as a TCP connection does; slow or at once.
type slowLine struct {
	slow         atomic.Bool
	pieces, lost atomic.Int64 // of the slow time
}

// piece is what came with one read, and when it is to be passed on.
type piece struct {
	data []byte
	due  time.Time
}

// pass moves bytes one way until from ends or to fails. change, if not nil, replaces a piece.
func (l *slowLine) pass(to io.Writer, from io.Reader, change func([]byte) []byte) {
	pieces := make(chan piece, 4096)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		for p := range pieces {
			time.Sleep(time.Until(p.due))
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
func (l *slowLine) due(now time.Time) time.Time {
	if !l.slow.Load() {
		return now
	}
	l.pieces.Add(1)
	now = now.Add(slowDelay)
	if rand.IntN(lossOneIn) == 0 { //nolint:gosec // no secret
		l.lost.Add(1)
		now = now.Add(lossDelay)
	}
	return now
}
