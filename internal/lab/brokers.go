//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/internal/brokertest"
)

const (
	// A backlog needs largeHeap. Artemis with a million messages needs hugeHeap, or spends its time on garbage.
	smallHeap = "256M"
	largeHeap = "1G"
	hugeHeap  = "3G"
	// fullAt is the size of a queue that becomes full after some seconds.
	fullAt = 1000
	// rocketQueues is the number of queues of a RocketMQ topic.
	rocketQueues = 8
)

// use is the part of a failure, a benchmark or a scenario that decides how its broker is configured.
type use struct {
	backlog int                   // messages in the store
	full    brokertest.FullPolicy // of queues that become full: PolicyBlock or PolicyFail
	heavy   bool                  // a load as fast as possible: a large heap, and the broker's defaults
	proxy   bool                  // with RocketMQ's proxy for gRPC clients
}

func login() settings {
	return settings{"user": brokertest.User, "password": brokertest.Password}
}

// with returns settings and one more.
func (s settings) with(key string, value any) settings {
	s[key] = value
	return s
}

// hostOf returns host:port of a URL without a path.
func hostOf(url string) string {
	_, host, _ := strings.Cut(url, "://")
	return host
}

// amqpAndSTOMP are the endpoints of brokers, the primary first. set returns the settings of each.
func amqpAndSTOMP[B interface {
	AMQPURL() string
	STOMPURL() string
}](prefix string, set func() settings, all ...B) []endpoint {
	amqp := endpoint{protocol: "amqp", settings: set(), prefix: prefix}
	stomp := endpoint{protocol: "stomp", settings: set(), prefix: prefix}
	for _, b := range all {
		amqp.hosts = append(amqp.hosts, hostOf(b.AMQPURL()))
		stomp.hosts = append(stomp.hosts, hostOf(b.STOMPURL()))
	}
	return []endpoint{amqp, stomp}
}

