package cli

import (
	"math"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/internal/run"
	"github.com/perfmq/perfmq/pkg/driver"
)

// The groups of the help, in its order.
const (
	groupBroker       = "Broker"
	groupDestination  = "Destinations and workers"
	groupLoad         = "Load"
	groupMessage      = "Message"
	groupConsumer     = "Consumer"
	groupVerification = "Verification"
	groupOutput       = "Output"
	groupTLS          = "TLS"
)

func groups() []string {
	return []string{groupBroker, groupDestination, groupLoad, groupMessage, groupConsumer, groupVerification, groupOutput, groupTLS}
}

// definitions returns the flags of a role with a protocol.
func definitions(role plan.Role, f *driver.Factory) []definition {
	var list []definition
	for _, d := range slices.Concat(brokerFlags(f), clientFlags(), embeddedFlags(f), workerFlags(), loadFlags(role), messageFlags(), consumerFlags(), verifyFlags(), outputFlags(), tlsFlags()) {
		if d.in(role) {
			list = append(list, d)
		}
	}
	return list
}

// Names of values in the help.
const (
	argNumber = "N"
	argTime   = "TIME"
	argFile   = "FILE"
	argFolder = "DIR"
	argText   = "TEXT"
	argName   = "NAME"
)

// maxThreads is more than any machine has processors for: with tens of thousands, the Go runtime is busy with nothing else.
const maxThreads = 1024

func client() []plan.Role   { return []plan.Role{plan.Client} }
func sending() []plan.Role  { return []plan.Role{plan.Client, plan.Producer} }
func reading() []plan.Role  { return []plan.Role{plan.Client, plan.Consumer} }
func consumer() []plan.Role { return []plan.Role{plan.Consumer} }

func brokerFlags(f *driver.Factory) []definition {
	return []definition{
		{
			name: "url", group: groupBroker, arg: "URL", def: f.DefaultURL,
			help: "the broker: " + f.Schemes[0] + "://[USER@]HOST[:PORT][,HOST[:PORT]]...",
			set:  filled(func(s *settings) *string { return &s.url }), suggest: suggestURL,
		},
		{
			name: "consumer-url", group: groupBroker, arg: "URL", def: "as --url", roles: client(),
			help: "the broker of the consumers; it may be of another protocol. If it names a user, --user and --password are not used for it",
			set:  filled(func(s *settings) *string { return &s.consumerURL }), suggest: suggestConsumerURL,
		},
		{
			name: "protocol", group: groupBroker, arg: argName, def: f.Name, help: "accepted for scripts written for artemis perf; must agree with the command",
			set: text(func(s *settings) *string { return &s.protocol }), suggest: suggestOwnProtocol,
		},
		{
			name: "consumer-protocol", group: groupBroker, arg: argName, def: "that of --consumer-url", roles: client(), help: "the protocol of the consumers",
			set: text(func(s *settings) *string { return &s.consumerProtocol }), suggest: suggestProtocols,
		},
		{
			name: "user", group: groupBroker, arg: argName, help: "user name; without one the connections are anonymous",
			set: text(func(s *settings) *string { return &s.user }),
		},
		{
			name: "password", group: groupBroker, arg: argText, secret: true, help: "password; here others on this host can see it, so rather set PERFMQ_PASSWORD or use a file",
			set: text(func(s *settings) *string { return &s.password }),
		},
		{
			name: "password-file", group: groupBroker, arg: argFile, files: true, help: "file whose first line is the password",
			set: text(func(s *settings) *string { return &s.passwordFile }),
		},
		{
			name: "clientID", aliases: []string{"client-id"}, group: groupBroker, arg: "PREFIX",
			help: "prefix of the connections' client IDs; an index is added for each",
			set:  text(func(s *settings) *string { return &s.clientID }),
		},
		{
			name: "connect-timeout", group: groupBroker, arg: argTime, def: "10s", help: "limit for opening a connection",
			set: span("s", func(s *settings) *time.Duration { return &s.connectTimeout }),
		},
		{
			name: "wait-for-broker", group: groupBroker, arg: argTime, def: "0s", help: "try a broker that cannot be reached again and again, for so long",
			set: span("s", func(s *settings) *time.Duration { return &s.waitForBroker }),
		},
	}
}

