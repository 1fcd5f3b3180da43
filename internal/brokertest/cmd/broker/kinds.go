//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// broker has the methods that the handles of all kinds have in common.
type broker interface {
	Alive() bool
	Done() <-chan struct{}
	PID() int
	Dir() string
	LogFile() string
	LogTail() string
	Stop() error
	Close() error
}

// running is a started broker.
type running struct {
	broker
	urls  func() [][2]string // keys and values for the output; first the URL for PERFMQ_URL
	login bool               // clients need BROKER_USER and BROKER_PASSWORD
}

// settings are the command line.
type settings struct {
	detach   bool
	outlive  bool
	lifetime time.Duration
	launch   func(context.Context) (running, error)
}

// pair is a key and its value.
type pair struct{ key, value string }

// setFlag adds the flag -set, which may be repeated. help says which keys there are.
func setFlag(fs *flag.FlagSet, help string) *[]pair {
	var set []pair
	fs.Func("set", "set `KEY=VALUE` in the broker's configuration; may be repeated. Keys are "+help,
		func(text string) error {
			key, value, ok := strings.Cut(text, "=")
			if !ok || key == "" {
				return errors.New("use KEY=VALUE")
			}
			set = append(set, pair{key, value})
			return nil
		})
	return &set
}

// javaFlag adds the flag -java-opts, which may be repeated.
func javaFlag(fs *flag.FlagSet) *[]string {
	var options []string
	help := "append `OPTIONS` to those of the broker's JVM, separated by blanks, without quotes: \"-Xmx2G " +
		"-XX:+UseZGC\".\n" +
		"May be repeated. A largest heap and a collector replace the usual ones"
	fs.Func("java-opts", help, func(text string) error {
		options = append(options, strings.Fields(text)...)
		return nil
	})
	return &options
}

// with returns the options that the flags -set and -java-opts stand for.
func with[O any](set *[]pair, setting func(key, value string) O, java *[]string, javaOptions func(...string) O) []O {
	options := []O{javaOptions(*java...)}
	for _, s := range *set {
		options = append(options, setting(s.key, s.value))
	}
	return options
}

// parse reads the kind of broker and its flags.
func parse(args []string) (settings, error) {
	kinds := map[string]func(*flag.FlagSet) func(context.Context) (running, error){
		"artemis": artemis, "activemq": activemq, "rabbitmq": rabbitmq, "rocketmq": rocketmq, "qpid": qpid,
	}
	var set settings
	if len(args) == 0 || kinds[args[0]] == nil {
		return set, fmt.Errorf("usage: broker artemis|activemq|rabbitmq|rocketmq|qpid [flags], or broker -stop [PID]...; " +
			"broker artemis --help lists the flags of a kind")
	}
	fs := flag.NewFlagSet("broker "+args[0], flag.ContinueOnError)
	fs.DurationVar(&set.lifetime, "for", 0, "end after this time (0: never)")
	fs.BoolVar(&set.detach, "detach", false, "return once the broker is ready; it runs until broker -stop, or for the "+
		"time of -for (24h without)")
	fs.BoolVar(&set.outlive, "outlive-parent", false, "go on when the process that started this has ended")
	set.launch = kinds[args[0]](fs)
	if err := fs.Parse(args[1:]); err != nil {
		return set, err
	}
	if set.detach && set.outlive { // as the process that -detach starts: it must not start another one
		return set, errors.New("-detach and -outlive-parent exclude each other")
	}
	if fs.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return set, nil
}

