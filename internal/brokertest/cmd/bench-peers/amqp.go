//go:build unix

package main

import (
	"bytes"
	"context"
	_ "embed" // for arrow.c
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/brokertest"
	"github.com/perfmq/perfmq/internal/brokertest/peerbench"
)

//go:embed proton/arrow.c
var arrowSource []byte

// Requirements on the native data path, as ratios of perfmq to the peer.
const (
	arrowRate  = 0.95 // msg/s end to end, to the arrow's
	arrowCPU   = 1.3  // processor time per message, to the arrow's
	singleRate = 1.5  // msg/s with one message in flight, to go-amqp's
	singleCPU  = 0.5  // processor time per message with one in flight, to go-amqp's
)

// window is the credit of the receivers and the number of messages in flight.
const window = 1000

// arrow is our build of a sender and receiver on Qpid Proton's C library.
type arrow struct {
	binary string
	broker *brokertest.Artemis
	runs   int
}

// buildArrow compiles arrow.c. It needs a C compiler and Qpid Proton's development package.
func buildArrow(ctx context.Context, dir string, broker *brokertest.Artemis) (*arrow, error) {
	source, binary := filepath.Join(dir, "arrow.c"), filepath.Join(dir, "arrow")
	if err := os.WriteFile(source, arrowSource, 0o600); err != nil {
		return nil, err
	}
	flags, err := exec.CommandContext(ctx, "pkg-config", "--cflags", "--libs", "libqpid-proton").Output()
	if err != nil {
		return nil, fmt.Errorf("find Qpid Proton's C library (Debian: apt-get install gcc pkg-config "+
			"libqpid-proton11-dev): %w", err)
	}
	args := append([]string{"-O2", "-o", binary, source}, strings.Fields(string(flags))...)
	compile := exec.CommandContext(ctx, "cc", args...) //nolint:gosec // pkg-config's flags
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile arrow.c: %w\n%s", err, out)
	}
	return &arrow{binary: binary, broker: broker}, nil
}

// once sends and receives count messages of 1024 bytes over a queue of its own, by a process each.
func (a *arrow) once(ctx context.Context, count int, s peerbench.Setting) (o peerbench.Outcome, err error) {
	u, err := url.Parse(a.broker.AMQPURL())
	if err != nil {
		return o, err
	}
	a.runs++
	queue := fmt.Sprintf("ARROW.%d", a.runs)
	// by itself, Artemis would make a topic of it
	if err := a.broker.CreateQueue(ctx, queue, queue, "ANYCAST"); err != nil {
		return o, err
	}
	defer a.broker.DeleteQueue(ctx, queue) //nolint:errcheck // it is harmless
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	durable := "0"
	if s.Persistent {
		durable = "1"
	}
	var said bytes.Buffer
	command := func(role string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, a.binary, role, u.Hostname(), u.Port(), queue, //nolint:gosec // ours
			strconv.Itoa(count), "1024", strconv.Itoa(s.Pending), durable)
		cmd.Stderr = os.Stderr
		return cmd
	}
	receiver, sender := command("receive"), command("send")
	receiver.Stdout = &said
	if err := receiver.Start(); err != nil {
		return o, err
	}
	sent := sender.Run()
	if sent != nil {
		cancel()
	}
	if err := receiver.Wait(); err != nil || sent != nil {
		return o, fmt.Errorf("the arrow: sender: %w, receiver: %w", sent, err)
	}
	var n, first, last, latency float64
	if _, err := fmt.Sscan(said.String(), &n, &first, &last, &latency); err != nil {
		return o, fmt.Errorf("read the output of the arrow, %q: %w", said.String(), err)
	}
	o.Usage = peerbench.UsageOf(receiver.ProcessState)
	other := peerbench.UsageOf(sender.ProcessState)
	o.CPU += other.CPU
	o.Memory += other.Memory
	o.Received, o.Messages = n/(last-first)*1e6, n
	return o, nil
}

// amqp compares perfmq's own data path with the arrow, and then with go-amqp, on an Artemis each: the JVM compiles the
// broker for the clients that it has had. After one run of go-amqp all others were a sixth slower.
func (b *bench) amqp(ctx context.Context) error {
	fmt.Printf("\n== Artemis over AMQP: 1 producer, 1 consumer, 1 queue, a connection each. The arrow is a program of " +
		"ours on Qpid Proton's\n" +
		"   C library, made like quiver's: a process a side, rate from the first message received to the last\n")
	full := []peerbench.Setting{{Pending: window}, {Pending: window, Persistent: true}}
	clients := []string{perfmqName, arrowName}
	if b.before != "" {
		clients = append(clients, beforeName)
	}
	if err := b.onArtemis(ctx, full, clients...); err != nil {
		return err
	}
	return b.onArtemis(ctx, full, perfmqName, libraryName)
}

// bare compares perfmq with go-amqp and with a client that does nothing but exchange the same frames.
func (b *bench) bare(ctx context.Context) error {
	fmt.Printf("\n== Artemis over AMQP, one message in flight, and at fixed rates: as above\n")
	settings := []peerbench.Setting{{Pending: 1}, {Pending: 100, Rate: 2000}, {Pending: 100, Rate: 10_000}}
	return b.onArtemis(ctx, settings, perfmqName, libraryName, bareName)
}

