package setting

import (
	"time"

	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

func brokerRows(f *driver.Factory) []Setting { return append(addressRows(f), connectionRows()...) }

func addressRows(f *driver.Factory) []Setting {
	address, scheme := "the protocol's", "PROTOCOL"
	name, help := "that of the command, or of the URL", "the protocol; that of a command must agree with the command"
	if f != nil {
		address, scheme = f.DefaultURL, f.Schemes[0]
		name, help = f.Name, "accepted for scripts written for artemis perf; must agree with the command"
	}
	return []Setting{
		{
			Name:   "url",
			Brief:  "the broker, such as " + scheme + "://HOST:PORT; commas between several hosts",
			Places: inBroker, Section: SectionBroker, Arg: "URL", Default: address,
			Help: "the broker: " + scheme + "://[USER@]HOST[:PORT][,HOST[:PORT]]...",
			Set:  addressOf(func(s *Values) *string { return &s.URL }), Suggest: suggestURL,
		},
		{
			Name: "consumer-url", OneProtocol: true, Section: SectionBroker, Arg: "URL", Default: "as --url", Roles: client(),
			Help: "the broker of the consumers; it may be of another protocol. If it names a user, --user and --password are " +
				"not used for it",
			Set: addressOf(func(s *Values) *string { return &s.ConsumerURL }), Suggest: suggestConsumerURL,
		},
		{
			Name: "protocol", Places: inBroker, Section: SectionBroker, Arg: argName, Default: name, OneProtocol: true,
			Help: help,
			Set:  text(func(s *Values) *string { return &s.Protocol }), Suggest: suggestOwnProtocol,
		},
		{
			Name: "consumer-protocol", OneProtocol: true, Section: SectionBroker, Arg: argName,
			Default: "that of --consumer-url", Roles: client(), Help: "the protocol of the consumers",
			Set: text(func(s *Values) *string { return &s.ConsumerProtocol }), Suggest: suggestProtocols,
		},
		{
			Name:   "user",
			Brief:  "user name; the password comes from PERFMQ_PASSWORD or --password-file FILE",
			Places: inBroker, Section: SectionBroker, Arg: argName, Help: "user name; without one the connections are anonymous",
			Set: credential(func(s *Values) *string { return &s.User }),
		},
		{
			Name: "password", Places: inBroker, Section: SectionBroker, Arg: argText, Secret: true,
			Help: "password; here others on this host can see it, so rather set PERFMQ_PASSWORD or use a file",
			Set:  credential(func(s *Values) *string { return &s.Password }),
		},
		{
			Name: "password-file", Places: inBroker, Section: SectionBroker, Arg: argFile, Files: true,
			Help: "file whose first line is the password",
			Set:  text(func(s *Values) *string { return &s.PasswordFile }),
		},
	}
}

func connectionRows() []Setting {
	return []Setting{
		{
			Name: "clientID", Places: inGroups, Aliases: []string{"client-id"}, Section: SectionBroker, Arg: "PREFIX",
			Help: "prefix of the connections' client IDs; an index is added for each",
			Set:  text(func(s *Values) *string { return &s.ClientID }),
		},
		{
			Name: "connect-timeout", Places: inBroker, Section: SectionBroker, Arg: argTime, Default: "10s",
			Help: "limit for opening a connection",
			Set:  span(time.Second, func(s *Values) *time.Duration { return &s.ConnectTimeout }),
		},
		{
			Name: "wait-for-broker", Places: inRun, Section: SectionBroker, Arg: argTime, Default: "0s",
			Help: "retry for this time while the broker cannot be reached",
			Set:  span(time.Second, func(s *Values) *time.Duration { return &s.WaitForBroker }),
		},
		{
			Name: "hosts", Places: inGroups, Section: SectionBroker, Arg: argName, Default: string(plan.InOrder),
			Words: plan.HostOrders(),
			Help: "with several hosts in the URL: order, each connection tries them in their order; spread, connections are " +
				"dealt out to them in turn, and one that is lost or refused goes to the next",
			Set: oneOf(plan.HostOrders(), func(s *Values) *string { return &s.Hosts }),
		},
		{
			Name: "reconnect", Places: inGroups, Section: SectionBroker,
			Help: "connect again when a connection is lost, and go on; the summary lists the outages. Without it a lost " +
				"connection ends the run",
			Set: onOff(func(s *Values) *bool { return &s.Reconnect }),
		},
		{
			Name: "reconnect-timeout", Places: inGroups, Section: SectionBroker, Arg: argTime, Default: "0s",
			Help: "with --reconnect: limit for connecting again, after which the run ends; 0 tries until the run is over",
			Set:  span(time.Second, func(s *Values) *time.Duration { return &s.ReconnectTimeout }),
		},
		{
			Name: "reconnect-delay", Places: inGroups, Section: SectionBroker, Arg: argTime,
			Default: plan.DefaultReconnectDelay.String(),
			Help: "with --reconnect: longest pause between two attempts to reach a host again; the pauses of a failover URL " +
				"are its own",
			Set: setReconnectDelay,
		},
		{
			Name: "management-url", Places: inBroker, Section: SectionBroker, Arg: "URL",
			Help: "where the broker reports its own counts: Jolokia of Artemis or ActiveMQ Classic, RabbitMQ's management " +
				"plugin; without a user in it, with the user and password of the broker",
			Set: setManagementURL,
		},
		{
			Name: "broker-count", Places: inRun, Section: SectionBroker, Arg: argName, Default: CountAuto,
			Words: []string{CountAuto, CountOff},
			Help:  "compare the run with the broker's own counts, where it reports them: auto or off",
			Set:   oneOf([]string{CountAuto, CountOff}, func(s *Values) *string { return &s.BrokerCount }),
		},
	}
}

func clientRows() []Setting {
	return []Setting{{
		Name: "client", Places: inBroker, Section: SectionBroker, Arg: argName, Default: driver.Native,
		Help: "implementation of the protocol: native, perfmq's own, or library, a client library used as an application " +
			"would use it. " +
			"If one is faster than the other, the client is the limit and not the broker",
		Set: filled(func(s *Values) *string { return &s.Client }), Suggest: suggestClients,
	}}
}

func embeddedRows(f *driver.Factory) []Setting {
	if f != nil && !CanEmbed(f) {
		return nil
	}
	return []Setting{
		{
			Name:    "embedded",
			Brief:   "use a broker inside this process: nothing else is needed",
			Section: SectionBroker, Help: "run a broker inside this process and use it: no service is needed, the figures are " +
				"this tool's own limits",
			Set: onOff(func(s *Values) *bool { return &s.Embedded }),
		},
		{
			Name: "embedded-faults", Section: SectionBroker, Arg: "LIST",
			Help: "with --embedded: faults of that broker, such as lose=1000,delay=5ms; perfmq broker --help lists all",
			Set:  setFaults, Suggest: suggestFaults,
		},
	}
}

func tlsRows() []Setting {
	return []Setting{
		{
			Name: "tls-ca", Places: inBroker, Section: SectionTLS, Arg: argFile, Files: true, Default: "the system's",
			Help: "PEM file with the authorities to trust",
			Set:  text(func(s *Values) *string { return &s.TLS.CAFile }),
		},
		{
			Name: "tls-cert", Places: inBroker, Section: SectionTLS, Arg: argFile, Files: true,
			Help: "PEM file with the client's certificate",
			Set:  text(func(s *Values) *string { return &s.TLS.CertFile }),
		},
		{
			Name: "tls-key", Places: inBroker, Section: SectionTLS, Arg: argFile, Files: true,
			Help: "PEM file with the client's key",
			Set:  text(func(s *Values) *string { return &s.TLS.KeyFile }),
		},
		{
			Name: "tls-server-name", Places: inBroker, Section: SectionTLS, Arg: argName, Default: "the URL's host",
			Help: "name to expect in the broker's certificate",
			Set:  text(func(s *Values) *string { return &s.TLS.ServerName }),
		},
		{
			Name: "tls-insecure", Places: inBroker, Section: SectionTLS,
			Help: "INSECURE: accept any certificate; for tests only",
			Set:  onOff(func(s *Values) *bool { return &s.TLS.InsecureSkipVerify }),
		},
	}
}
