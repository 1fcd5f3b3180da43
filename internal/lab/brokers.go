//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

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
	if u.full != "" {
		limit := brokertest.AddressLimit{Match: "full.#", MaxMessages: fullAt, Policy: u.full}
		options = append(options, brokertest.WithAddressLimit(limit))
	}
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

// rabbitCtl runs rabbitmqctl.
type rabbitCtl func(ctx context.Context, args ...string) (string, error)

func launchRabbitMQ(ctx context.Context, u use) (*cluster, error) {
	r, err := brokertest.LaunchRabbitMQ(ctx, brokertest.WithRabbitMQManagement())
	if err != nil {
		return nil, err
	}
	if err := refuseWhenFull(ctx, u, r.Ctl); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	depth := rabbitDepth(r.Ctl)
	ctl := func(args ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := r.Ctl(ctx, args...)
			return err
		}
	}
	return &cluster{
		title: r.Title(), primary: r, close: r.Close, stored: depth, left: depth,
		stop: ctl("stop_app"), start: ctl("start_app"), dismiss: ctl("close_all_connections", "by the operator"),
		alarm: func(ctx context.Context, on bool) error {
			limit := map[bool]string{true: "0.000001", false: "0.4"}[on]
			return ctl("set_vm_memory_high_watermark", limit)(ctx)
		},
		endpoints: amqpAndSTOMP("full.", func() settings { return login().with("management-url", r.ManagementURL()) }, r),
	}, nil
}

// launchRabbitMQQuorum starts three nodes. Clients connect to the first one, which has the leaders of their queues, and
// then to the others.
func launchRabbitMQQuorum(ctx context.Context, u use) (*cluster, error) {
	r, err := brokertest.LaunchRabbitMQCluster(ctx, 3)
	if err != nil {
		return nil, err
	}
	if err := refuseWhenFull(ctx, u, r.Ctl); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	depth := quorumDepth(r.Ctl)
	c := &cluster{
		title: r.Nodes[0].Title() + ", quorum queue on three nodes", primary: r.Nodes[0], backup: r.Nodes[1], close: r.Close,
		stored: depth, left: depth, endpoints: amqpAndSTOMP("full.", login, r.Nodes...),
		closed: func(protocol string) (all []time.Time, err error) {
			for _, node := range r.Nodes {
				text, err := os.ReadFile(node.LogFile())
				if err != nil {
					return nil, err
				}
				all = append(all, rabbitClosed(string(text), protocol)...)
			}
			return all, nil
		},
	}
	for i := range c.endpoints { // a queue that its first producer declares may refuse the first message: it has no leader yet
		c.endpoints[i].declare = func(ctx context.Context, queue string) error {
			_, err := r.Ctl(ctx, "eval", fmt.Sprintf(`{new, _} = rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<%q>>),
			true, false, [{<<"x-queue-type">>, longstr, <<"quorum">>}], none, <<"perfmq">>).`, queue))
			return err
		}
	}
	return c, nil
}

// rabbitClosed returns the times at which a node closed connections of a protocol because of an error of its own. The
// log names a connection that a client closed, or that broke, at the level of information, or in other words
// (rabbit_stomp_reader).
func rabbitClosed(log, protocol string) (list []time.Time) {
	line := regexp.MustCompile(`(?m)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+\d\d:\d\d) (?:\[error\] \S+ closing (AMQP) ` +
		`connection .*\):|\[warning\] \S+ (STOMP) connection .* terminated with reason )`)
	for _, m := range line.FindAllStringSubmatch(log, -1) {
		at, err := time.Parse("2006-01-02 15:04:05.999999-07:00", m[1])
		if err == nil && strings.EqualFold(m[2]+m[3], protocol) {
			list = append(list, at)
		}
	}
	return list
}

// refuseWhenFull makes full queues refuse messages, if the trial is about them.
func refuseWhenFull(ctx context.Context, u use, ctl rabbitCtl) error {
	if u.full != brokertest.PolicyFail {
		return nil
	}
	policy := fmt.Sprintf(`{"max-length": %d, "overflow": "reject-publish"}`, fullAt)
	_, err := ctl(ctx, "set_policy", "full", "^full", policy, "--apply-to", "queues")
	return err
}

