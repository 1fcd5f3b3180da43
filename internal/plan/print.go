package plan

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxListed is how many destinations are printed one by one.
const maxListed = 20

// Print writes the plan as aligned text, for --dry-run. The plan should be valid. Its texts, which are the user's, are
// written as clean returns them.
func Print(w io.Writer, p *Plan, clean func(string) string) error {
	_, err := io.WriteString(w, describe(p, clean).text.String())
	return err
}

func describe(p *Plan, clean func(string) string) *printer {
	pr := &printer{plan: p, clean: clean}
	if len(p.Steps) == 1 && len(p.Steps[0].Groups) == 1 {
		pr.step = &p.Steps[0]
		pr.alone(pr.step.Groups[0])
	} else {
		pr.scenario()
	}
	if p.Verify || p.FailOnForeign {
		pr.verification()
	}
	if len(p.Thresholds) > 0 {
		pr.section("Thresholds")
		for _, t := range p.Thresholds {
			pr.item("%s", t.String())
		}
	}
	if len(p.Labels) > 0 {
		pr.section("Labels")
		for _, name := range slices.Sorted(maps.Keys(p.Labels)) {
			pr.line(pr.clean(name), "%s", p.Labels[name])
		}
	}
	pr.options()
	if notes := p.Notes(); len(notes) > 0 {
		pr.section("Notes")
		for _, note := range notes {
			pr.item("%s", note)
		}
	}
	return pr
}

// alone prints the only group of the only step.
func (pr *printer) alone(g *Group) {
	pr.group = g
	pr.brokers()
	pr.destinations()
	pr.workers()
	pr.load()
	if g.Role.Produces() {
		pr.message()
	}
	if g.Role.Consumes() {
		pr.consumer()
	}
}

// scenario prints the groups, each as its first step has it, and the steps with their loads.
func (pr *printer) scenario() {
	p := pr.plan
	pr.section("Run")
	pr.line("threads", "%s", pr.threads())
	pr.line("drain timeout", "%v", p.DrainTimeout)
	pr.stalls()
	pr.waitForBroker()
	for _, g := range p.Groups() {
		pr.group = g
		pr.prefix = "Group " + pr.clean(g.Name) + ": "
		pr.brokers()
		pr.destinations()
		pr.workers()
		if g.Role.Produces() {
			pr.message()
		}
		if g.Role.Consumes() {
			pr.consumer()
		}
	}
	pr.prefix = ""
	for i := range p.Steps {
		s := &p.Steps[i]
		pr.step = s
		pr.section("Step " + pr.clean(s.Name))
		for _, command := range s.Before {
			pr.line("before", "%s", command)
		}
		for _, g := range s.Groups {
			pr.group = g
			pr.line(pr.clean(g.Name), "%s", pr.loadOf(g))
		}
		pr.line("ends", "%s", pr.end())
		pr.line("warm-up", "%s", orNone(duration(s.Warmup)))
		pr.marks(s)
		for _, t := range s.Thresholds {
			pr.line("threshold", "%s", t.String())
		}
		for _, command := range s.After {
			pr.line("after", "%s", command)
		}
	}
}

// loadOf describes the load of a group in a step.
func (pr *printer) loadOf(g *Group) string {
	var parts []string
	if g.Role.Produces() {
		pending := fmt.Sprintf("max pending %d", g.Pending())
		if g.MaxPending == 0 {
			pending = "max pending unbounded"
		}
		parts = append(parts, pr.schedule(), pending)
	}
	if !g.ConsumerWork.IsZero() {
		parts = append(parts, "work per message "+g.ConsumerWork.String())
	}
	if !g.ConsumerRate.IsZero() {
		parts = append(parts, fmt.Sprintf("at most %g msg/s in all", g.ConsumerRate.PerSecond()))
	}
	if !g.ConsumerFail.IsZero() {
		parts = append(parts, fmt.Sprintf("fails %s of the deliveries: %s", g.ConsumerFail, g.Failing))
	}
	if g.Count > 0 {
		parts = append(parts, "message count "+strconv.FormatUint(g.Count, 10))
	}
	if len(parts) == 0 {
		return "receives as fast as possible"
	}
	return strings.Join(parts, ", ")
}

// Groups returns the groups of all steps, each as the first step that names it has it.
func (p *Plan) Groups() (list []*Group) {
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			if !slices.ContainsFunc(list, func(o *Group) bool { return o.Name == g.Name }) {
				list = append(list, g)
			}
		}
	}
	return list
}

type printer struct {
	plan   *Plan
	step   *Step
	group  *Group
	prefix string // of the titles of sections
	clean  func(string) string
	text   strings.Builder
}

func (pr *printer) section(title string) {
	title = pr.prefix + title
	if pr.text.Len() > 0 {
		pr.text.WriteByte('\n')
	}
	pr.text.WriteString(title + "\n")
}

func (pr *printer) line(name, format string, args ...any) {
	value := pr.value(format, args)
	fmt.Fprintf(&pr.text, "  %-20s %s\n", name, value)
}

// item is a line without a name.
func (pr *printer) item(format string, args ...any) {
	value := pr.value(format, args)
	pr.text.WriteString("  " + value + "\n")
}

