package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perfmq/perfmq/pkg/driver"
)

func (pr *printer) message() {
	g := pr.group
	pr.section("Message")
	if len(g.Mix) > 1 {
		pr.mix()
	} else {
		pr.line("body", "%s", g.Mix[0].BodySource)
		if g.Mix[0].Text {
			pr.line("type", "%s", Text)
		}
	}
	pr.line("persistent", "%s", yesNo(g.Persistent))
	pr.line("time to live", "%s", orNone(duration(g.TTL)))
	if g.Delay > 0 {
		pr.line("delivery delay", "%v", g.Delay)
	}
	if len(g.Mix) == 1 {
		priority := "the protocol's default"
		if g.Mix[0].Priority >= 0 {
			priority = strconv.Itoa(g.Mix[0].Priority)
		}
		pr.line("priority", "%s", priority)
		pr.line("group", "%s", orNone(g.Mix[0].Group))
	}
	if g.CommitInterval > 0 {
		pr.line("transactions", "of %s", plural(g.CommitInterval, "message"))
	}
	if len(g.Mix) == 1 {
		for _, property := range g.Mix[0].Properties {
			pr.line("property", "%s=%s", property.Key, property.Value)
		}
	}
}

func (pr *printer) consumer() {
	g := pr.group
	pr.section("Consumer")
	subscription := "ends with the consumer"
	switch {
	case !g.hasKind(driver.Topic):
		subscription = "none: queues"
	case g.Durable && g.KeepSubscription:
		subscription = "durable, kept at the broker"
	case g.Durable:
		subscription = "durable, removed at the end"
	}
	if g.Shared > 0 {
		subscription += fmt.Sprintf(", %d shared", g.Shared)
	}
	pr.line("subscription", "%s", subscription)
	credit := "the protocol's default"
	if g.Credit > 0 {
		credit = strconv.Itoa(g.Credit)
	}
	pr.line("credit", "%s", credit)
	if !g.ConsumerWork.IsZero() {
		pr.line("work per message", "%s", g.ConsumerWork.String())
	}
	if !g.ConsumerRate.IsZero() {
		pr.line("rate of consumers", "at most %g msg/s in all", g.ConsumerRate.PerSecond())
	}
	if !g.ConsumerFail.IsZero() {
		pr.line("fail on purpose", "%s of the deliveries: %s", g.ConsumerFail, g.Failing)
	}
	pr.line("largest message", "%d bytes are accepted", g.ConsumerBroker.LargestBody())
	pr.line("selector", "%s", orNone(g.Selector))
	if g.TransactionSize > 0 {
		pr.line("transactions", "of %s", plural(g.TransactionSize, "message"))
	}
}

func (pr *printer) verification() {
	p := pr.plan
	pr.section("Verification")
	if p.FailOnForeign {
		pr.line("foreign", "a failure")
	}
	if !p.Verify {
		return
	}
	pr.line("file", "%s", orNone(p.VerifyFile))
	if !p.Roles().Consumes() {
		return
	}
	for _, l := range []struct {
		what    string
		allowed bool
	}{
		{"lost", p.Allow.Lost},
		{"duplicated", p.Allow.Duplicates},
		{"damaged", p.Allow.Damaged},
		{"out of order", p.Allow.Disorder},
	} {
		verdict := "a failure"
		if l.allowed {
			verdict = "reported, no failure"
		}
		pr.line(l.what, "%s", verdict)
	}
}

func (pr *printer) options() {
	var printed []*Broker
	for _, g := range pr.plan.Groups() {
		for _, e := range g.Sides() {
			// The same protocol gets the same options on both sides.
			if slices.ContainsFunc(printed, func(o *Broker) bool {
				return o.Name == e.Name && o.Protocol == e.Protocol
			}) {
				continue
			}
			printed = append(printed, e)
			options := driver.Describe(e.Options)
			if len(options) == 0 {
				continue
			}
			title := e.Protocol + " options"
			if e.Name != "" {
				title += " of broker " + pr.clean(e.Name)
			}
			pr.section(title)
			for _, o := range options {
				pr.line(o.Name, "%s", orNone(o.Default))
			}
		}
	}
}

// marks prints the marks of a step, if it has some.
func (pr *printer) marks(s *Step) {
	if len(s.Marks) > 0 {
		pr.line("marks", "%s", strings.Trim(fmt.Sprint(s.Marks), "[]"))
	}
}
