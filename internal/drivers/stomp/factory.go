package stomp

import (
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/drivers/protocol"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Options are the settings of this protocol; their tags describe them.
type Options struct {
	VirtualHost string        `opt:"virtual-host" help:"virtual host; / suits RabbitMQ, and others ignore it"`
	HeartBeat   time.Duration `opt:"heart-beat" help:"interval, both ways; a broker is lost after twice that silence; 0: none"`
	Receipt     bool          `opt:"receipt" help:"ask for a receipt per message; false: complete once sent"`
	Declare     string        `opt:"declare" help:"RabbitMQ: declare queues, or streams (topic://NAME), of that type; no: of the broker's default type" enum:"no,classic,quorum,stream"`
}

// Values of the options.
const (
	declareNo  = "no"
	kindQuorum = "quorum"
	kindStream = "stream"
)

const (
	defaultHeartBeat = 15 * time.Second
	minHeartBeat     = 100 * time.Millisecond
	// defaultCredit is the number of messages that a broker may send ahead by default.
	defaultCredit = 1000
)

func defaultOptions() *Options {
	return &Options{VirtualHost: "/", HeartBeat: defaultHeartBeat, Receipt: true, Declare: declareNo}
}

// Factory describes the protocol and opens drivers for it.
func Factory() driver.Factory {
	// The effect of a NACK differs between brokers: see [dialect.checkConsumer].
	queue, topic := protocol.Features()
	return transport.Factory(driver.Factory{
		Name: "stomp", Title: "STOMP 1.2", Client: driver.Native, Hosts: protocol.STOMP().Hosts,
		Capabilities: driver.Capabilities{
			TLS: true, Connects: true, Streams: true, Unattached: true, Queue: queue, Topic: topic,
		},
		InFlight: windowOf,
	}, protocol.STOMP(), defaultOptions, checkOptions,
		func(c transport.Settings[Options]) driver.Driver { return newDriver(c) })
}

// windowOf is [driver.Factory.InFlight].
func windowOf(opts any, _ *driver.ProducerSpec) driver.InFlight {
	o, _ := opts.(*Options)
	return driver.InFlight{Unanswered: o != nil && !o.Receipt}
}

func checkOptions(s *transport.Settings[Options], fail transport.Fail) {
	o := &s.Options
	if d := o.HeartBeat; d != 0 && d < minHeartBeat {
		fail("", "option heart-beat=%s: must be 0 or at least %s", d, minHeartBeat)
	}
	for _, text := range []string{s.Target.User, s.Target.Password, o.VirtualHost} {
		if strings.ContainsAny(text, "\r\n\x00") { // CONNECT has no escapes
			fail("", "user, password and virtual host allow no line ends or NUL")
			break
		}
	}
}