func (pr *printer) value(format string, args []any) string {
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = pr.clean(text)
		}
	}
	return fmt.Sprintf(format, args...)
}

func (pr *printer) destinations() {
	list := pr.group.Destinations
	pr.section(fmt.Sprintf("Destinations (%d)", len(list)))
	for i, d := range list {
		if i == maxListed && len(list) > maxListed+1 {
			pr.item("... and %d more, the last is %s", len(list)-maxListed, list[len(list)-1].String())
			return
		}
		pr.item("%s", d.String())
	}
}

func (pr *printer) workers() {
	g := pr.group
	pr.section("Workers")
	if specs := g.ProducerSpecs(""); len(specs) > 0 {
		connections := map[string]bool{}
		for i := range specs {
			connections[specs[i].Connection.Key] = true
		}
		pr.line("producers", "%d (%d per destination) on %s", len(specs), g.Producers, plural(len(connections), "connection"))
	}
	if specs := g.ConsumerSpecs(""); len(specs) > 0 {
		connections := map[string]bool{}
		for i := range specs {
			connections[specs[i].Connection.Key] = true
		}
		per := fmt.Sprintf("%d per destination", g.Consumers)
		if g.Shared > 0 {
			per = fmt.Sprintf("%d for each of %d shared subscriptions per destination", g.Consumers, g.Shared)
		}
		pr.line("consumers", "%d (%s) on %s", len(specs), per, plural(len(connections), "connection"))
	}
	if g.Name == "" {
		pr.line("threads", "%s", pr.threads())
	}
}

func (pr *printer) threads() string {
	if pr.plan.Threads > 0 {
		return strconv.Itoa(pr.plan.Threads)
	}
	return "one per processor"
}

func (pr *printer) load() {
	g := pr.group
	pr.section("Load")
	if g.Role.Produces() {
		pr.line("rate", "%s", pr.schedule())
		pending := fmt.Sprintf("%d per producer", g.Pending())
		if g.MaxPending == 0 {
			pending = fmt.Sprintf("unbounded (%d per producer)", UnlimitedPending)
		}
		pr.line("max pending", "%s", pending)
		if g.SendTimeout > 0 {
			pr.line("send timeout", "%v", g.SendTimeout)
		}
		if g.Resend {
			pr.line("in doubt", "messages without an answer are sent again")
		}
	}
	pr.line("ends", "%s", pr.end())
	pr.line("warm-up", "%s", orNone(duration(pr.step.Warmup)))
	pr.marks(pr.step)
	pr.line("drain timeout", "%v", pr.plan.DrainTimeout)
	pr.stalls()
	pr.waitForBroker()
}

func (pr *printer) waitForBroker() {
	if p := pr.plan; !p.Shard.IsZero() {
		pr.line("shard", "%s of run %d", p.Shard, p.RunID)
	}
	if at := pr.plan.StartAt; !at.IsZero() {
		pr.line("starts", "%s", at.UTC().Format(time.RFC3339Nano))
	}
	if wait := pr.plan.WaitForBroker; wait > 0 {
		pr.line("wait for broker", "%v", wait)
	}
}

// schedule says when messages are sent.
func (pr *printer) schedule() string {
	g := pr.group
	if g.Rate.Relative != nil {
		return g.Rate.String()
	}
	if g.Rate.IsZero() {
		return "as fast as max pending allows"
	}
	rate, constant := g.Rate.Constant()
	if !constant {
		return g.Rate.String() + " (msg/sec in all)"
	}
	producers := g.Producers * len(g.Destinations)
	text := fmt.Sprintf("%s msg/sec in all, one message every %v", number(rate.PerSecond()), rate.At(1))
	if producers > 1 {
		text += fmt.Sprintf("; each of %d producers every %v in turn", producers, g.Rate.At(uint64(producers)))
	}
	return text
}

func (pr *printer) end() string {
	var ends []string
	if d := pr.step.Duration; d > 0 {
		ends = append(ends, fmt.Sprintf("after %v (warm-up included)", d))
	}
	if d := pr.step.Idle; d > 0 {
		ends = append(ends, fmt.Sprintf("when nothing was received for %v", d))
	}
	for _, g := range pr.step.Groups {
		if g.Count == 0 || pr.step.Idle > 0 && g.Role.Produces() {
			continue
		}
		verb := "sent"
		if !g.Role.Produces() {
			verb = "received"
		}
		if g.Name != "" {
			verb += " by " + pr.clean(g.Name)
		}
		ends = append(ends, fmt.Sprintf("after %d messages %s", g.Count, verb))
	}
	if pr.step.Drained {
		if len(ends) == 0 {
			return "when drained"
		}
		return strings.Join(ends, " or ") + ", and then when drained"
	}
	if len(ends) == 0 {
		return "when interrupted (Ctrl-C)"
	}
	return strings.Join(ends, " or ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// stalls prints the shortest stall, unless it is the usual one.
func (pr *printer) stalls() {
	switch limit := pr.plan.StallThreshold; limit {
	case DefaultStall:
	case 0:
		pr.line("stalls", "are not looked for")
	default:
		pr.line("stalls", "from %v on", limit)
	}
}
