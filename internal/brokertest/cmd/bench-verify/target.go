//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// target is a protocol on a broker.
type target struct {
	name, protocol string
	start          func(context.Context, *bench) (started, error)
}

// started is a broker that runs.
type started struct {
	url string
	pid int // 0: it is no process of its own
	end func()
}

func targets() []target {
	embedded := func(protocol string) target {
		return target{"embedded-" + protocol, protocol, func(ctx context.Context, b *bench) (started, error) {
			return b.perfmqBroker(ctx, protocol)
		}}
	}
	return []target{
		{"artemis-amqp", "amqp", onArtemis((*brokertest.Artemis).AMQPURL)},
		{"artemis-stomp", "stomp", onArtemis((*brokertest.Artemis).STOMPURL)},
		{"rocketmq", "rocketmq", onRocketMQ},
		embedded("amqp"), embedded("stomp"), embedded("rocketmq"),
		{"mem", "mem", func(context.Context, *bench) (started, error) {
			return started{url: "mem://local", end: func() {}}, nil
		}},
	}
}

func onArtemis(url func(*brokertest.Artemis) string) func(context.Context, *bench) (started, error) {
	return func(ctx context.Context, _ *bench) (started, error) {
		a, err := brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G"))
		if err != nil {
			return started{}, err
		}
		return started{url(a), a.PID(), func() { _ = a.Close() }}, nil // it has to end one way or the other
	}
}

func onRocketMQ(ctx context.Context, _ *bench) (started, error) {
	r, err := brokertest.LaunchRocketMQ(ctx, brokertest.WithRocketMQHeap("1g"),
		// the default; the harness makes them smaller
		brokertest.WithRocketMQProperty("mappedFileSizeCommitLog", "1073741824"))
	if err != nil {
		return started{}, err
	}
	return started{r.URL(), r.PID(), func() { _ = r.Close() }}, nil // as above
}

// listening starts a perfmq broker and waits for the line that says where it listens: the protocol and the URL.
func listening(cmd *exec.Cmd) (s started, err error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	s.pid = cmd.Process.Pid
	s.end = func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // its status does not matter here
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 2 && strings.Contains(f[1], "://") {
			s.url = f[1]
			return s, nil
		}
	}
	s.end()
	return s, fmt.Errorf("perfmq broker did not say where it listens")
}
