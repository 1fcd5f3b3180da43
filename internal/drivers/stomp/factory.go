package stomp

import (
	"context"
	"errors"
	"time"

	"github.com/perfmq/perfmq/internal/transport"
	wire "github.com/perfmq/perfmq/internal/wire/stomp"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Options are the settings that only this protocol has.
type Options struct {
	// Version is the version to offer to the broker.
	Version string `opt:"version" help:"version of STOMP to speak; auto takes the newest that the broker knows" enum:"auto,1.0,1.1,1.2"`
	// Dialect is the broker's convention for everything that the protocol leaves open.
	Dialect string `opt:"dialect" help:"headers to use for queues, topics, subscriptions and expiry; auto goes by the broker's greeting" enum:"auto,artemis,activemq,rabbitmq,generic"`
	// VirtualHost is the host header of CONNECT.
	VirtualHost string `opt:"virtual-host" help:"name of the virtual host; / suits RabbitMQ, and brokers without virtual hosts ignore it"`
	// HeartBeat is how often each side lets the other hear from it. A broker that is silent for twice that long is dead.
	HeartBeat time.Duration `opt:"heart-beat" help:"let the broker hear from us that often, and give up on one that is silent for twice that long; 0 for neither"`
	// Receipt asks the broker to confirm each message.
	Receipt bool `opt:"receipt" help:"ask for a receipt per message; with false a message is complete when passed to the operating system"`
	// Ack is the acknowledgement mode of subscriptions.
	Ack string `opt:"ack" help:"client: received messages are acknowledged together; client-individual: each by itself; auto: not at all, the broker forgets a message once sent; best: client, but client-individual on RabbitMQ" enum:"best,auto,client,client-individual"`
	// Declare makes RabbitMQ declare queues of that type instead of its default.
	Declare string `opt:"declare" help:"RabbitMQ: declare queues as those of that type; no: as the broker's default type" enum:"no,classic,quorum,stream"`
	// MaxPriority is x-max-priority of a classic queue that is declared; 0 for a queue without priorities.
	MaxPriority int `opt:"max-priority" help:"RabbitMQ: priorities of a classic queue that is declared, 1 to 255; 0 for none"`
	// From is where a consumer of a stream starts.
	From string `opt:"from" help:"RabbitMQ: where a consumer of a stream starts: at its first message or at the next that is sent" enum:"first,next"`
	// Window replaces the flow control that follows from the credit, on Artemis.
	Window int `opt:"window" help:"bytes that Artemis may send ahead, -1 for no limit; 0 goes by --credit, 1 MiB without one"`
}

// Values of the options.
const (
	automatic = "auto"

	ackBest       = "best"
	ackAuto       = "auto"
	ackClient     = "client"
	ackIndividual = "client-individual"

	declareNo   = "no"
	kindClassic = "classic"
	kindQuorum  = "quorum"
	kindStream  = "stream"

	fromFirst = "first"
	fromNext  = "next"
)

const (
	defaultHeartBeat = 15 * time.Second
	minHeartBeat     = 100 * time.Millisecond
	// defaultCredit is the number of messages that a broker may send ahead when the user does not say.
	defaultCredit = 1000
)

func defaultOptions() *Options {
	return &Options{
		Version: automatic, Dialect: automatic, VirtualHost: "/", HeartBeat: defaultHeartBeat, Receipt: true, Ack: ackBest,
		Declare: declareNo, From: fromFirst,
	}
}

// protocol has the port that IANA assigned, and the one for TLS that brokers agree on.
func protocol() *transport.Protocol {
	return &transport.Protocol{
		Title: "STOMP", Schemes: []string{"stomp", "stomp+ssl", "stomps", "tcp", "ssl"},
		Encrypted: []string{"stomp+ssl", "stomps", "ssl"}, PlainPort: "61613", TLSPort: "61614",
	}
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	// The effect of a NACK differs between brokers: see [dialect.failing].
	queue := driver.KindCapabilities{
		Exists: true, Persistent: true, TTL: true, Priority: true, Group: true, Properties: true, Selector: true,
		Transactions: true, TransactedReceive: true, Credit: true, Concurrency: true, Reject: true, Release: true,
		Redelivered: true, Delay: true, Text: true,
	}
	topic := queue
	topic.DurableSubscription, topic.SharedSubscription = true, true
	return driver.Factory{
		Name:         "stomp",
		Title:        "STOMP 1.0, 1.1 and 1.2",
		Schemes:      protocol().Schemes,
		Hosts:        protocol().Hosts,
		DefaultURL:   "stomp://localhost:" + protocol().PlainPort,
		Client:       driver.Native,
		Capabilities: driver.Capabilities{TLS: true, Queue: queue, Topic: topic},
		NewOptions:   func() any { return defaultOptions() },
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
	maxBody        int // of a frame, in bytes
	opts           Options
}

// newConfig checks opts and reports all mistakes at once.
func newConfig(opts driver.OpenOptions) (config, error) {
	const op = "check the settings"
	cfg := config{tls: opts.TLS, connectTimeout: opts.ConnectTimeout, maxBody: opts.LargestBody(), opts: *defaultOptions()}
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, driver.Errorf(driver.ClassOther, op, "", format, args...))
	}
	if o, ok := opts.Options.(*Options); ok && o != nil {
		cfg.opts = *o
	} else if opts.Options != nil && !ok {
		fail("options of type %T are not those of STOMP", opts.Options)
	}
	var err error
	if cfg.target, err = protocol().Check(opts); err != nil {
		errs = append(errs, err)
	}
	cfg.checkOptions(fail)
	if err := errors.Join(errs...); err != nil {
		return config{}, err
	}
	return cfg, nil
}