// Names of the clients that are compared.
const (
	perfmqName  = "perfmq"
	beforeName  = "before"
	libraryName = "go-amqp"
	arrowName   = "arrow"
	bareName    = "bare"
)

// onArtemis compares clients on an Artemis of their own.
func (b *bench) onArtemis(ctx context.Context, settings []peerbench.Setting, clients ...string) error {
	broker, err := brokertest.LaunchArtemis(ctx, brokertest.WithHeap("1G"))
	if err != nil {
		return err
	}
	defer broker.Close() //nolint:errcheck // it is ending anyway
	var peer *arrow
	if slices.Contains(clients, arrowName) {
		if peer, err = buildArrow(ctx, b.dir, broker); err != nil {
			return err
		}
	}
	on := &peerbench.OnArtemis{Broker: broker, Dir: b.dir, Duration: b.duration, Warmup: b.warmup, Notes: os.Stdout}
	perfmq := func(s peerbench.Setting, binary, client string) (peerbench.Outcome, error) {
		return on.Once(ctx, s, func(ctx context.Context, args []string) *exec.Cmd {
			return peerbench.Perfmq(ctx, binary, append([]string{
				"amqp", "client", "--client", client, "--url", broker.AMQPURL(), "--credit", strconv.Itoa(window),
			}, args...)...)
		})
	}
	var last float64 // perfmq's rate
	runs := map[string]func(peerbench.Setting) (peerbench.Outcome, error){
		perfmqName:  func(s peerbench.Setting) (peerbench.Outcome, error) { return perfmq(s, b.perfmq, "native") },
		beforeName:  func(s peerbench.Setting) (peerbench.Outcome, error) { return perfmq(s, b.before, "native") },
		libraryName: func(s peerbench.Setting) (peerbench.Outcome, error) { return perfmq(s, b.perfmq, "library") },
		arrowName: func(s peerbench.Setting) (peerbench.Outcome, error) {
			return peer.once(ctx, max(100_000, int(last)*b.duration), s)
		},
		bareName: func(s peerbench.Setting) (peerbench.Outcome, error) {
			b.bareRuns++
			return b.bareOnce(ctx, broker, s, b.bareRuns)
		},
	}
	for _, s := range settings {
		t := peerbench.Table[peerbench.Outcome]{W: os.Stdout}
		for _, name := range clients {
			t.Columns = append(t.Columns, peerbench.Column[peerbench.Outcome]{Name: name})
		}
		for range b.repeat {
			for i, name := range clients {
				o, err := runs[name](s)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", s, name, err)
				}
				if name == perfmqName {
					last = o.Received
				}
				t.Columns[i].Runs = append(t.Columns[i].Runs, o)
			}
		}
		judgeAMQP(&t, s, clients)
	}
	return nil
}

// response is the median from when a message was due to its confirmation.
func response(o peerbench.Outcome) float64 {
	if o.Response.Count > 0 {
		return o.Response.P50
	}
	return o.Send.P50
}

// judgeAMQP prints the medians and whether the requirements are met.
func judgeAMQP(t *peerbench.Table[peerbench.Outcome], s peerbench.Setting, clients []string) {
	received := func(o peerbench.Outcome) float64 { return o.Received }
	t.Head(s.String())
	t.Row("received msg/s", received)
	t.Row("cpu us/message", peerbench.Outcome.CPUPerMessage)
	t.Row("peak memory MiB", peerbench.Outcome.MiB)
	if s.Rate > 0 {
		t.Row("response p50 us", response)
	}
	runs := func(client string) []peerbench.Outcome { return t.Columns[slices.Index(clients, client)].Runs }
	ratio := func(client string, value func(peerbench.Outcome) float64) float64 {
		return peerbench.Median(runs(perfmqName), value) / peerbench.Median(runs(client), value)
	}
	cpu := peerbench.Outcome.CPUPerMessage
	switch {
	case slices.Contains(clients, arrowName):
		fmt.Printf("  perfmq / arrow: rate %s, cpu %s\n", verdict(ratio(arrowName, received), arrowRate, true),
			verdict(ratio(arrowName, cpu), arrowCPU, false))
	case s.Rate > 0:
		above := peerbench.Median(runs(perfmqName), response) - peerbench.Median(runs(bareName), response)
		fmt.Printf("  perfmq / bare: cpu %s; median response %.0f us above (aim at most %g)\n",
			verdict(ratio(bareName, cpu), bareCPU, false), above, bareLatency)
	case s.Pending == 1:
		fmt.Printf("  perfmq / go-amqp: rate %s, cpu %s\n", verdict(ratio(libraryName, received), singleRate, true),
			verdict(ratio(libraryName, cpu), singleCPU, false))
		// The bare client only exchanges the frames: its round trip is the broker's.
		fmt.Printf("  perfmq / bare: rate %.2f, cpu %.2f\n", ratio(bareName, received), ratio(bareName, cpu))
	}
}
