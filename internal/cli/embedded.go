package cli

import (
	"fmt"
	"slices"

	"github.com/perfmq/perfmq/internal/broker"
	"github.com/perfmq/perfmq/internal/broker/store"
	"github.com/perfmq/perfmq/internal/plan"
	"github.com/perfmq/perfmq/pkg/driver"
)

// embeddedHost stands for the broker in this process in URLs until its port is known.
const embeddedHost = "embedded"

const aboutEmbedded = "the broker is inside this process: the figures are the limits of this tool on this machine, not those of a product"

// canEmbed tells whether the broker in the binary speaks the protocol.
func canEmbed(f *driver.Factory) bool { return slices.Contains(broker.Protocols(), f.Name) }

func embeddedFlags(f *driver.Factory) []definition {
	if !canEmbed(f) {
		return nil
	}
	return []definition{
		{
			name: "embedded", group: groupBroker, help: "run a broker inside this process and use it: no service is needed, the figures are this tool's own limits",
			set: onOff(func(s *settings) *bool { return &s.embedded }),
		},
		{
			name: "embedded-faults", group: groupBroker, arg: "LIST", help: "with --embedded: what it does wrong, such as lose=1000,delay=5ms; perfmq broker --help has them all",
			set: setFaults,
		},
	}
}

func setFaults(s *settings, t string) (err error) {
	s.faults, err = broker.ParseFaults(t)
	return err
}

// embed gives the sides of a plan the broker in this process, if that was asked for.
func (r *resolver) embed(p *plan.Plan) {
	if !r.embedded {
		if r.faults != (store.Faults{}) {
			r.refuse("add --embedded", "--embedded-faults needs --embedded")
		}
		return
	}
	for _, flag := range []string{"url", "consumer-url"} {
		if r.has(flag) {
			r.refuse("leave one of them out", "--embedded and --%s are both given", flag)
		}
	}
	for _, e := range sides(p) {
		if !canEmbed(&e.Factory) {
			r.refuse("", "the embedded broker does not speak %s", e.Factory.Name)
			continue
		}
		e.Open.URL = e.Factory.Schemes[0] + "://" + embeddedHost
	}
}

// sides returns the brokers of both sides of a plan that it has, also if they are the same.
func sides(p *plan.Plan) (list []*plan.Endpoint) {
	if p.Role.Produces() {
		list = append(list, &p.Producer)
	}
	if p.Role.Consumes() {
		list = append(list, &p.Consumer)
	}
	return list
}

// startEmbedded starts a broker for the plan and puts its addresses into it.
func startEmbedded(p *plan.Plan, f store.Faults) (*broker.Broker, error) {
	cfg := broker.Config{Listen: map[string]string{}, Faults: f}
	if drains(p) {
		cfg.Limits.LimitBytes = backlog(p)
	}
	for _, e := range sides(p) {
		cfg.Listen[e.Factory.Name] = "127.0.0.1:0"
	}
	b, err := broker.Start(cfg)
	if err != nil {
		return nil, driver.Errorf(driver.ClassConnect, "start the embedded broker", "", "%w", err)
	}
	for _, e := range sides(p) {
		e.Open.URL = e.Factory.Schemes[0] + "://" + b.Addr(e.Factory.Name)
	}
	return b, nil
}

// backlog returns how many bytes of messages a queue of the embedded broker holds at most. What a transaction has taken stays in the
// queue until its commit, so that there is room for some.
func backlog(p *plan.Plan) int64 {
	const overhead = 1 << 10
	transaction := max(1, p.TransactionSize*p.Consumers, p.CommitInterval*p.Producers)
	return max(embeddedBacklog/int64(len(p.Destinations)), 1<<20, 4*int64(transaction)*int64(len(p.Body)+overhead))
}

// embeddedBacklog is how many bytes of messages the broker of a run holds, in all queues, before it holds the producers back. A
// broker in the same process confirms faster than the consumers receive, and what it holds is this tool's own memory.
const embeddedBacklog = 16 << 20

// drains tells whether the run's own consumers take all that its producers send, so that nothing but a backlog waits for room.
func drains(p *plan.Plan) bool { return p.Role == plan.Client && p.Selector == "" }

// listening returns the URLs of a broker.
func listening(b *broker.Broker) (urls []string) {
	for _, protocol := range broker.Protocols() {
		if addr := b.Addr(protocol); addr != "" {
			urls = append(urls, protocol+"://"+addr)
		}
	}
	return urls
}

// describeFaults says what faults have done, so that it can be held against what the run has found, or what was told if
// they came to nothing.
func describeFaults(told store.Faults, c store.FaultCounts) string {
	text := "the broker was told to misbehave, and did:"
	none := true
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
		{c.Full, "found no room"},
		{c.Dropped, "connections broken"},
		{c.Refused, "connections refused"},
		{c.Stalls, "stalls"},
	} {
		if n.n > 0 {
			text += fmt.Sprintf(" %s %d,", n.what, n.n)
			none = false
		}
	}
	if none {
		return "the broker was told to misbehave (" + broker.FormatFaults(told) + "), but it came to nothing"
	}
	return text[:len(text)-1]
}
