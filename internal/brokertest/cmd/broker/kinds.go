//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// broker has the methods that all kinds have in common.
type broker interface {
	Alive() bool
	Done() <-chan struct{}
	PID() int
	Dir() string
	LogFile() string
	LogTail() string
	Start(ctx context.Context) error
	Kill()
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
	verb     string // of a detached broker; empty to start one
	pids     []string
	detach   bool
	outlive  bool
	lifetime time.Duration
	launch   func(context.Context) (running, error)
}

// parse reads the kind of broker and its flags.
func parse(args []string) (settings, error) {
	kinds := map[string]func(*flag.FlagSet) func(context.Context) (running, error){
		"artemis": artemis, "activemq": activemq, "rabbitmq": rabbitmq, "rocketmq": rocketmq, "qpid": qpid,
	}
	var set settings
	if len(args) == 0 || kinds[args[0]] == nil {
		return set, fmt.Errorf("usage: broker artemis|activemq|rabbitmq|rocketmq|qpid [flags], or with -kill, " +
			"-restart or -stop [PID]...; broker artemis --help lists the flags of a kind")
	}
	fs := flag.NewFlagSet("broker "+args[0], flag.ContinueOnError)
	fs.DurationVar(&set.lifetime, "for", 0, "end after this time (0: never)")
	fs.BoolVar(&set.detach, "detach", false, "return once the broker is ready; it runs until -stop, or for the time "+
		"of -for (24h without)")
	fs.BoolVar(&set.outlive, "outlive-parent", false, "continue when the process that started this has ended")
	for verb, help := range map[string]string{
		kill:    "end a detached broker as a crash would (SIGKILL); it keeps its ports and its data",
		restart: "start a detached broker again, with its ports and its data; end it before, if it is running",
		stop:    "end a detached broker and remove its data",
	} {
		help += "; a process follows if there are several"
		fs.BoolFunc(verb, help, func(string) error { set.verb = verb; return nil })
	}
	set.launch = kinds[args[0]](fs)
	if err := fs.Parse(args[1:]); err != nil {
		return set, err
	}
	if set.detach && set.outlive { // the process that -detach starts must not start another one
		return set, errors.New("-detach and -outlive-parent exclude each other")
	}
	if set.pids = fs.Args(); set.verb == "" && fs.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return set, nil
}

// flags are the flags of most kinds.
type flags struct {
	heap       *string
	login, old *bool
}

func addFlags(fs *flag.FlagSet, heap, login, version string) flags {
	return flags{
		fs.String("heap", heap, "heap of the broker, in Java's notation"), fs.Bool("login", false, login),
		fs.Bool(version, false, "start the older version "+version),
	}
}

const onlyAdmin = "refuse users other than admin with password admin"

func artemis(fs *flag.FlagSet) func(context.Context) (running, error) {
	f := addFlags(fs, "512M", onlyAdmin, "2.19")
	noManagement := fs.Bool("no-management", false, "do not start the web server: less memory, no counters")
	return func(ctx context.Context) (running, error) {
		options := []brokertest.ArtemisOption{brokertest.WithDefaultPorts(), brokertest.WithHeap(*f.heap)}
		if *f.login {
			options = append(options, brokertest.WithLogin())
		}
		if *noManagement {
			options = append(options, brokertest.WithoutManagement())
		}
		if *f.old {
			options = append(options, brokertest.WithArtemis219())
		}
		a, err := brokertest.LaunchArtemis(ctx, options...)
		return running{a, func() [][2]string {
			return append([][2]string{
				{"AMQP_URL", a.AMQPURL()},
				{"STOMP_URL", a.STOMPURL()},
				{"CORE_URL", a.CoreURL()},
				{"MANAGEMENT_URL", a.ManagementURL()},
			}, admin()...)
		}, *f.login}, err
	}
}

// admin returns the lines of the login that may do everything.
func admin() [][2]string {
	return [][2]string{{"BROKER_USER", brokertest.User}, {"BROKER_PASSWORD", brokertest.Password}}
}

