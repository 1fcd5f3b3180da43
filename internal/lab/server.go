//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// server is a running broker for benchmarks and scenarios.
type server struct {
	title    string
	pid      int
	urls     map[string]string // by protocol
	close    func() error
	artemis  *brokertest.Artemis // nil of other brokers, as are the next two
	activemq *brokertest.ActiveMQ
	rocketmq *brokertest.RocketMQ
}

// serverKinds are the brokers that serve starts.
func serverKinds() []string { return []string{"artemis", "activemq", "rocketmq", "embedded"} }

// serve starts a broker with a heap for backlogs of millions of messages.
func (s *session) serve(ctx context.Context, kind string) (*server, error) {
	switch kind {
	case "artemis":
		a, err := brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G"))
		if err != nil {
			return nil, fmt.Errorf("start Artemis: %w", err)
		}
		urls := map[string]string{"amqp": a.AMQPURL(), "stomp": a.STOMPURL()}
		return &server{title: a.Title(), pid: a.PID(), urls: urls, close: a.Close, artemis: a}, nil
	case "activemq":
		a, err := brokertest.LaunchActiveMQ(ctx, brokertest.WithActiveMQHeap("768M"), brokertest.WithActiveMQManagement())
		if err != nil {
			return nil, fmt.Errorf("start ActiveMQ Classic: %w", err)
		}
		urls := map[string]string{"amqp": a.AMQPURL(), "stomp": a.STOMPURL()}
		return &server{title: a.Title(), pid: a.PID(), urls: urls, close: a.Close, activemq: a}, nil
	case "rocketmq":
		r, err := brokertest.LaunchRocketMQ(ctx, brokertest.WithRocketMQHeap("1g"),
			// the default; the harness makes them smaller
			brokertest.WithRocketMQProperty("mappedFileSizeCommitLog", "1073741824"))
		if err != nil {
			return nil, fmt.Errorf("start RocketMQ: %w", err)
		}
		urls := map[string]string{"rocketmq": r.URL()}
		return &server{title: r.Title(), pid: r.PID(), urls: urls, close: r.Close, rocketmq: r}, nil
	default:
		return s.serveEmbedded(ctx)
	}
}

// serveEmbedded starts `perfmq broker`, a process of its own.
func (s *session) serveEmbedded(ctx context.Context) (*server, error) {
	cmd := s.command(ctx, "broker", "--listen-amqp", "127.0.0.1:0", "--listen-stomp", "127.0.0.1:0",
		"--listen-rocketmq", "127.0.0.1:0", "--control", "127.0.0.1:0", "--max-memory", "4GiB")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start perfmq broker: %w", err)
	}
	e := &server{title: "embedded broker", pid: cmd.Process.Pid, urls: map[string]string{}, close: func() error {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // its status does not matter here
		return nil
	}}
	// It prints a line for each protocol and one for the control.
	for lines := bufio.NewScanner(out); len(e.urls) < 4; {
		if !lines.Scan() {
			return nil, errors.Join(e.close(), errors.New("perfmq broker did not say where it listens"))
		}
		if f := strings.Fields(lines.Text()); len(f) == 2 {
			e.urls[f[0]] = f[1]
		}
	}
	return e, nil
}
