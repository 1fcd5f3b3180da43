package amqp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the settings that only this protocol has.
type Options struct {
	// Settle is at-least-once or at-most-once; the package comment explains both.
	Settle string `opt:"settle" help:"at-least-once: the broker confirms each message; at-most-once: sent settled, complete when passed to the operating system" enum:"at-least-once,at-most-once"`
	// SASL is how to log in. auto means, with a user, SCRAM where the broker offers it, else plain; without one,
	// anonymous.
	SASL string `opt:"sasl" help:"how to log in; auto is SCRAM or else plain with a user, whichever the broker offers, and anonymous without" enum:"auto,plain,anonymous,external,scram-sha-256,scram-sha-512"`
	// IdleTimeout ends a connection on which nothing was received for that long; 0 never does.
	IdleTimeout time.Duration `opt:"idle-timeout" help:"end a connection when the broker is silent for that long; 0 waits for ever"`
	// MaxFrameSize is the largest frame to accept, in bytes, from 512 to 2147483647.
	MaxFrameSize int `opt:"max-frame-size" help:"largest frame to accept from the broker, in bytes"`
	// VirtualHost replaces the host's name in the open frame, which is how AMQP 1.0 brokers tell virtual hosts apart.
	VirtualHost string `opt:"virtual-host" help:"name of the virtual host instead of the URL's host, for brokers that have them"`
	// Dialect is the broker's convention for everything that the protocol leaves open; see [dialect].
	Dialect string `opt:"dialect" help:"addresses and limits of the broker; auto goes by the broker's greeting; rabbitmq3 is RabbitMQ before 4" enum:"auto,artemis,activemq,rabbitmq,rabbitmq3,brokerj,plain"`
	// Declare makes RabbitMQ 4 declare queues of that type, durable ones; otherwise they must exist.
	Declare string `opt:"declare" help:"RabbitMQ 4: declare the queue as one of that type; no: it must exist" enum:"no,classic,quorum,stream"`
	// MaxPriority is x-max-priority of a classic queue that is declared; 0 for a queue without priorities.
	MaxPriority int `opt:"max-priority" help:"RabbitMQ 4: priorities of a classic queue that is declared, 1 to 255; 0 for none"`
	// From is where a consumer of a stream starts.
	From string `opt:"from" help:"RabbitMQ 4: where a consumer of a stream starts: at its first message or at the next that is sent" enum:"first,next"`
	// LeaveQueues allows consumers of topics on RabbitMQ before 4, whose queues no AMQP 1.0 client can remove.
	LeaveQueues bool `opt:"leave-queues" help:"RabbitMQ before 4: consume from topics although the queue of each consumer stays behind and fills"`
}

// Values of the options.
const (
	settleAtLeastOnce = "at-least-once"
	settleAtMostOnce  = "at-most-once"

	saslAuto      = "auto"
	saslPlain     = "plain"
	saslAnonymous = "anonymous"
	saslExternal  = "external"
	saslSCRAM256  = "scram-sha-256"
	saslSCRAM512  = "scram-sha-512"

	declareNo = "no"

	fromFirst = "first"
	fromNext  = "next"
)

const (
	defaultIdleTimeout  = time.Minute
	minIdleTimeout      = 100 * time.Millisecond
	defaultMaxFrameSize = 64 << 10
	minMaxFrameSize     = 512 // AMQP 1.0, Transport, section 2.7.1 (MIN-MAX-FRAME-SIZE)
	maxMaxFrameSize     = 1<<31 - 1
)

func defaultOptions() *Options {
	return &Options{
		Settle:       settleAtLeastOnce,
		SASL:         saslAuto,
		IdleTimeout:  defaultIdleTimeout,
		MaxFrameSize: defaultMaxFrameSize,
		Dialect:      dialectAuto,
		Declare:      declareNo,
		From:         fromFirst,
	}
}