func artemis(fs *flag.FlagSet) func(context.Context) (running, error) {
	var ports brokertest.ArtemisPorts
	fs.IntVar(&ports.AMQP, "amqp-port", 0, "port of the AMQP acceptor (0: the default one if it is free)")
	fs.IntVar(&ports.AMQP, "port", 0, "same as -amqp-port")
	fs.IntVar(&ports.STOMP, "stomp-port", 0, "port of the STOMP acceptor (0: the default one if it is free)")
	fs.IntVar(&ports.Core, "core-port", 0, "port of the acceptor for CORE and all (0: the default one if it is free)")
	heap := fs.String("heap", "512M", "heap of the broker, in Java's notation")
	extra := fs.String("acceptor-extra", "", `parameters added to every acceptor: "amqpCredits=100;..."`)
	login := fs.Bool("login", false, "refuse users other than admin with password admin")
	tls := fs.Bool("tls", false, "add a TLS acceptor")
	clientCerts := fs.Bool("client-certs", false, "add a TLS acceptor that demands a client certificate")
	noManagement := fs.Bool("no-management", false, "do not start the web server: less memory, no counters")
	old := fs.Bool("2.19", false, "start Artemis 2.19, without its web server")
	set := setFlag(fs, "elements of broker.xml, those of addresses for all of them:\n"+
		strings.Join(brokertest.ArtemisSettings(), ", "))
	java := javaFlag(fs)
	return func(ctx context.Context) (running, error) {
		options := with(set, brokertest.WithArtemisSetting, java, brokertest.WithJavaOptions)
		options = append(options, brokertest.WithDefaultPorts(), brokertest.WithPorts(ports), brokertest.WithHeap(*heap))
		for _, o := range []struct {
			on     bool
			option brokertest.ArtemisOption
		}{
			{*extra != "", brokertest.WithAcceptorExtra(*extra)},
			{*login, brokertest.WithLogin()},
			{*tls, brokertest.WithTLS()},
			{*clientCerts, brokertest.WithTLSClientCerts()},
			{*noManagement, brokertest.WithoutManagement()},
			{*old, brokertest.WithArtemis219()},
		} {
			if o.on {
				options = append(options, o.option)
			}
		}
		a, err := brokertest.LaunchArtemis(ctx, options...)
		return running{a, func() [][2]string { return artemisURLs(a) }, *login}, err
	}
}

func artemisURLs(a *brokertest.Artemis) [][2]string {
	lines := [][2]string{
		{"AMQP_URL", a.AMQPURL()},
		{"STOMP_URL", a.STOMPURL()},
		{"CORE_URL", a.CoreURL()},
		{"AMQPS_URL", a.AMQPSURL()},
		{"STOMPS_URL", a.STOMPSURL()},
		{"MANAGEMENT_URL", a.ManagementURL()},
		{"BROKER_USER", brokertest.User},
		{"BROKER_PASSWORD", brokertest.Password},
		{"ARTEMIS_HOME", a.Home()},
	}
	if c := a.Certs(); c != nil {
		lines = append(lines, [][2]string{
			{"CA_FILE", c.CAFile}, {"CLIENT_CERT_FILE", c.ClientCertFile}, {"CLIENT_KEY_FILE", c.ClientKeyFile},
		}...)
	}
	return lines
}

func activemq(fs *flag.FlagSet) func(context.Context) (running, error) {
	heap := fs.String("heap", "512M", "heap of the broker, in Java's notation")
	login := fs.Bool("login", false, "refuse users other than admin with password admin")
	old := fs.Bool("5.16", false, "start ActiveMQ Classic 5.16")
	set := setFlag(fs, "attributes of activemq.xml, and jolokia=true for its management:\n"+
		strings.Join(brokertest.ActiveMQSettings(), ", "))
	java := javaFlag(fs)
	return func(ctx context.Context) (running, error) {
		options := with(set, brokertest.WithActiveMQSetting, java, brokertest.WithActiveMQJavaOptions)
		options = append(options, brokertest.WithActiveMQDefaultPorts(), brokertest.WithActiveMQHeap(*heap))
		if *old {
			options = append(options, brokertest.WithActiveMQ516())
		}
		if *login {
			options = append(options, brokertest.WithActiveMQLogin())
		}
		a, err := brokertest.LaunchActiveMQ(ctx, options...)
		return running{a, func() [][2]string {
			lines := [][2]string{
				{"AMQP_URL", a.AMQPURL()},
				{"AMQP_NATIVE_URL", a.NativeAMQPURL()},
				{"STOMP_URL", a.STOMPURL()},
				{"MANAGEMENT_URL", a.ManagementURL()},
			}
			if *login || a.ManagementURL() != "" {
				lines = append(lines, [2]string{"BROKER_USER", brokertest.User}, [2]string{"BROKER_PASSWORD", brokertest.Password})
			}
			return lines
		}, *login}, err
	}
}