func launchArtemis(ctx context.Context, u use) (*cluster, error) {
	options := []brokertest.ArtemisOption{brokertest.WithHeap(smallHeap)}
	switch {
	case u.backlog >= 1_000_000:
		options = append(options, brokertest.WithHeap(hugeHeap))
	case u.backlog > 0, u.heavy:
		options = append(options, brokertest.WithHeap(largeHeap))
	}
	a, err := brokertest.LaunchArtemis(ctx, options...)
	if err != nil {
		return nil, err
	}
	if u.full != "" {
		limit := brokertest.AddressLimit{Match: "full.#", MaxMessages: fullAt, Policy: u.full}
		if err := a.SetAddressLimit(ctx, limit); err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	depth := func(ctx context.Context, queue string) (int64, error) { return artemisDepth(ctx, a, queue) }
	set := func() settings { return login().with("management-url", a.ManagementURL()) }
	return &cluster{
		title: a.Title(), primary: a, close: a.Close, stored: depth, left: depth, dismiss: a.CloseAllConnections,
		endpoints: amqpAndSTOMP("full.", set, a),
	}, nil
}

func artemisDepth(ctx context.Context, a *brokertest.Artemis, queue string) (int64, error) {
	q, err := a.Queue(ctx, queue)
	if errors.Is(err, brokertest.ErrNoQueue) { // one without messages, which died with them
		return 0, nil
	}
	return q.MessageCount, err
}

func launchActiveMQ(ctx context.Context, u use) (*cluster, error) {
	options := []brokertest.ActiveMQOption{brokertest.WithActiveMQHeap(smallHeap), brokertest.WithActiveMQManagement()}
	if u.full != "" { // both protocols have the store in common
		options = append(options, brokertest.WithActiveMQSetting("journalMaxFileLength", "1mb"),
			brokertest.WithActiveMQSetting("storeUsage", "4mb"))
	}
	if u.full == brokertest.PolicyFail {
		options = append(options, brokertest.WithActiveMQSetting("sendFailIfNoSpace", "true"))
	}
	if u.backlog > 0 || u.heavy {
		options = append(options, brokertest.WithActiveMQHeap(largeHeap))
	}
	if u.backlog > 0 {
		options = append(options, brokertest.WithActiveMQSetting("memoryUsage", "64mb"))
	}
	a, err := brokertest.LaunchActiveMQ(ctx, options...)
	if err != nil {
		return nil, err
	}
	depth := func(ctx context.Context, queue string) (int64, error) { return activemqDepth(ctx, a, queue) }
	return &cluster{
		title: a.Title() + ", KahaDB", primary: a, close: a.Close, stored: depth, left: depth,
		dismiss: func(ctx context.Context) error {
			_, err := a.CloseAllConnections(ctx)
			return err
		},
		endpoints: amqpAndSTOMP("", func() settings { return login().with("management-url", a.ManagementURL()) }, a),
	}, nil
}

func activemqDepth(ctx context.Context, a *brokertest.ActiveMQ, queue string) (int64, error) {
	q, err := a.Queue(ctx, queue)
	return q.QueueSize, err
}

func launchQpid(ctx context.Context, _ use) (*cluster, error) {
	q, err := brokertest.LaunchQpid(ctx, brokertest.WithQpidManagement())
	if err != nil {
		return nil, err
	}
	return &cluster{
		title: q.Title(), primary: q, close: q.Close, stored: q.QueueDepth, left: q.QueueDepth,
		dismiss: func(ctx context.Context) error {
			_, err := q.CloseAllConnections(ctx)
			return err
		},
		endpoints: []endpoint{{protocol: "amqp", hosts: []string{hostOf(q.AMQPURL())}, settings: login()}},
	}, nil
}

// member is a broker of a pair.
type member interface {
	node
	AMQPURL() string
	STOMPURL() string
	Title() string
	Alive() bool
	Close() error
}

// pair is a cluster of two brokers. A broker that waits for the store has no queues: only live ones are asked for a
// depth.
func pair[B member, O any](
	way string, launch func(context.Context, ...O) (B, B, error),
	depth func(context.Context, B, string) (int64, error), options ...O,
) func(context.Context, use) (*cluster, error) {
	return func(ctx context.Context, _ use) (*cluster, error) {
		primary, backup, err := launch(ctx, options...)
		if err != nil {
			return nil, err
		}
		stored := func(ctx context.Context, queue string) (sum int64, err error) {
			for _, b := range []B{primary, backup} {
				if !b.Alive() {
					continue
				}
				n, err := depth(ctx, b, queue)
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		}
		return &cluster{
			title: primary.Title() + ", " + way, primary: primary, backup: backup, stored: stored, left: stored,
			close:     func() error { return errors.Join(backup.Close(), primary.Close()) },
			endpoints: amqpAndSTOMP("", login, primary, backup),
		}, nil
	}
}

func launchRabbitMQ(ctx context.Context, u use) (*cluster, error) {
	r, err := brokertest.LaunchRabbitMQ(ctx, brokertest.WithRabbitMQManagement())
	if err != nil {
		return nil, err
	}
	if u.full == brokertest.PolicyFail {
		policy := fmt.Sprintf(`{"max-length": %d, "overflow": "reject-publish"}`, fullAt)
		if _, err := r.Ctl(ctx, "set_policy", "full", "^full", policy, "--apply-to", "queues"); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	depth := func(ctx context.Context, queue string) (int64, error) { return rabbitDepth(ctx, r, queue) }
	set := func() settings { return login().with("management-url", r.ManagementURL()) }
	return &cluster{
		title: r.Title(), primary: r, close: r.Close, stored: depth, left: depth,
		dismiss: func(ctx context.Context) error {
			_, err := r.Ctl(ctx, "close_all_connections", "by the operator")
			return err
		},
		endpoints: amqpAndSTOMP("full.", set, r),
	}, nil
}

// rabbitDepth asks a classic queue itself: the counts of the management plugin are seconds old.
func rabbitDepth(ctx context.Context, r *brokertest.RabbitMQ, queue string) (int64, error) {
	text, err := r.Ctl(ctx, "list_queues", "name", "messages")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if name, n, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == queue {
			return strconv.ParseInt(n, 10, 64)
		}
	}
	return 0, fmt.Errorf("rabbitmqctl lists no queue %s: %s", queue, text)
}

func launchRocketMQ(ctx context.Context, u use) (*cluster, error) {
	options := []brokertest.RocketMQOption{
		brokertest.WithRocketMQHeap("320m"), brokertest.WithRocketMQProperty("flushDiskType", "SYNC_FLUSH"),
	}
	flush := ", synchronous flush"
	if u.heavy {
		flush = ""
		options = []brokertest.RocketMQOption{ // the default size; the harness makes files smaller
			brokertest.WithRocketMQHeap("1g"), brokertest.WithRocketMQProperty("mappedFileSizeCommitLog", "1073741824"),
		}
	}
	if u.proxy {
		flush += ", with proxy"
		options = append(options, brokertest.WithRocketMQProxy())
	}
	r, err := brokertest.LaunchRocketMQ(ctx, options...)
	if err != nil {
		return nil, err
	}
	endpoints := []endpoint{{protocol: "rocketmq", hosts: []string{r.NameServer()}, durable: true}}
	if u.proxy {
		endpoints = append(endpoints,
			endpoint{protocol: "rocketmq+grpc", hosts: []string{hostOf(r.ProxyURL())}, durable: true})
	}
	return &cluster{
		title: r.Title() + flush, primary: r, close: r.Close, stored: r.TopicMessages, lasting: true,
		announced: r.Broker(), endpoints: endpoints,
	}, nil
}

// launchEmbedded starts `perfmq broker` as a process of its own, for benchmarks.
func (s *session) launchEmbedded(ctx context.Context) (*cluster, error) {
	cmd := s.command(ctx, "broker", "--listen-amqp", "127.0.0.1:0", "--listen-stomp", "127.0.0.1:0",
		"--listen-rocketmq", "127.0.0.1:0", "--control", "127.0.0.1:0", "--max-memory", "4GiB")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start perfmq broker: %w", err)
	}
	c := &cluster{title: "embedded broker", pid: cmd.Process.Pid, close: func() error {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = cmd.Wait()                       // its status does not matter here
		return nil
	}}
	// It prints a line for each protocol, and for the control.
	for lines := bufio.NewScanner(out); len(c.endpoints) < 4; {
		if !lines.Scan() {
			return nil, errors.Join(c.close(), errors.New("perfmq broker did not say where it listens"))
		}
		if f := strings.Fields(lines.Text()); len(f) == 2 {
			c.endpoints = append(c.endpoints, endpoint{protocol: f[0], hosts: []string{hostOf(f[1])}})
		}
	}
	return c, nil
}
