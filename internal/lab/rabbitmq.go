//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
)

// rabbitCtl runs rabbitmqctl.
type rabbitCtl func(ctx context.Context, args ...string) (string, error)

func launchRabbitMQ(ctx context.Context, f *failure) (*cluster, error) {
	options := []brokertest.RabbitMQOption{brokertest.WithRabbitMQManagement()}
	r, err := brokertest.LaunchRabbitMQ(ctx, options...)
	if err != nil {
		return nil, err
	}
	if err := refuseWhenFull(ctx, f, r.Ctl); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	set := func() settings { return login().with("management-url", r.ManagementURL()) }
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
			limit := "0.4"
			if on {
				limit = "0.000001"
			}
			_, err := r.Ctl(ctx, "set_vm_memory_high_watermark", limit)
			return err
		},
		endpoints: []endpoint{
			{protocol: "amqp", hosts: []string{hostOf(r.AMQPURL())}, settings: set(), prefix: "full."},
			{protocol: "stomp", hosts: []string{hostOf(r.STOMPURL())}, settings: set(), prefix: "full."},
		},
	}, nil
}

// launchRabbitMQQuorum starts three nodes. Clients connect to the first one, which has the leaders of their queues, and
// go on to the others.
func launchRabbitMQQuorum(ctx context.Context, f *failure) (*cluster, error) {
	r, err := brokertest.LaunchRabbitMQCluster(ctx, 3)
	if err != nil {
		return nil, err
	}
	if err := refuseWhenFull(ctx, f, r.Ctl); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	// A queue that its first producer declares may refuse the first message, because it has no leader yet.
	declare := func(ctx context.Context, queue string) error {
		_, err := r.Ctl(ctx, "eval", fmt.Sprintf(`{new, _} = rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<%q>>),
			true, false, [{<<"x-queue-type">>, longstr, <<"quorum">>}], none, <<"perfmq">>).`, queue))
		return err
	}
	amqp := endpoint{protocol: "amqp", settings: login(), prefix: "full.", declare: declare}
	stomp := endpoint{protocol: "stomp", settings: login(), prefix: "full.", declare: declare}
	for _, node := range r.Nodes {
		amqp.hosts = append(amqp.hosts, hostOf(node.AMQPURL()))
		stomp.hosts = append(stomp.hosts, hostOf(node.STOMPURL()))
	}
	depth := quorumDepth(r.Ctl)
	return &cluster{
		title: r.Nodes[0].Title() + ", quorum queue on three nodes", primary: r.Nodes[0], backup: r.Nodes[1], close: r.Close,
		stored: depth, left: depth, endpoints: []endpoint{amqp, stomp},
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
	}, nil
}

// rabbitClosed returns when a node closed connections of a protocol because of an error of its own. Those that clients
// have closed, or that broke, are in the log at the level of information, or in other words (rabbit_stomp_reader).
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

// refuseWhenFull makes queues refuse messages when they are full, if that is the failure.
func refuseWhenFull(ctx context.Context, f *failure, ctl rabbitCtl) error {
	if !f.expect.refused {
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

// quorumDepth asks the leader of a quorum queue: what rabbitmqctl lists of such a queue is five seconds old.
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
