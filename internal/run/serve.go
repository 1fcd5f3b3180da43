package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/safetext"
)

// brokerHeadroom is ballast, in bytes: it delays garbage collections of a broker process. With empty queues the live
// heap is so small that the collector would run all the time, at a sixth of the processor time per message
// (with a light AMQP client). The share of a load (run.Run) would let full queues take five times their size; the
// ballast costs 128 MiB at most, whatever the queues hold. Nothing touches its pages, so it takes no resident memory.
const brokerHeadroom = 64 << 20

// Serve serves a broker, and its control at an address unless that is empty, until a signal arrives. It writes the
// addresses, and at the end the counts. ownLimit keeps the limit of memory that the environment sets.
func Serve(cfg broker.Config, control string, ownLimit bool, signals <-chan os.Signal, stdout io.Writer) error {
	defer runtime.KeepAlive(make([]byte, brokerHeadroom))
	if !ownLimit {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(cfg.Limits.Memory*3/2 + 2*brokerHeadroom))
	}
	b, err := broker.Start(cfg)
	if err != nil {
		return err
	}
	defer b.Close()
	var controlAddress string
	if control != "" {
		l, err := listen.TCP(context.Background(), "control", "--control", control)
		if err != nil {
			return err
		}
		controlAddress = l.Addr().String()
		server := listen.Serve(l, b.Control(listen.HostNames(control)))
		defer func() { _ = server.Close() }() // clients with open requests see the connection end
	}
	_, _ = io.WriteString(stdout, addresses(b, controlAddress)) // the broker serves without a terminal, too
	<-signals                                                   // the normal end of a broker
	_, _ = io.WriteString(stdout, counts(b.StatsOf(maxDestinations)))
	return nil
}

// maxDestinations is the maximum number of destinations with printed counts.
const maxDestinations = 100

// addresses says where the broker serves, and with which faults it begins.
func addresses(b *broker.Broker, control string) string {
	var text strings.Builder
	for _, protocol := range broker.Protocols() {
		if addr := b.Addr(protocol); addr != "" {
			fmt.Fprintf(&text, "%-9s %s://%s\n", protocol, protocol, addr)
		}
	}
	if control != "" {
		fmt.Fprintf(&text, "%-9s http://%s/stats\n", "control", control)
	}
	if f := b.Store().Faults(); f != (store.Faults{}) {
		fmt.Fprintf(&text, "%-9s %s\n", "faults", broker.FormatFaults(f))
	}
	text.WriteString("This broker keeps everything in memory and shows the limits of the tool, not those of a product. " +
		"Ctrl-C ends it.\n")
	return text.String()
}

// counts returns a line for each destination.
func counts(s broker.Stats) string {
	var text strings.Builder
	for _, d := range s.Destinations {
		text.WriteString(describeDestination(&d))
	}
	if s.More > 0 {
		t := &s.Total
		fmt.Fprintf(&text, "and %d more; all together: sent %d, stored %d, settled %d, left %d, refused %d\n",
			s.More, t.Sent, t.Stored, t.Settled, t.Depth, t.Refused)
	}
	if s.RocketMQ != nil && s.RocketMQ.Delivered > 0 {
		fmt.Fprintf(&text, "rocketmq: delivered %d\n", s.RocketMQ.Delivered)
	}
	if s.Done != (store.FaultCounts{}) {
		text.WriteString(describeFaults(store.Faults{}, s.Done) + "\n")
	}
	return text.String()
}

// describeDestination returns a line of counts. The number of stored messages is omitted for a destination without a
// queue: a topic of RocketMQ keeps its messages in a log, and an ended subscription removes its counts.
func describeDestination(d *store.DestinationStats) string {
	text := fmt.Sprintf("%s: sent %d", safetext.Line(d.Address), d.Sent)
	if len(d.Queues) > 0 {
		var stored, settled uint64
		var depth int64
		for _, q := range d.Queues {
			stored, settled, depth = stored+q.Stored, settled+q.Settled, depth+q.Depth
		}
		text += fmt.Sprintf(", stored %d, settled %d, left %d", stored, settled, depth)
	}
	if d.Refused > 0 {
		text += fmt.Sprintf(", refused %d", d.Refused)
	}
	return text + "\n"
}