func activemq(fs *flag.FlagSet) func(context.Context) (running, error) {
	f := addFlags(fs, "512M", onlyAdmin, "5.16")
	management := fs.Bool("management", false, "add Jolokia")
	return func(ctx context.Context) (running, error) {
		options := []brokertest.ActiveMQOption{
			brokertest.WithActiveMQDefaultPorts(), brokertest.WithActiveMQHeap(*f.heap),
		}
		if *f.old {
			options = append(options, brokertest.WithActiveMQ516())
		}
		if *f.login {
			options = append(options, brokertest.WithActiveMQLogin())
		}
		if *management {
			options = append(options, brokertest.WithActiveMQManagement())
		}
		a, err := brokertest.LaunchActiveMQ(ctx, options...)
		return running{a, func() [][2]string {
			lines := [][2]string{
				{"AMQP_URL", a.AMQPURL()},
				{"AMQP_NATIVE_URL", a.NativeAMQPURL()},
				{"STOMP_URL", a.STOMPURL()},
				{"MANAGEMENT_URL", a.ManagementURL()},
			}
			if *f.login || *management {
				lines = append(lines, admin()...)
			}
			return lines
		}, *f.login}, err
	}
}

// rabbitmq always demands its login.
func rabbitmq(fs *flag.FlagSet) func(context.Context) (running, error) {
	four := fs.Bool("4", false, "start RabbitMQ 4 of the next Debian; for root, or with user namespaces")
	return func(ctx context.Context) (running, error) {
		options := []brokertest.RabbitMQOption{brokertest.WithRabbitMQDefaultPorts()}
		if *four {
			options = append(options, brokertest.WithRabbitMQ4())
		}
		r, err := brokertest.LaunchRabbitMQ(ctx, options...)
		return running{r, func() [][2]string {
			return append([][2]string{{"AMQP_URL", r.AMQPURL()}, {"STOMP_URL", r.STOMPURL()}}, admin()...)
		}, true}, err
	}
}

func rocketmq(fs *flag.FlagSet) func(context.Context) (running, error) {
	f := addFlags(fs, "400m", "refuse requests that are not signed with BROKER_USER and BROKER_PASSWORD", "4.9")
	proxy := fs.Bool("proxy", false, "add the proxy for gRPC clients; PERFMQ_URL is its own")
	return func(ctx context.Context) (running, error) {
		options := []brokertest.RocketMQOption{
			brokertest.WithRocketMQDefaultPorts(), brokertest.WithRocketMQHeap(*f.heap),
		}
		if *f.old {
			options = append(options, brokertest.WithRocketMQ49())
		}
		if *f.login {
			options = append(options, brokertest.WithRocketMQLogin())
		}
		if *proxy {
			options = append(options, brokertest.WithRocketMQProxy())
		}
		r, err := brokertest.LaunchRocketMQ(ctx, options...)
		return running{r, func() [][2]string {
			lines := [][2]string{{"ROCKETMQ_URL", r.URL()}, {"NAME_SERVER", r.NameServer()}, {"BROKER_ADDRESS", r.Broker()}}
			if *proxy {
				lines = append([][2]string{{"PROXY_URL", r.ProxyURL()}}, lines...)
			}
			if *f.login {
				lines = append(lines,
					[2]string{"BROKER_USER", brokertest.RocketMQUser}, [2]string{"BROKER_PASSWORD", brokertest.RocketMQPassword})
			}
			return lines
		}, *f.login}, err
	}
}

// qpid always demands its login.
func qpid(*flag.FlagSet) func(context.Context) (running, error) {
	return func(ctx context.Context) (running, error) {
		q, err := brokertest.LaunchQpid(ctx, brokertest.WithQpidDefaultPort())
		return running{q, func() [][2]string {
			return append([][2]string{{"AMQP_URL", q.AMQPURL()}}, admin()...)
		}, true}, err
	}
}
