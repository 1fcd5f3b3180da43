//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"golang.org/x/sync/errgroup"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/pkg/result"
)

// The goals for connections at rest on the embedded broker, and the number from which on they are judged: fewer do not
// show beside the program itself.
const (
	mostEach    = 16 // KiB of perfmq's memory
	leastOpened = 2000
	manyEnough  = 5000
)

// connectionsAtOnce is the number of openings in progress.
const connectionsAtOnce = 64

// reservedFiles are the files of a process beside its connections.
const reservedFiles = 1000

// connectionsCommand makes the table of connections at rest.
func connectionsCommand() command {
	return command{
		name: "connections", help: "up to 50,000 connections: their opening, and what they cost at rest",
		columns: []string{
			"broker", "protocol", "connections", "opened per second", "open p50", "open p99", "KiB each", "cpu us each",
			"broker's KiB each", "broker's cpu us each",
		},
		trials: func(*session) ([]trial, error) { return connectionTrials(), nil },
	}
}

func connectionTrials() (list []trial) {
	for _, on := range []struct {
		kind, protocol string
		sizes          []int
	}{
		{"embedded", "amqp", []int{100, 1000, 5000, 10_000, 50_000}},
		{"embedded", "stomp", []int{5000, 10_000}},
		{"embedded", "rocketmq", []int{5000, 10_000}},
		{"artemis", "amqp", []int{100, 1000, 5000}},
		{"artemis", "stomp", []int{5000}},
		{"rabbitmq4", "amqp", []int{100, 1000, 5000}},
		{"rocketmq", "rocketmq", []int{100, 1000, 5000}},
	} {
		run := func(ctx context.Context, s *session) ([]row, error) {
			return s.rest(ctx, on.kind, on.protocol, on.sizes)
		}
		list = append(list, trial{name: on.kind + "-" + on.protocol, run: run})
	}
	return list
}

