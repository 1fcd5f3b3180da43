// Package mqtt is a driver of perfmq for MQTT 5, an example of a protocol of one's own. Its packets are from
// github.com/eclipse/paho.golang; connections, TLS, gathered writing and the table of messages in flight are from
// perfmq's package transport.
//
// MQTT has topics and no queues. Each producer and consumer is an MQTT client with a connection of its own: a client
// has one session, and in it one subscription to a topic. A durable subscription is a session that does not expire; a
// shared one is $share/NAME/TOPIC. Time and ID of a message are user properties.
//
// Left out: quality of service 2, texts, time to live, retained messages, topic aliases, wildcards.
package mqtt

import (
	"context"
	"crypto/rand"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/library"
	"github.com/perfmq/perfmq/pkg/transport"
)

// Options are the settings of this protocol: -o qos=0.
type Options struct {
	QoS       int           `opt:"qos" enum:"0,1" help:"quality of service: 1, or 0: no confirmation and credit"`
	KeepAlive time.Duration `opt:"keep-alive" help:"an idle connection shows a sign of life within this time; 0: none"`
}

func defaults() *Options { return &Options{QoS: 1, KeepAlive: 30 * time.Second} }

// protocol returns the syntax of URLs, and how to find out that a port speaks MQTT: CONNECT, and the type of CONNACK.
func protocol() *transport.Protocol {
	return &transport.Protocol{
		Title: "MQTT", Schemes: []string{"mqtt", "mqtts", "mqtt+ssl"}, Encrypted: []string{"mqtts", "mqtt+ssl"},
		PlainPort: "1883", TLSPort: "8883",
		Hello: "\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00", Answers: []string{"\x20"},
	}
}

// Factory describes the protocol, and opens drivers for it.
func Factory() driver.Factory {
	f := driver.Factory{
		Name: "mqtt", Title: "MQTT 5", Client: driver.Native, Hosts: protocol().Hosts,
		Capabilities: driver.Capabilities{TLS: true, Connects: true, Unattached: true, Topic: driver.KindCapabilities{
			Exists: true, DurableSubscription: true, SharedSubscription: true, Properties: true, Credit: true,
			Reject: true, Redelivered: true, RequestReply: true, DynamicReply: true,
		}},
		InFlight: func(opts any, _ *driver.ProducerSpec) driver.InFlight {
			return driver.InFlight{Unanswered: opts.(*Options).QoS == 0}
		},
	}
	check := func(s *transport.Settings[Options], fail transport.Fail) {
		if k := s.Options.KeepAlive; k < 0 || k > math.MaxUint16*time.Second {
			fail("", "option keep-alive=%s: must be from 1s to 65535s, or 0", k)
		}
	}
	return transport.Factory(f, protocol(), defaults, check, func(s transport.Settings[Options]) driver.Driver {
		return &mqttDriver{factory: f, cfg: s}
	})
}

// mqttDriver is a [driver.Driver] and [driver.Connector].
type mqttDriver struct {
	factory driver.Factory
	cfg     transport.Settings[Options]
	mem     transport.Buffers
	sharing sync.Mutex // held to subscribe: Artemis fails where two clients make a shared subscription at once
}

// Connect implements [driver.Connector].
func (d *mqttDriver) Connect(ctx context.Context, spec driver.Connection) (driver.Held, error) {
	return d.dial(ctx, spec, &packets.Connect{CleanStart: true}, nil)
}

// Close implements [driver.Driver]: producers and consumers have closed their connections.
func (d *mqttDriver) Close(context.Context) error { return nil }

// identity returns a client identifier that no other client has.
func identity(name string) string { return name + "-" + strings.ToLower(rand.Text()[:10]) }

// names are the rules for topics: other signs have a meaning to MQTT, or to some broker.
func names() library.Rules { return library.Rules{Signs: "/_-", Most: math.MaxUint16} }
