//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// broker is a running broker.
type broker struct {
	title string
	end   func() error
	// arguments returns the arguments with which perfmq runs a scenario on it. stop ends the helpers that they need.
	arguments func(name, dir string) (args []string, stop func())
}

// start starts a broker with a heap for backlogs of millions of messages.
func start(ctx context.Context, kind string) (*broker, error) {
	switch kind {
	case "artemis":
		a, err := brokertest.LaunchArtemis(ctx, brokertest.WithHeap("768M"))
		if err != nil {
			return nil, err
		}
		return &broker{title: a.Title(), end: a.Close, arguments: func(name, _ string) ([]string, func()) {
			return artemisArguments(a, name), func() {}
		}}, nil
	case "activemq":
		a, err := brokertest.LaunchActiveMQ(ctx, brokertest.WithActiveMQHeap("768M"), brokertest.WithActiveMQManagement())
		if err != nil {
			return nil, err
		}
		return &broker{title: a.Title(), end: a.Close, arguments: func(name, dir string) ([]string, func()) {
			args := []string{
				"--url", a.STOMPURL(), "--management-url", a.ManagementURL(), "--user", brokertest.User,
				"--password", brokertest.Password,
			}
			if name == "activemq/restart" {
				command, stop := restarts(ctx, dir, func(ctx context.Context) error {
					if err := a.Stop(); err != nil {
						return err
					}
					return a.Start(ctx)
				})
				return append(args, "--set", "restart="+command), stop
			}
			return args, func() {}
		}}, nil
	default:
		r, err := brokertest.LaunchRocketMQ(ctx)
		if err != nil {
			return nil, err
		}
		return &broker{title: r.Title(), end: r.Close, arguments: func(string, string) ([]string, func()) {
			return []string{"--url", r.URL()}, func() {}
		}}, nil
	}
}

func artemisArguments(a *brokertest.Artemis, name string) []string {
	login := []string{"--user", brokertest.User, "--password", brokertest.Password}
	switch {
	case name == "smoke/cross" || strings.HasPrefix(name, "cross/"):
		return append(login, "--set", "amqp="+a.AMQPURL(), "--set", "stomp="+a.STOMPURL())
	case name == "smoke/stomp" || name == "soak/stomp":
		return append(login, "--url", a.STOMPURL())
	default:
		return append(login, "--url", a.AMQPURL())
	}
}

// restarts returns a command for the shell that has f carried out by this process and waits until it is done.
func restarts(ctx context.Context, dir string, f func(context.Context) error) (command string, stop func()) {
	asked, done := filepath.Join(dir, "restart.asked"), filepath.Join(dir, "restart.done")
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if os.Remove(asked) != nil {
				continue // no restart was requested
			}
			verdict := "exit 0"
			if err := f(ctx); err != nil {
				fmt.Fprintf(os.Stderr, "restart: %v\n", err)
				verdict = "exit 1"
			}
			if os.WriteFile(done+".new", []byte(verdict), 0o600) != nil || os.Rename(done+".new", done) != nil {
				return
			}
		}
	}()
	return "touch " + asked + "; while [ ! -e " + done + " ]; do sleep 0.1; done; v=`cat " + done + "`; rm " + done +
			"; eval \"$v\"",
		func() { cancel(); <-ended }
}