func workerFlags() []definition {
	return []definition{
		{
			name: "num-destinations", group: groupDestination, arg: argNumber, def: "1", help: "above 1, each destination stands for N of them: 0 to N-1 is added to its name",
			set: whole(1, math.MaxInt32, func(s *settings) *int { return &s.numDestinations }),
		},
		{
			name: "producers", group: groupDestination, arg: argNumber, def: "1", roles: sending(), help: "producers per destination",
			set: whole(1, math.MaxInt32, func(s *settings) *int { return &s.producers }),
		},
		{
			name: "consumers", group: groupDestination, arg: argNumber, def: "1", roles: reading(), help: "consumers per destination, or per shared subscription of it",
			set: whole(1, math.MaxInt32, func(s *settings) *int { return &s.consumers }),
		},
		{
			name: "threads", group: groupDestination, arg: argNumber, def: "all processors",
			help: "threads that run load at once; with --shared-connections also the number of those, by default 1",
			set:  whole(1, maxThreads, func(s *settings) *int { return &s.threads }),
		},
		{
			name: "shared-connections", group: groupDestination, roles: sending(), help: "producers share --threads connections (else each has its own)",
			set: onOff(func(s *settings) *bool { return &s.sharedConnections }),
		},
		{
			name: "consumer-connections", group: groupDestination, arg: argNumber, def: "one per consumer", roles: client(), help: "connections of all consumers",
			set: whole(0, math.MaxInt32, func(s *settings) *int { return &s.consumerConnections }),
		},
		{
			name: "num-connections", aliases: []string{"consumer-connections"}, group: groupDestination, arg: argNumber, def: "one per consumer", roles: consumer(),
			help: "connections of all consumers",
			set:  whole(0, math.MaxInt32, func(s *settings) *int { return &s.consumerConnections }),
		},
	}
}

func loadFlags(role plan.Role) []definition {
	counted := "messages to send in all, exactly"
	drained := "limit for what is still in flight at the end; and, of 10s at least, for a broker that does nothing any more, if only --message-count ends the load"
	if role == plan.Consumer {
		counted = "messages to receive in all"
		drained = "accepted for scripts that give it to all roles: a consumer has nothing to wait for"
	}
	return []definition{
		{
			name: "rate", group: groupLoad, arg: argNumber, def: "as fast as possible", roles: sending(),
			help: "messages per second of all producers together, such as 30000 or 0.5, or segments such as 'ramp 0 to 5000 for 60s, 5000 for 5m, pause 10s'",
			set:  setRate,
		},
		{
			name: "max-pending", group: groupLoad, arg: argNumber, def: "1", roles: sending(), help: "messages in flight per producer; 0 is unbounded",
			set: whole(0, plan.UnlimitedPending, func(s *settings) *int { return &s.maxPending }),
		},
		{name: "message-count", group: groupLoad, arg: argNumber, def: "no limit", help: counted, set: setCount},
		{
			name: "duration", group: groupLoad, arg: argTime, def: "no limit", help: "length of the load, warm-up included",
			set: span("s", func(s *settings) *time.Duration { return &s.duration }),
		},
		{
			name: "warmup", group: groupLoad, arg: argTime, def: "0s", help: "first part of the load, left out of the latencies of the summary",
			set: span("s", func(s *settings) *time.Duration { return &s.warmup }),
		},
		{
			name: "drain-timeout", group: groupLoad, arg: argTime, def: "30s", help: drained,
			set: span("s", func(s *settings) *time.Duration { return &s.drainTimeout }),
		},
	}
}

