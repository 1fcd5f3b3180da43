package amqp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/perfmq/perfmq/internal/broker/store"
)

const (
	defaultMaxMessage  = 64 << 20
	defaultIdleTimeout = time.Minute
	// handshakeTimeout bounds the time from the connection to the peer's open.
	handshakeTimeout = 30 * time.Second
	// closeTimeout bounds the write of our last frame, and the wait for the peer's.
	closeTimeout = time.Second
)

// Server serves connections from one store. Only Store is required.
type Server struct {
	Store *store.Store
	// Authenticate checks a user and a password; nil accepts everyone, also anonymous clients.
	Authenticate func(user, password string) bool
	// MaxMessage is the size of the largest message in bytes, including headers and properties; 0 means 64 MiB.
	MaxMessage int
	// IdleTimeout ends silent connections; 0 means a minute. We announce half of it.
	IdleTimeout time.Duration
}

// Serve serves one connection until it ends or ctx is done, and closes it. It returns nil if the peer closed the
// connection or ctx was done, otherwise the cause. No goroutine is left when it returns.
func (s Server) Serve(ctx context.Context, nc net.Conn) error {
	s.MaxMessage = cmp.Or(s.MaxMessage, defaultMaxMessage)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, defaultIdleTimeout)
	c := newConn(&s, nc)
	stopped := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(stopped)
		c.stop()
	})
	err := c.serve()
	if !cancel() {
		<-stopped
	}
	if ctx.Err() == nil && !errors.Is(err, errClosed) && !errors.Is(err, errStopped) {
		return err
	}
	return nil
}
