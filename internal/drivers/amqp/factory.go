package amqp

import (
	"strings"
	"sync"
	"time"

	"github.com/xdg-go/scram"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Options are the settings of this protocol; their help texts describe them.
type Options struct {
	Settle      string        `opt:"settle" help:"at-least-once: the broker confirms each message; at-most-once: complete once sent" enum:"at-least-once,at-most-once"`
	SASL        string        `opt:"sasl" help:"auto: with a user SCRAM or plain, as the broker offers; without one anonymous; cbs: Azure, --password is a token" enum:"auto,plain,anonymous,external,scram-sha-256,scram-sha-512,cbs"`
	IdleTimeout time.Duration `opt:"idle-timeout" help:"end a connection after this silence of the broker; 0: never"`
	// VirtualHost replaces the host's name in the open frame, which is how AMQP 1.0 brokers tell virtual hosts apart.
	VirtualHost string `opt:"virtual-host" help:"virtual host, if not the URL's host"`
	Declare     string `opt:"declare" help:"RabbitMQ 4: declare queues, or streams (topic://NAME), of that type; no: they must exist" enum:"no,classic,quorum,stream"`
	// DeliveryLimit is the argument x-delivery-limit.
	DeliveryLimit int `opt:"delivery-limit" help:"RabbitMQ 4, declare=quorum: a message is dropped when it is given back more often; 0: the broker's limit, 20"`
}

// Values of the options.
const (
	settleAtLeastOnce = "at-least-once"
	settleAtMostOnce  = "at-most-once"

	saslAuto = "auto"
	saslCBS  = "cbs"

	declareNo     = "no"
	declareQuorum = "quorum"
	declareStream = "stream"
)

const minIdleTimeout = 100 * time.Millisecond

func defaultOptions() *Options {
	return &Options{Settle: settleAtLeastOnce, SASL: saslAuto, IdleTimeout: time.Minute, Declare: declareNo}
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	queue, topic := protocol.Features()
	return transport.Factory(driver.Factory{
		Name: "amqp", Title: "AMQP 1.0", Client: driver.Native, Hosts: protocol.AMQP().Hosts,
		Capabilities: driver.Capabilities{TLS: true, Connects: true, Streams: true, Queue: queue, Topic: topic},
		InFlight:     inFlight,
	}, protocol.AMQP(), defaultOptions, checkOptions,
		func(c transport.Settings[Options]) driver.Driver { return newDriver(c) })
}

// inFlight is [driver.Factory.InFlight]: the next transaction begins with the broker's answer, while one is committed.
func inFlight(opts any, spec *driver.ProducerSpec) driver.InFlight {
	o, _ := opts.(*Options)
	return driver.InFlight{
		Unanswered: o != nil && o.Settle == settleAtMostOnce,
		Messages:   2 * spec.CommitInterval, Hint: "try a larger --commit-interval, or more --producers",
	}
}

func checkOptions(s *transport.Settings[Options], fail transport.Fail) {
	o := &s.Options
	if d := o.IdleTimeout; d != 0 && d < minIdleTimeout {
		fail("", "option idle-timeout=%s: must be 0 or at least %s", d, minIdleTimeout)
	}
	if o.DeliveryLimit < 0 || o.DeliveryLimit > 0 && o.Declare != declareQuorum {
		fail("add -o declare=quorum", "option delivery-limit=%d: must be at least 0, and needs declare=quorum",
			o.DeliveryLimit)
	}
	switch strings.ToUpper(o.SASL) {
	case mechPlain, mechSCRAM256, mechSCRAM512, strings.ToUpper(saslCBS):
		if s.Target.User == "" {
			fail("give --user and --password", "option sasl=%s needs a user", o.SASL)
		}
	case mechExternal:
		if !s.Target.TLS {
			fail("use amqps:// with --tls-cert and --tls-key", "option sasl=external needs an encrypted connection")
		}
	}
}

// amqpDriver is a [driver.Driver]: a set of connections by key.
type amqpDriver struct {
	transport.Identity
	transport.Pool[*connection]
	cfg   transport.Settings[Options]
	mem   transport.Buffers
	large sync.Pool // buffers for messages of several frames, which connections share in turn

	// Of Inspect: its connection, if there is one, and the host of the first request, for all requests, because other
	// hosts have other counts.
	asking    *transport.Lease[*connection]
	askedHost []int

	mu    sync.Mutex
	scram map[string]*scram.Client // by mechanism: they cache keys, which are expensive to derive
}

func newDriver(cfg transport.Settings[Options]) *amqpDriver {
	d := &amqpDriver{cfg: cfg, scram: map[string]*scram.Client{}}
	d.Open = d.dial
	return d
}

var (
	_ driver.Identified = (*amqpDriver)(nil)
	_ driver.Inspector  = (*amqpDriver)(nil)
)

// largeBuffer returns an empty buffer for n bytes.
func (d *amqpDriver) largeBuffer(n int) []byte {
	if b, ok := d.large.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}