func messageFlags() []definition {
	return []definition{
		{
			name: "message-size", group: groupMessage, arg: "SIZE", def: "1024", roles: sending(),
			help: "bytes, KiB, MiB, KB, MB; several by weight as SIZE/WEIGHT:SIZE/WEIGHT, such as 1KiB/80:64KiB/20",
			set:  setMessageSizes,
		},
		{
			name: "body-file", group: groupMessage, arg: argFile, files: true, roles: sending(),
			help: "file that is the body of every message, read once; of a folder, each file in turn, by name",
			set:  text(func(s *settings) *string { return &s.bodyFile }),
		},
		{
			name: "fill", group: groupMessage, arg: argName, def: string(plan.Random), roles: sending(),
			help: "what the bodies of --message-size are, the same in every run: random (text), compressible (text that gzip halves), zeros",
			set:  oneOf(plan.Fills(), func(s *settings) *string { return &s.fill }), suggest: suggestFixed(plan.Fills()...),
		},
		{name: "property", group: groupMessage, arg: "KEY=VALUE", list: true, roles: sending(), help: "message property; may be repeated", set: setProperty},
		{
			name: "persistent", group: groupMessage, roles: sending(), help: "messages survive a restart of the broker",
			set: onOff(func(s *settings) *bool { return &s.persistent }),
		},
		{
			name: "ttl", group: groupMessage, arg: argTime, def: "for ever", roles: sending(), help: "time to live: 5s, or a plain number of milliseconds",
			set: span("ms", func(s *settings) *time.Duration { return &s.ttl }),
		},
		{
			name: "priority", group: groupMessage, arg: "0-9", def: "the protocol's", roles: sending(), help: "message priority, 9 is the highest",
			set: whole(0, 9, func(s *settings) *int { return &s.priority }), suggest: suggestFixed("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"),
		},
		{
			name: "group", group: groupMessage, arg: argName, roles: sending(), help: "message group of all messages",
			set: text(func(s *settings) *string { return &s.messageGroup }),
		},
		{
			name: "commit-interval", group: groupMessage, arg: argNumber, def: "no transactions",
			help: "messages per transaction of a producer; a consumer ignores it, see --tx-size",
			set:  whole(0, math.MaxInt32, func(s *settings) *int { return &s.commitInterval }),
		},
	}
}

func consumerFlags() []definition {
	return []definition{
		{
			name: "durable", group: groupConsumer, roles: reading(), help: "durable topic subscriptions; needs --clientID; they are removed at the end",
			set: onOff(func(s *settings) *bool { return &s.durable }),
		},
		{
			name: "shared", group: groupConsumer, arg: argNumber, def: "0", roles: reading(), help: "shared subscriptions per topic, each with --consumers consumers",
			set: whole(0, math.MaxInt32, func(s *settings) *int { return &s.shared }),
		},
		{
			name: "keep-subscription", group: groupConsumer, roles: reading(), help: "leave durable subscriptions at the broker",
			set: onOff(func(s *settings) *bool { return &s.keepSubscription }),
		},
		{
			name: "selector", group: groupConsumer, arg: argText, roles: reading(), help: "message selector: which messages to receive",
			set: text(func(s *settings) *string { return &s.selector }),
		},
		{
			name: "credit", group: groupConsumer, arg: argNumber, def: "the protocol's", roles: reading(), help: "messages that the broker may send ahead to a consumer",
			set: whole(1, math.MaxInt32, func(s *settings) *int { return &s.credit }),
		},
		{
			name: "consumer-work", group: groupConsumer, arg: argTime, roles: reading(),
			help: "time that a consumer works on each message before it settles it: 2ms, 1ms-5ms (uniform), exp:2ms (exponential with that mean)",
			set:  setConsumerWork,
		},
		{
			name: "consumer-rate", group: groupConsumer, arg: argNumber, def: "as fast as possible", roles: reading(),
			help: "messages per second that all consumers together receive at most, in equal shares",
			set:  setConsumerRate,
		},
		{
			name: "max-message-size", group: groupConsumer, arg: "SIZE", def: "16MiB", roles: reading(),
			help: "largest message to accept from the broker; what the run itself sends is always accepted",
			set:  size(1, func(s *settings) *int { return &s.maxMessageSize }),
		},
		{
			name: "tx", group: groupConsumer, roles: reading(), help: "receive in transactions",
			set: onOff(func(s *settings) *bool { return &s.tx }),
		},
		{
			name: "tx-size", group: groupConsumer, arg: argNumber, def: "1", roles: reading(),
			help: "messages per transaction of a consumer; more than there are credits for would never be committed. It implies --tx",
			set:  whole(1, math.MaxInt32, func(s *settings) *int { return &s.txSize }),
		},
	}
}

