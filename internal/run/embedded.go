package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/engine"
	"github.com/perfmq/perfmq/internal/listen"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// AboutEmbedded limits the trust in the figures of an embedded broker.
const AboutEmbedded = "the broker is inside this process: its limits are those of this tool, not of a product"

// startEmbedded starts a broker for each site of the plan, and puts its addresses into the plan.
func startEmbedded(p *plan.Plan, endpoints map[*plan.Broker]*engine.Endpoint) (started []*broker.Broker, err error) {
	f, _ := broker.ParseFaults(p.Faults) // they were judged
	sites := map[string]*broker.Broker{}
	for _, b := range p.Brokers() {
		e := endpoints[b]
		if sites[e.Site] == nil {
			b, err := startSite(p, e.Site, f)
			if err != nil {
				return started, err
			}
			sites[e.Site] = b
			started = append(started, b)
		}
		e.URL, e.Hosts = e.Factory.Schemes[0]+"://"+sites[e.Site].Addr(e.Protocol), nil
		if e.Protocol != broker.RocketMQ { // whose topics are logs, of which the store knows nothing
			e.Inspector = sites[e.Site]
		}
	}
	return started, nil
}

// startSite starts a broker for the groups of a plan at one site.
func startSite(p *plan.Plan, site string, f store.Faults) (*broker.Broker, error) {
	cfg := broker.Config{Listen: map[string]string{}, Faults: f}
	if drains(p) && f.Delay == 0 {
		cfg.Limits.LimitBytes = backlog(p)
	} else if messages, bytes := stored(p); messages > 0 {
		cfg.Limits.Limit = max(embeddedMessages, messages)
		cfg.Limits.LimitBytes = max(embeddedBytes, bytes)
		cfg.Limits.Memory = 2 * cfg.Limits.LimitBytes
	}
	for _, b := range p.Brokers() {
		if b.Site == site {
			cfg.Listen[b.Protocol] = "127.0.0.1:0"
		}
	}
	b, err := broker.Start(cfg)
	if err != nil {
		return nil, driver.Errorf(driver.ClassConnect, "start the embedded broker", "", "%w", err)
	}
	return b, nil
}

// backlog returns the maximum size of a queue of the embedded broker in bytes of messages. Messages that a transaction
// has taken stay in the queue until its commit, so that there is room for some.
func backlog(p *plan.Plan) int64 {
	const overhead = 1 << 10
	var destinations, room int64
	for _, g := range p.Groups() {
		destinations += int64(len(g.Destinations))
		transaction := max(1, g.TransactionSize*g.Consumers, g.CommitInterval*g.Producers)
		room = max(room, 4*int64(transaction)*int64(g.LargestBody()+overhead))
	}
	return max(embeddedBacklog/max(1, destinations), 1<<20, room)
}

// embeddedBacklog is the size of all queues of the broker of a run, in bytes of messages, above which it blocks the
// producers. A broker in the same process confirms faster than the consumers receive, and the messages that it holds
// take this tool's own memory.
const embeddedBacklog = 16 << 20

// The bounds of a queue of the embedded broker where nothing else is known.
const (
	embeddedMessages = 1_000_000
	embeddedBytes    = 256 << 20
)

// stored returns the number of messages and bytes that the steps of a plan send, as far as they are bounded: so much
// may wait at the broker for later steps.
func stored(p *plan.Plan) (messages, bytes int64) {
	const overhead = 512 // of a message in the store
	for _, s := range p.Steps {
		for _, g := range s.Groups {
			if !g.Role.Produces() {
				continue
			}
			n := g.Count
			if due := g.Rate.Due(s.Duration); n == 0 || due > 0 && due < n {
				n = due
				if g.Rate.Random() { // hardly ever more
					n += 8*uint64(math.Sqrt(float64(due))) + 64
				}
			}
			messages += int64(n)
			bytes += g.Bytes(int64(n)) + int64(n)*overhead
		}
	}
	return messages, bytes
}

// drains reports whether consumers receive all messages as they are sent, so that only a backlog waits for room, and no
// message that the broker delays or filters.
func drains(p *plan.Plan) bool {
	for _, s := range p.Steps {
		produces, consumes := false, false
		for _, g := range s.Groups {
			if g.Selector != "" || g.Delay > 0 {
				return false
			}
			produces, consumes = produces || g.Role.Produces(), consumes || g.Role.Consumes()
		}
		if produces && !consumes {
			return false
		}
	}
	return p.Roles() == plan.Client
}

// listening returns the URLs of a broker.
func listening(b *broker.Broker) (urls []string) {
	for _, protocol := range broker.Protocols() {
		if addr := b.Addr(protocol); addr != "" {
			urls = append(urls, protocol+"://"+addr)
		}
	}
	return urls
}

// describeFaults describes the effects of faults, for comparison with the findings of the run, or the requested faults
// if they had no effect.
func describeFaults(asked store.Faults, c store.FaultCounts) string {
	var effects []string
	for _, n := range []struct {
		n    uint64
		what string
	}{
		{c.Lost, "lost"},
		{c.Damaged, "damaged"},
		{c.Duplicated, "duplicated"},
		{c.Reordered, "reordered"},
		{c.Withheld, "stored but not confirmed"},
		{c.Delayed, "delayed"},
		{c.Served, "served at a rate"},
		{c.Worked, "worked on"},
		{c.Dropped, "connections broken"},
		{c.Refused, "connections refused"},
		{c.Stalls, "stalls"},
	} {
		if n.n > 0 {
			effects = append(effects, fmt.Sprintf("%s %d", n.what, n.n))
		}
	}
	text := "faults of the broker: " + cmp.Or(strings.Join(effects, ", "), broker.FormatFaults(asked))
	if len(effects) == 0 && !asked.Full { // which is not counted
		text += "; no message met them"
	}
	return text
}

// brokerHeadroom is ballast, in bytes: with empty queues the live heap of a broker process is so small that the
// collector would run all the time, at a sixth of the processor time per message. Nothing touches its pages, so it
// takes no resident memory.
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
	_, _ = io.WriteString(stdout, counts(b.StatsOf(0)))
	return nil
}

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
	text.WriteString("This broker, all in memory, shows the limits of the tool, not of a product. Ctrl-C ends it.\n")
	return text.String()
}

// counts returns a line of the counts of all destinations, and one of the faults that had an effect.
func counts(s broker.Stats) string {
	t := &s.Total
	text := fmt.Sprintf("sent %d, stored %d, settled %d, left %d, refused %d\n",
		t.Sent, t.Stored, t.Settled, t.Depth, t.Refused)
	if s.Done != (store.FaultCounts{}) {
		text += describeFaults(store.Faults{}, s.Done) + "\n"
	}
	return text
}