// protocol has the ports that IANA assigned.
func protocol() *transport.Protocol {
	return &transport.Protocol{
		Title: "AMQP", Schemes: []string{"amqp", "amqps", "amqp+ssl", "tcp", "ssl"},
		Encrypted: []string{"amqps", "amqp+ssl", "ssl"}, PlainPort: "5672", TLSPort: "5671",
	}
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	return driver.Factory{
		Name:       "amqp",
		Title:      "AMQP 1.0",
		Schemes:    protocol().Schemes,
		Hosts:      protocol().Hosts,
		DefaultURL: "amqp://localhost:" + protocol().PlainPort,
		Client:     driver.Native,
		Capabilities: driver.Capabilities{
			TLS: true,
			Queue: driver.KindCapabilities{
				Exists: true, Persistent: true, TTL: true, Priority: true, Group: true, Properties: true, Selector: true,
				Transactions: true, TransactedReceive: true, Credit: true, Reject: true, Release: true, Concurrency: true,
				Redelivered: true, Delay: true, Text: true,
			},
			Topic: driver.KindCapabilities{
				Exists: true, DurableSubscription: true, SharedSubscription: true, Persistent: true, TTL: true, Priority: true,
				Group: true, Properties: true, Selector: true, Transactions: true, TransactedReceive: true, Credit: true,
				Reject:  true,
				Release: true, Concurrency: true, Redelivered: true, Delay: true, Text: true,
			},
		},
		NewOptions: func() any { return defaultOptions() },
		Check: func(opts driver.OpenOptions) error {
			_, err := newConfig(opts)
			return err
		},
		Open: func(_ context.Context, opts driver.OpenOptions) (driver.Driver, error) {
			cfg, err := newConfig(opts)
			if err != nil {
				return nil, err
			}
			return newDriver(cfg), nil
		},
	}
}

// config is the checked configuration of the driver for its broker.
type config struct {
	target         transport.Target
	tls            driver.TLS
	connectTimeout time.Duration
	maxBody        int // bytes
	opts           Options
}

// newConfig checks opts and reports all mistakes at once.
func newConfig(opts driver.OpenOptions) (config, error) {
	const op = "check the settings"
	cfg := config{tls: opts.TLS, connectTimeout: opts.ConnectTimeout, maxBody: opts.LargestBody(), opts: *defaultOptions()}
	var errs []error
	fail := func(hint, format string, args ...any) {
		errs = append(errs, driver.Errorf(driver.ClassOther, op, hint, format, args...))
	}
	if o, ok := opts.Options.(*Options); ok && o != nil {
		cfg.opts = *o
	} else if opts.Options != nil && !ok {
		fail("", "options of type %T are not those of AMQP", opts.Options)
	}
	var err error
	if cfg.target, err = protocol().Check(opts); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, cfg.checkOptions()...)
	if err := errors.Join(errs...); err != nil {
		return config{}, err
	}
	return cfg, nil
}

func (c *config) checkOptions() []error {
	const op = "check the settings"
	var errs []error
	fail := func(hint, format string, args ...any) {
		errs = append(errs, driver.Errorf(driver.ClassOther, op, hint, format, args...))
	}
	if s := c.opts.Settle; s != settleAtLeastOnce && s != settleAtMostOnce {
		fail("", "option settle=%s: must be at-least-once or at-most-once", s)
	}
	if d := c.opts.IdleTimeout; d != 0 && d < minIdleTimeout {
		fail("", "option idle-timeout=%s: must be 0 or at least %s", d, minIdleTimeout)
	}
	if n := c.opts.MaxFrameSize; n < minMaxFrameSize || n > maxMaxFrameSize {
		fail("", "option max-frame-size=%d: must be %d to %d", n, minMaxFrameSize, maxMaxFrameSize)
	}
	if !slices.Contains(dialects(), c.opts.Dialect) {
		fail("", "option dialect=%s: must be one of %s", c.opts.Dialect, strings.Join(dialects(), ", "))
	}
	errs = append(errs, c.opts.checkQueues()...)
	switch s := c.opts.SASL; s {
	case saslAuto, saslAnonymous:
	case saslPlain, saslSCRAM256, saslSCRAM512:
		if c.target.User == "" {
			fail("give --user and --password", "option sasl=%s needs a user", s)
		}
	case saslExternal:
		if !c.target.TLS {
			fail("use amqps:// with --tls-cert and --tls-key", "option sasl=external needs an encrypted connection")
		}
	default:
		fail("", "option sasl=%s: must be auto, plain, anonymous, external, scram-sha-256 or scram-sha-512", s)
	}
	return errs
}

// checkQueues checks the options for declaring queues on RabbitMQ 4.
func (o *Options) checkQueues() []error {
	var errs []error
	fail := func(hint, format string, args ...any) {
		errs = append(errs, driver.Errorf(driver.ClassOther, "check the settings", hint, format, args...))
	}
	switch o.Declare {
	case declareNo, kindClassic, kindQuorum, kindStream:
	default:
		fail("", "option declare=%s: must be no, classic, quorum or stream", o.Declare)
	}
	switch {
	case o.MaxPriority < 0 || o.MaxPriority > 255:
		fail("", "option max-priority=%d: must be 0 to 255", o.MaxPriority)
	case o.MaxPriority > 0 && o.Declare != kindClassic:
		fail("add -o declare=classic", "option max-priority is of a classic queue that is declared")
	}
	if o.From != fromFirst && o.From != fromNext {
		fail("", "option from=%s: must be first or next", o.From)
	}
	return errs
}