func (c *config) checkOptions(fail func(format string, args ...any)) {
	o := &c.opts
	switch o.Version {
	case automatic, "1.0", "1.1", "1.2":
	default:
		fail("option version=%s: must be auto, 1.0, 1.1 or 1.2", o.Version)
	}
	switch o.Dialect {
	case automatic, string(artemis), string(activemq), string(rabbitmq), string(generic):
	default:
		fail("option dialect=%s: must be auto, artemis, activemq, rabbitmq or generic", o.Dialect)
	}
	switch o.Ack {
	case ackBest, ackAuto, ackClient, ackIndividual:
	default:
		fail("option ack=%s: must be best, auto, client or client-individual", o.Ack)
	}
	if d := o.HeartBeat; d != 0 && d < minHeartBeat {
		fail("option heart-beat=%s: must be 0 or at least %s", d, minHeartBeat)
	}
	c.checkQueues(fail)
	if o.Window < -1 {
		fail("option window=%d: must be -1, 0 or a number of bytes", o.Window)
	}
	for _, text := range []string{c.target.User, c.target.Password, o.VirtualHost} {
		if !wire.V10.Carries(text) { // CONNECT has no escapes
			fail("user, password and virtual host must not hold line ends or NUL")
			break
		}
	}
}

// checkQueues checks the options for declaring queues on RabbitMQ.
func (c *config) checkQueues(fail func(format string, args ...any)) {
	o := &c.opts
	switch o.Declare {
	case declareNo, kindClassic, kindQuorum, kindStream:
	default:
		fail("option declare=%s: must be no, classic, quorum or stream", o.Declare)
	}
	switch {
	case o.MaxPriority < 0 || o.MaxPriority > 255:
		fail("option max-priority=%d: must be 0 to 255", o.MaxPriority)
	case o.MaxPriority > 0 && o.Declare != kindClassic:
		fail("option max-priority is of a classic queue that is declared: add -o declare=classic")
	}
	if o.From != fromFirst && o.From != fromNext {
		fail("option from=%s: must be first or next", o.From)
	}
}
