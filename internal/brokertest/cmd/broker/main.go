//go:build unix

// Command broker starts a real message broker for benchmarks and manual checks,
// prints where it listens as KEY=value lines, the last of them READY=1, and ends
// it on SIGINT or SIGTERM, when the pipe that is its stdin closes, or when the
// process that started it is gone.
//
//	go run ./internal/brokertest/cmd/broker artemis --amqp-port 5672
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	options  []brokertest.ArtemisOption
	outlive  bool
	lifetime time.Duration
}

func run(ctx context.Context, args []string, stdin *os.File, stdout io.Writer) error {
	if len(args) == 0 || args[0] != "artemis" {
		return errors.New("usage: broker artemis [flags]; broker artemis --help lists them")
	}
	set, err := parse(args[1:])
	if err != nil {
		return err
	}
	// Before the start: a parent that goes meanwhile must be noticed.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !set.outlive {
		go watchParent(ctx, cancel)
	}
	go watchStdin(stdin, cancel)

	a, err := brokertest.LaunchArtemis(ctx, set.options...)
	if err != nil {
		return err
	}
	if err := show(stdout, a); err != nil {
		return errors.Join(fmt.Errorf("print where the broker listens: %w", err), a.Close())
	}
	if set.lifetime > 0 {
		timer := time.AfterFunc(set.lifetime, cancel)
		defer timer.Stop()
	}
	wait(ctx, a)
	died := !a.Alive()
	tail := a.LogTail()
	err = errors.Join(a.Stop(), a.Close())
	if died {
		return fmt.Errorf("the broker ended by itself; the end of its log:\n%s", tail)
	}
	return err
}

func parse(args []string) (settings, error) {
	var (
		set   settings
		ports brokertest.ArtemisPorts
	)
	fs := flag.NewFlagSet("broker artemis", flag.ContinueOnError)
	fs.IntVar(&ports.AMQP, "amqp-port", 0, "port of the AMQP acceptor (0: a free one)")
	fs.IntVar(&ports.AMQP, "port", 0, "same as -amqp-port")
	fs.IntVar(&ports.STOMP, "stomp-port", 0, "port of the STOMP acceptor (0: a free one)")
	fs.IntVar(&ports.Core, "core-port", 0, "port of the acceptor for CORE and all (0: a free one)")
	heap := fs.String("heap", "512M", "heap of the broker, in Java's notation")
	extra := fs.String("acceptor-extra", "", `parameters added to every acceptor: "amqpCredits=100;..."`)
	login := fs.Bool("login", false, "refuse whoever is not admin/admin")
	tls := fs.Bool("tls", false, "add a TLS acceptor")
	clientCerts := fs.Bool("client-certs", false, "add a TLS acceptor that demands a client certificate")
	noManagement := fs.Bool("no-management", false, "leave the web server away: less memory, no counters")
	fs.DurationVar(&set.lifetime, "for", 0, "end after this time (0: never)")
	fs.BoolVar(&set.outlive, "outlive-parent", false, "go on when the process that started this is gone")
	if err := fs.Parse(args); err != nil {
		return set, err
	}
	if fs.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	set.options = append(set.options, brokertest.WithPorts(ports), brokertest.WithHeap(*heap))
	if *extra != "" {
		set.options = append(set.options, brokertest.WithAcceptorExtra(*extra))
	}
	for _, o := range []struct {
		on     bool
		option brokertest.ArtemisOption
	}{
		{*login, brokertest.WithLogin()},
		{*tls, brokertest.WithTLS()},
		{*clientCerts, brokertest.WithTLSClientCerts()},
		{*noManagement, brokertest.WithoutManagement()},
	} {
		if o.on {
			set.options = append(set.options, o.option)
		}
	}
	return set, nil
}

// show prints what a script or a person needs, in a form that a shell can read
// line by line.
func show(w io.Writer, a *brokertest.Artemis) error {
	lines := [][2]string{
		{"AMQP_URL", a.AMQPURL()},
		{"STOMP_URL", a.STOMPURL()},
		{"CORE_URL", a.CoreURL()},
		{"AMQPS_URL", a.AMQPSURL()},
		{"STOMPS_URL", a.STOMPSURL()},
		{"MANAGEMENT_URL", a.ManagementURL()},
		{"BROKER_USER", brokertest.User},
		{"BROKER_PASSWORD", brokertest.Password},
		{"BROKER_PID", fmt.Sprint(a.PID())},
		{"BROKER_DIR", a.Dir()},
		{"BROKER_LOG", a.LogFile()},
		{"ARTEMIS_HOME", a.Home()},
	}
	if c := a.Certs(); c != nil {
		lines = append(lines, [][2]string{
			{"CA_FILE", c.CAFile}, {"CLIENT_CERT_FILE", c.ClientCertFile}, {"CLIENT_KEY_FILE", c.ClientKeyFile},
		}...)
	}
	var text strings.Builder
	for _, l := range append(lines, [2]string{"READY", "1"}) {
		if l[1] != "" {
			text.WriteString(l[0] + "=" + l[1] + "\n")
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// wait returns when the context or the broker ends.
func wait(ctx context.Context, a *brokertest.Artemis) {
	select {
	case <-ctx.Done():
	case <-a.Done():
	}
}

// watchParent cancels when this process is handed to another parent: `go run`
// dies of SIGTERM without telling its child.
func watchParent(ctx context.Context, cancel func()) {
	parent := os.Getppid()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
	cancel()
}

// watchStdin cancels at the end of stdin if that is a pipe. A background job of
// a shell has /dev/null, whose end means nothing.
func watchStdin(stdin *os.File, cancel func()) {
	info, err := stdin.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	_, _ = io.Copy(io.Discard, stdin)
	cancel()
}