// rabbitmq always demands its login.
func rabbitmq(fs *flag.FlagSet) func(context.Context) (running, error) {
	four := fs.Bool("4", false, "start RabbitMQ 4 of the next Debian, unpacked into the cache; only for root")
	set := setFlag(fs, "keys of rabbitmq.conf, for example vm_memory_high_watermark.absolute=2GB")
	return func(ctx context.Context) (running, error) {
		options := []brokertest.RabbitMQOption{brokertest.WithRabbitMQDefaultPorts()}
		for _, s := range *set {
			options = append(options, brokertest.WithRabbitMQSetting(s.key, s.value))
		}
		if *four {
			options = append(options, brokertest.WithRabbitMQ4())
		}
		r, err := brokertest.LaunchRabbitMQ(ctx, options...)
		return running{r, func() [][2]string {
			return [][2]string{
				{"AMQP_URL", r.AMQPURL()},
				{"STOMP_URL", r.STOMPURL()},
				{"BROKER_USER", brokertest.User},
				{"BROKER_PASSWORD", brokertest.Password},
			}
		}, true}, err
	}
}

func rocketmq(fs *flag.FlagSet) func(context.Context) (running, error) {
	heap := fs.String("heap", "400m", "heap of the broker, in Java's notation")
	login := fs.Bool("login", false, "refuse requests that are not signed with BROKER_USER and BROKER_PASSWORD")
	old := fs.Bool("4.9", false, "start RocketMQ 4.9")
	set := setFlag(fs, "properties of broker.conf, for example flushDiskType=SYNC_FLUSH; RocketMQ ignores unknown ones")
	java := javaFlag(fs)
	return func(ctx context.Context) (running, error) {
		options := with(set, brokertest.WithRocketMQProperty, java, brokertest.WithRocketMQJavaOptions)
		options = append(options, brokertest.WithRocketMQDefaultPorts(), brokertest.WithRocketMQHeap(*heap))
		if *old {
			options = append(options, brokertest.WithRocketMQ49())
		}
		if *login {
			options = append(options, brokertest.WithRocketMQLogin())
		}
		r, err := brokertest.LaunchRocketMQ(ctx, options...)
		return running{r, func() [][2]string {
			lines := [][2]string{{"ROCKETMQ_URL", r.URL()}, {"NAME_SERVER", r.NameServer()}, {"BROKER_ADDRESS", r.Broker()}}
			if *login {
				lines = append(lines,
					[2]string{"BROKER_USER", brokertest.RocketMQUser}, [2]string{"BROKER_PASSWORD", brokertest.RocketMQPassword})
			}
			return lines
		}, *login}, err
	}
}

// qpid always demands its login.
func qpid(fs *flag.FlagSet) func(context.Context) (running, error) {
	limit := fs.Int("limit", 0, "hold producers back when a queue whose name begins with limited has that many messages "+
		"(0: never)")
	set := setFlag(fs, "context variables, for example broker.flowToDiskThreshold=1000000; Broker-J ignores unknown ones")
	java := javaFlag(fs)
	return func(ctx context.Context) (running, error) {
		options := with(set, brokertest.WithQpidContext, java, brokertest.WithQpidJavaOptions)
		options = append(options, brokertest.WithQpidDefaultPort())
		if *limit > 0 {
			options = append(options, brokertest.WithQpidLimit("limited.*", *limit))
		}
		q, err := brokertest.LaunchQpid(ctx, options...)
		return running{q, func() [][2]string {
			return [][2]string{
				{"AMQP_URL", q.AMQPURL()}, {"BROKER_USER", brokertest.User}, {"BROKER_PASSWORD", brokertest.Password},
			}
		}, true}, err
	}
}
