package broker

import (
	"cmp"
	"crypto/subtle"

	"github.com/perfmq/perfmq/internal/broker/amqp"
	"github.com/perfmq/perfmq/internal/broker/rocketmq"
	"github.com/perfmq/perfmq/internal/broker/stomp"
)

// frontend returns the server of a protocol.
func (b *Broker) frontend(protocol string, cfg *Config) frontend {
	const headers = 1 << 20 // of a message over AMQP, with its properties
	largest := cmp.Or(cfg.MaxMessage, LargestBody(protocol))
	switch protocol {
	case AMQP:
		return amqp.New(b.store, amqp.Options{Authenticate: cfg.login(), MaxMessage: largest + headers})
	case STOMP:
		return stomp.New(b.store, stomp.Options{Authenticate: cfg.login(), MaxMessage: largest})
	default:
		b.rocketmq = rocketmq.New(b.store, rocketmq.Options{Secret: cfg.secret(), MaxMessage: largest})
		return b.rocketmq
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

// secret is login for requests signed with the password.
func (c *Config) secret() func(accessKey string) (string, bool) {
	if c.User == "" {
		return nil
	}
	return func(accessKey string) (string, bool) { return c.Password, accessKey == c.User }
}