// rabbitDepth asks a classic queue itself: the counts of the management plugin are seconds old.
func rabbitDepth(ctl rabbitCtl) func(context.Context, string) (int64, error) {
	return func(ctx context.Context, queue string) (int64, error) {
		text, err := ctl(ctx, "list_queues", "name", "messages")
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
}

// quorumDepth asks the leader of a quorum queue: the list of rabbitmqctl is five seconds old.
func quorumDepth(ctl rabbitCtl) func(context.Context, string) (int64, error) {
	return func(ctx context.Context, queue string) (n int64, err error) {
		text, err := ctl(ctx, "eval", fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<%q>>)),
			{ok, N, _} = rabbit_fifo_client:stat(amqqueue:get_pid(Q), 60000), N.`, queue))
		if err != nil {
			return 0, err
		}
		return strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	}
}

// Values of flushDiskType and brokerRole.
const (
	syncFlush   = "SYNC_FLUSH"
	asyncFlush  = "ASYNC_FLUSH"
	syncMaster  = "SYNC_MASTER"
	asyncMaster = "ASYNC_MASTER"
)

func launchRocketMQ(ctx context.Context, u use) (*cluster, error) {
	options := []brokertest.RocketMQOption{
		brokertest.WithRocketMQHeap("320m"), brokertest.WithRocketMQProperty("flushDiskType", syncFlush),
	}
	flush := ", synchronous flush"
	if u.heavy {
		flush = ""
		options = []brokertest.RocketMQOption{ // the default size; the harness makes files smaller
			brokertest.WithRocketMQHeap("1g"), brokertest.WithRocketMQProperty("mappedFileSizeCommitLog", "1073741824"),
		}
	}
	r, err := brokertest.LaunchRocketMQ(ctx, options...)
	if err != nil {
		return nil, err
	}
	c := rocketCluster(r)
	c.title, c.close = r.Title()+flush, r.Close
	return c, nil
}

// launchRocketMQPair starts a master and its slave. The slave does not take over: it only lets consumers read, and
// perfmq reads from masters. The master waits until so many brokers have a message, itself included.
func launchRocketMQPair(flush, role string, replicas int) func(context.Context, use) (*cluster, error) {
	return func(ctx context.Context, _ use) (*cluster, error) {
		master, slave, err := brokertest.LaunchRocketMQPair(ctx,
			brokertest.WithRocketMQHeap("320m"), brokertest.WithRocketMQProperty("flushDiskType", flush),
			brokertest.WithRocketMQProperty("brokerRole", role),
			brokertest.WithRocketMQProperty("inSyncReplicas", strconv.Itoa(replicas)))
		if err != nil {
			return nil, err
		}
		c := rocketCluster(master)
		c.title, c.backup = fmt.Sprintf("%s, master and slave, %s, %s", master.Title(), flush, role), slave
		if role == syncMaster {
			c.title += fmt.Sprintf(", inSyncReplicas %d", replicas)
		}
		c.close = func() error { return errors.Join(slave.Close(), master.Close()) }
		c.endpoints[0].declare = func(ctx context.Context, queue string) error { // the slave learns of it seconds later
			if err := master.CreateTopic(ctx, queue, rocketQueues); err != nil {
				return err
			}
			for {
				_, err := slave.TopicMessages(ctx, queue)
				if err == nil {
					return nil
				}
				if waitErr := wait(ctx, 100*time.Millisecond); waitErr != nil {
					return fmt.Errorf("wait until the slave knows the topic: %w: %w", waitErr, err)
				}
			}
		}
		c.copied = func(ctx context.Context) (sum int64, err error) {
			for _, queue := range slices.Concat(c.live, c.kept) {
				n, err := slave.TopicMessages(ctx, queue)
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		}
		return c, nil
	}
}

// rocketCluster is a broker with its name server.
func rocketCluster(r *brokertest.RocketMQ) *cluster {
	return &cluster{
		primary: r, stored: r.TopicMessages, lasting: true,
		endpoints: []endpoint{{protocol: "rocketmq", hosts: []string{r.NameServer()}, durable: true}},
		announced: r.Broker(),
	}
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
	for lines := bufio.NewScanner(out); len(c.endpoints) < 4; { // it prints a line for each protocol, and for the control
		if !lines.Scan() {
			return nil, errors.Join(c.close(), errors.New("perfmq broker did not say where it listens"))
		}
		if f := strings.Fields(lines.Text()); len(f) == 2 {
			c.endpoints = append(c.endpoints, endpoint{protocol: f[0], hosts: []string{hostOf(f[1])}})
		}
	}
	return c, nil
}
