package amqp

import (
	"cmp"
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

// Serve serves one connection until it ends, and closes it. No goroutine is left when it returns.
func (s Server) Serve(nc net.Conn) {
	s.MaxMessage = cmp.Or(s.MaxMessage, defaultMaxMessage)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, defaultIdleTimeout)
	newConn(&s, nc).serve()
}