func outputFlags() []definition {
	return []definition{
		{
			name: "threshold", group: groupOutput, arg: `"METRIC OP VALUE"`, list: true,
			help: "a demand on the result, such as 'ack.p99 < 50ms' or 'received.min >= 90% of target'; may be repeated. One that is not kept makes exit status 3. " +
				"All metrics: perfmq scenario metrics",
			set: setThreshold, suggest: suggestMetrics,
		},
		{
			name: "label", group: groupOutput, arg: "NAME=TEXT", list: true,
			help: "a note for all outputs, such as broker='Artemis 2.56' or heap=512m; may be repeated",
			set:  setLabel,
		},
		{
			name: "format", group: groupOutput, arg: argName, def: run.Artemis,
			help: "console output: artemis, as artemis perf, or rocketmq, as RocketMQ's own benchmark: a line every 10s about the last 9s. The summary comes with both",
			set:  oneOf(formats(), func(s *settings) *string { return &s.format }), suggest: suggestFixed(formats()...),
		},
		{
			name: "show-latency", group: groupOutput, help: "print latencies every second, not only at the end",
			set: onOff(func(s *settings) *bool { return &s.showLatency }),
		},
		{
			name: "json", group: groupOutput, arg: argFile, files: true, help: "write counts and latencies of every second and the summary as JSON",
			set: text(func(s *settings) *string { return &s.jsonFile }),
		},
		{
			name: "hdr", group: groupOutput, arg: argFile, files: true, help: "write the latencies of every second as an HdrHistogram log",
			set: text(func(s *settings) *string { return &s.hdrFile }),
		},
		{
			name: "result", group: groupOutput, arg: argFolder, folders: true,
			help: "write the whole result into a new folder as the run goes on: result.json, a row and the latencies of every second, with --verify also verify.pv",
			set:  text(func(s *settings) *string { return &s.resultDir }),
		},
		{
			name: "metrics", group: groupOutput, arg: "[HOST]:PORT", help: "serve Prometheus metrics during the run, such as :9400, which is on loopback; 0.0.0.0:9400 is on all addresses",
			set: text(func(s *settings) *string { return &s.metricsAddr }),
		},
		{
			name: "metrics-linger", group: groupOutput, arg: argTime, help: "with --metrics: serve the final values for so long after the run, to be scraped",
			set: span("s", func(s *settings) *time.Duration { return &s.metricsLinger }),
		},
		{
			name: "silent", group: groupOutput, help: "print nothing but errors",
			set: onOff(func(s *settings) *bool { return &s.silent }),
		},
		{
			name: "dry-run", group: groupOutput, help: "check everything without connecting, print the resolved plan and end",
			set: onOff(func(s *settings) *bool { return &s.dryRun }),
		},
		{
			name: "option", short: "o", arg: "KEY=VALUE", list: true, help: "option of the protocol; may be repeated",
			set: setOption, suggest: suggestOptions,
		},
	}
}

func tlsFlags() []definition {
	return []definition{
		{
			name: "tls-ca", group: groupTLS, arg: argFile, files: true, def: "the system's", help: "PEM file with the authorities to trust",
			set: text(func(s *settings) *string { return &s.tls.CAFile }),
		},
		{
			name: "tls-cert", group: groupTLS, arg: argFile, files: true, help: "PEM file with the client's certificate",
			set: text(func(s *settings) *string { return &s.tls.CertFile }),
		},
		{
			name: "tls-key", group: groupTLS, arg: argFile, files: true, help: "PEM file with the client's key",
			set: text(func(s *settings) *string { return &s.tls.KeyFile }),
		},
		{
			name: "tls-server-name", group: groupTLS, arg: argName, def: "the URL's host", help: "name to expect in the broker's certificate",
			set: text(func(s *settings) *string { return &s.tls.ServerName }),
		},
		{
			name: "tls-insecure", group: groupTLS, help: "INSECURE: accept any certificate; for tests only",
			set: onOff(func(s *settings) *bool { return &s.tls.InsecureSkipVerify }),
		},
	}
}
