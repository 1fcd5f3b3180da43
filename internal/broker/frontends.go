package broker

import (
	"cmp"
	"context"
	"crypto/subtle"
	"net"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/stomp"
)

// frontend returns the function that serves one connection of a protocol until it ends or the context is done, and
// closes it.
func (b *Broker) frontend(protocol string, cfg *Config) func(context.Context, net.Conn) error {
	const headers = 1 << 20 // of a message over AMQP, with its properties
	largest := cmp.Or(cfg.MaxMessage, LargestBody(protocol))
	switch protocol {
	case AMQP:
		return amqp.Server{Store: b.store, Authenticate: b.login, MaxMessage: largest + headers}.Serve
	case STOMP:
		return stomp.Server{Store: b.store, Authenticate: b.login, MaxMessage: largest}.Serve
	default:
		o := rocketmq.Options{MaxMessage: largest}
		if cfg.User != "" {
			o.AccessKey, o.SecretKey = cfg.User, cfg.Password
		}
		b.rocketmq = rocketmq.New(b.store, o)
		return b.rocketmq.Serve
	}
}

// login returns the check of a user and a password; nil accepts every client.
func (c *Config) login() func(user, password string) bool {
	if c.User == "" {
		return nil
	}
	return func(user, password string) bool {
		return subtle.ConstantTimeCompare([]byte(user+"\x00"+password), []byte(c.User+"\x00"+c.Password)) == 1
	}
}