// rest opens connections to brokers of a kind, in each of the numbers in turn, and returns a row for each.
func (s *session) rest(ctx context.Context, kind, protocol string, sizes []int) (rows []row, err error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return nil, fmt.Errorf("ask for the limit of open files: %w", err)
	}
	most := int(min(files.Max, 1<<20)) - reservedFiles //nolint:gosec // in range
	var brokers []*cluster
	defer func() {
		for _, c := range brokers {
			err = errors.Join(err, c.close())
		}
	}()
	for _, n := range sizes {
		for wanted := (n + most - 1) / most; len(brokers) < wanted; { // each has files for so many
			c, err := s.launchFor(ctx, kind)
			if err != nil {
				return nil, err
			}
			brokers = append(brokers, c)
		}
		r, err := s.restWith(ctx, brokers[:(n+most-1)/most], kind, protocol, n)
		if err != nil {
			return rows, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// launchFor starts a broker for many connections.
func (s *session) launchFor(ctx context.Context, kind string) (*cluster, error) {
	switch kind {
	case "artemis": // an AMQP connection takes 250 KiB of its heap: 5,000 need more than that of a heavy load
		return launchArtemis(ctx, use{backlog: 1_000_000})
	case "rabbitmq4":
		return launchRabbitMQ4(ctx)
	}
	return s.launch(ctx, kind)
}

func launchRabbitMQ4(ctx context.Context) (*cluster, error) {
	r, err := brokertest.LaunchRabbitMQ(ctx, brokertest.WithRabbitMQ4())
	if err != nil {
		return nil, err
	}
	return &cluster{
		title: r.Title(), primary: r, close: r.Close, endpoints: amqpAndSTOMP("", login, r),
	}, nil
}

// resting is what connections cost, all processes together.
type resting struct {
	opened          uint64
	seconds         float64 // until all were open
	p50, p99        int64   // microseconds, of the slowest process
	memory, brokers float64 // KiB
	cpu, brokersCPU time.Duration
	limit           string
}

func (s *session) restWith(ctx context.Context, brokers []*cluster, kind, protocol string, n int) (r row, err error) {
	base, err := s.opened(ctx, brokers[:1], protocol, 1)
	if err != nil {
		return r, err
	}
	got, err := s.opened(ctx, brokers, protocol, n)
	if err != nil {
		return r, err
	}
	perSecond := float64(got.opened) / got.seconds
	each := func(v float64) float64 { return v / float64(n) }
	memory := each(got.memory - float64(len(brokers))*base.memory)
	title := brokers[0].title
	if k := len(brokers); k > 1 {
		title += fmt.Sprintf(", %d of them, each with a perfmq", k)
	}
	r.Cells = []string{
		title, protocol, strconv.Itoa(n), number(perSecond, 0), time.Duration(got.p50 * 1000).String(),
		time.Duration(got.p99 * 1000).String(), number(memory, 1), number(each(float64(got.cpu.Microseconds())), 0),
		number(each(got.brokers), 1), number(each(float64(got.brokersCPU.Microseconds())), 0),
	}
	r.State, r.Verdict = promiseKept, got.limit
	switch {
	case got.opened < uint64(n): //nolint:gosec // not negative
		r.State, r.Verdict = promiseBroken, fmt.Sprintf("only %d opened; %s", got.opened, got.limit)
	case kind == "embedded" && n >= manyEnough && (memory > mostEach || perSecond < leastOpened):
		r.State = promiseBroken
		r.Verdict = fmt.Sprintf("MISSED: at most %d KiB each and %d a second; %s", mostEach, leastOpened, got.limit)
	}
	return r, nil
}

// opened opens n connections, an equal part at each broker by a perfmq of its own, and holds them for some seconds.
func (s *session) opened(ctx context.Context, brokers []*cluster, protocol string, n int) (sum resting, err error) {
	const hold = 4 * time.Second
	ctx, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	parts := make([]resting, len(brokers))
	var g errgroup.Group
	for i, c := range brokers {
		part := n / len(brokers)
		if i == 0 {
			part += n % len(brokers)
		}
		dir := filepath.Join(s.dir, fmt.Sprintf("connections-%s-%d-%d-%d", protocol, n, i, time.Now().UnixNano()))
		e := c.endpoint(protocol)
		args := append([]string{
			protocol, "connections", "--url", e.url(), "--count", strconv.Itoa(part), "--hold", hold.String(),
			"--max-pending", strconv.Itoa(connectionsAtOnce), "--connect-timeout", "60s", "--silent", "--result", dir,
		}, e.login()...)
		if protocol == "rocketmq" { // its connections are for a topic
			args = append(args, "--attach", "producer", "queue://CONNECTIONS")
		}
		g.Go(func() (err error) {
			parts[i], err = s.hold(ctx, c, dir, args)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return sum, err
	}
	for i := range parts {
		p := &parts[i]
		sum.opened, sum.seconds = sum.opened+p.opened, max(sum.seconds, p.seconds)
		sum.p50, sum.p99 = max(sum.p50, p.p50), max(sum.p99, p.p99)
		sum.memory, sum.brokers = sum.memory+p.memory, sum.brokers+p.brokers
		sum.cpu, sum.brokersCPU = sum.cpu+p.cpu, sum.brokersCPU+p.brokersCPU
		sum.limit = p.limit
	}
	return sum, nil
}

// hold runs perfmq, and reads its result. The broker's memory is the growth while perfmq ran.
func (s *session) hold(ctx context.Context, c *cluster, dir string, args []string) (r resting, err error) {
	pid := c.pid
	if c.primary != nil {
		pid = c.primary.PID()
	}
	broker, err := process.NewProcessWithContext(ctx, int32(pid)) //nolint:gosec // a process has a small number
	if err != nil {
		return r, fmt.Errorf("ask the system for the broker: %w", err)
	}
	before, err := usage(ctx, broker)
	if err != nil {
		return r, err
	}
	cmd := s.command(ctx, args...)
	var most float64
	watched, stop := context.WithCancel(ctx)
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		for wait(watched, time.Second) == nil {
			if now, err := usage(ctx, broker); err == nil {
				most = max(most, now.memory-before.memory)
			}
		}
	}()
	out, err := cmd.CombinedOutput()
	stop()
	<-looking
	read, broken := result.Read(dir)
	if broken != nil {
		return r, fmt.Errorf("%w: %w\n%s", err, broken, tail(string(out)))
	}
	after, err := usage(ctx, broker)
	if err != nil {
		return r, err
	}
	r = resting{brokers: most, brokersCPU: after.cpu - before.cpu, cpu: time.Duration(read.Tester.CPU) * time.Microsecond}
	var perSecond float64 // of the row before
	var live uint64
	for i := range read.Rows {
		row := &read.Rows[i]
		if row.Live > 0 && row.Live >= live { // at rest
			live = row.Live
			r.memory = float64(row.Tester.Memory) / 1024
		}
		if row.Connections == nil || row.Connections.Opened == 0 {
			continue
		}
		n, length := float64(row.Connections.Opened), float64(row.Length)/1e6
		if r.opened += row.Connections.Opened; perSecond > 0 {
			length = min(length, n/perSecond) // the last ones opened within a second
		}
		r.seconds += length
		perSecond = n / length
	}
	if l := read.Latencies.Get("open"); l != nil && l.Percentiles != nil {
		r.p50, r.p99 = l.P50, l.P99
		if r.seconds <= 1.5 { // too short for rows: as many at once took so long each
			r.seconds = float64(l.Sum) / 1e6 / float64(min(connectionsAtOnce, r.opened))
		}
	}
	if read.Limit != nil {
		r.limit = read.Limit.Kind + ": " + read.Limit.Text
	}
	return r, nil
}

// used is what a process has used: processor time, and the memory at the moment in KiB.
type used struct {
	cpu    time.Duration
	memory float64
}

func usage(ctx context.Context, p *process.Process) (u used, err error) {
	times, err := p.TimesWithContext(ctx)
	if err != nil {
		return u, fmt.Errorf("ask the system for the broker's processor time: %w", err)
	}
	memory, err := p.MemoryInfoWithContext(ctx)
	if err != nil {
		return u, fmt.Errorf("ask the system for the broker's memory: %w", err)
	}
	return used{duration(times.User + times.System), float64(memory.RSS) / 1024}, nil
}
