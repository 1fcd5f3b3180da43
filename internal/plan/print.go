package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// maxListed is how many destinations are printed one by one.
const maxListed = 20

// Print writes the plan as aligned text: what --dry-run shows. The plan should be valid. Its texts, which are the user's, are
// written as clean returns them.
func Print(w io.Writer, p *Plan, clean func(string) string) error {
	_, err := io.WriteString(w, describe(p, clean).text.String())
	return err
}

// JSON returns the same as data, without the names of output files: an array of sections, each with its lines. It is what a
// result holds of its plan, so that runs that did the same have the same.
func JSON(p *Plan, clean func(string) string) (json.RawMessage, error) {
	c := *p
	c.VerifyFile = ""
	return json.Marshal(describe(&c, clean).sections)
}

func describe(p *Plan, clean func(string) string) *printer {
	pr := &printer{plan: p, clean: clean}
	pr.brokers()
	pr.destinations()
	pr.workers()
	pr.load()
	if p.Role.Produces() {
		pr.message()
	}
	if p.Role.Consumes() {
		pr.consumer()
	}
	if p.Verify {
		pr.verification()
	}
	if len(p.Thresholds) > 0 {
		pr.section("Thresholds")
		for _, t := range p.Thresholds {
			pr.item("%s", t.String())
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

type printer struct {
	plan     *Plan
	clean    func(string) string
	text     strings.Builder
	sections []section // the same as text
}

type section struct {
	Section string   `json:"section"`
	Lines   []line   `json:"lines,omitempty"`
	Items   []string `json:"items,omitempty"`
}

type line struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (pr *printer) section(title string) {
	if pr.text.Len() > 0 {
		pr.text.WriteByte('\n')
	}
	pr.text.WriteString(title + "\n")
	pr.sections = append(pr.sections, section{Section: title})
}

func (pr *printer) line(name, format string, args ...any) {
	value := pr.value(format, args)
	fmt.Fprintf(&pr.text, "  %-20s %s\n", name, value)
	s := &pr.sections[len(pr.sections)-1]
	s.Lines = append(s.Lines, line{strings.TrimSpace(name), value})
}

// item is a line without a name.
func (pr *printer) item(format string, args ...any) {
	value := pr.value(format, args)
	pr.text.WriteString("  " + value + "\n")
	s := &pr.sections[len(pr.sections)-1]
	s.Items = append(s.Items, value)
}

func (pr *printer) value(format string, args []any) string {
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = pr.clean(text)
		}
	}
	return fmt.Sprintf(format, args...)
}

func (pr *printer) brokers() {
	p := pr.plan
	pr.section("Broker")
	endpoints := p.Endpoints()
	for _, e := range endpoints {
		name := "url"
		if len(endpoints) > 1 {
			name = map[bool]string{true: "of producers", false: "of consumers"}[e == &p.Producer]
		}
		pr.line(name, "%s (%s)", RedactURL(e.Open.URL), e.Factory.Title)
		pr.line("  client", "%s", e.Client())
		pr.line("  user", "%s", userOf(&e.Open))
		if t := e.Open.TLS; t != (driver.TLS{}) {
			pr.line("  tls", "%s", describeTLS(t))
		}
	}
	pr.line("connect timeout", "%v", endpoints[0].Open.ConnectTimeout)
	pr.line("client ID prefix", "%s", orNone(p.ClientID))
}

func userOf(o *driver.OpenOptions) string {
	switch {
	case o.User != "" && o.Password != "":
		return o.User + ", with a password"
	case o.User != "":
		return o.User
	case HasUser(o.URL) && o.Password != "":
		return "as in the URL, with a password"
	case HasUser(o.URL):
		return "as in the URL"
	default:
		return "anonymous"
	}
}

func describeTLS(t driver.TLS) string {
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"authorities", t.CAFile}, {"certificate", t.CertFile}, {"key", t.KeyFile}, {"server name", t.ServerName},
	} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	if t.InsecureSkipVerify {
		parts = append(parts, "INSECURE: the broker's certificate is not verified")
	}
	return strings.Join(parts, ", ")
}

func (pr *printer) destinations() {
	list := pr.plan.Destinations
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
	p := pr.plan
	pr.section("Workers")
	if specs := p.ProducerSpecs(""); len(specs) > 0 {
		connections := map[string]bool{}
		for i := range specs {
			connections[specs[i].Connection.Key] = true
		}
		pr.line("producers", "%d (%d per destination) on %s", len(specs), p.Producers, plural(len(connections), "connection"))
	}
	if specs := p.ConsumerSpecs(""); len(specs) > 0 {
		connections := map[string]bool{}
		for i := range specs {
			connections[specs[i].Connection.Key] = true
		}
		per := fmt.Sprintf("%d per destination", p.Consumers)
		if p.Shared > 0 {
			per = fmt.Sprintf("%d for each of %d shared subscriptions per destination", p.Consumers, p.Shared)
		}
		pr.line("consumers", "%d (%s) on %s", len(specs), per, plural(len(connections), "connection"))
	}
	threads := "one per processor"
	if p.Threads > 0 {
		threads = strconv.Itoa(p.Threads)
	}
	pr.line("threads", "%s", threads)
}

func (pr *printer) load() {
	p := pr.plan
	pr.section("Load")
	if p.Role.Produces() {
		pr.line("rate", "%s", pr.schedule())
		pending := fmt.Sprintf("%d per producer", p.Pending())
		if p.MaxPending == 0 {
			pending = fmt.Sprintf("unbounded (%d per producer)", UnlimitedPending)
		}
		pr.line("max pending", "%s", pending)
	}
	pr.line("ends", "%s", pr.end())
	pr.line("warm-up", "%s", orNone(duration(p.Warmup)))
	pr.line("drain timeout", "%v", p.DrainTimeout)
}

// schedule says when messages are sent.
func (pr *printer) schedule() string {
	p := pr.plan
	if p.Rate.IsZero() {
		return "as fast as max pending allows"
	}
	producers := p.Producers * len(p.Destinations)
	text := fmt.Sprintf("%s msg/sec in all, one message every %v", number(p.Rate.PerSecond()), p.Rate.At(1))
	if producers > 1 {
		text += fmt.Sprintf("; each of %d producers every %v in turn", producers, p.Rate.At(uint64(producers)))
	}
	return text
}

func (pr *printer) end() string {
	p := pr.plan
	var ends []string
	if p.Duration > 0 {
		ends = append(ends, fmt.Sprintf("after %v (warm-up included)", p.Duration))
	}
	if p.Count > 0 {
		verb := "sent"
		if !p.Role.Produces() {
			verb = "received"
		}
		ends = append(ends, fmt.Sprintf("after %d messages %s", p.Count, verb))
	}
	if len(ends) == 0 {
		return "when interrupted (Ctrl-C)"
	}
	return strings.Join(ends, " or ")
}

func (pr *printer) message() {
	p := pr.plan
	pr.section("Message")
	pr.line("body", "%s", p.BodySource)
	pr.line("persistent", "%s", yesNo(p.Persistent))
	pr.line("time to live", "%s", orNone(duration(p.TTL)))
	priority := "the protocol's default"
	if p.Priority >= 0 {
		priority = strconv.Itoa(p.Priority)
	}
	pr.line("priority", "%s", priority)
	pr.line("group", "%s", orNone(p.Group))
	if p.CommitInterval > 0 {
		pr.line("transactions", "of %s", plural(p.CommitInterval, "message"))
	}
	for _, property := range p.Properties {
		pr.line("property", "%s=%s", property.Key, property.Value)
	}
}

func (pr *printer) consumer() {
	p := pr.plan
	pr.section("Consumer")
	subscription := "ends with the consumer"
	switch {
	case !p.hasKind(driver.Topic):
		subscription = "none: queues"
	case p.Durable && p.KeepSubscription:
		subscription = "durable, kept at the broker"
	case p.Durable:
		subscription = "durable, removed at the end"
	}
	if p.Shared > 0 {
		subscription += fmt.Sprintf(", %d shared", p.Shared)
	}
	pr.line("subscription", "%s", subscription)
	credit := "the protocol's default"
	if p.Credit > 0 {
		credit = strconv.Itoa(p.Credit)
	}
	pr.line("credit", "%s", credit)
	if !p.ConsumerWork.IsZero() {
		pr.line("work per message", "%s", p.ConsumerWork.String())
	}
	if !p.ConsumerRate.IsZero() {
		pr.line("rate of consumers", "at most %g msg/s in all", p.ConsumerRate.PerSecond())
	}
	pr.line("largest message", "%d bytes are accepted", p.Consumer.Open.LargestBody())
	pr.line("selector", "%s", orNone(p.Selector))
	if p.Transacted {
		pr.line("transactions", "of %s", plural(p.transactionSize(), "message"))
	}
}

func (pr *printer) verification() {
	p := pr.plan
	pr.section("Verification")
	pr.line("file", "%s", orNone(p.VerifyFile))
	if !p.Role.Consumes() {
		return
	}
	for _, l := range []struct {
		what    string
		allowed bool
	}{
		{"lost", p.Allow.Lost}, {"doubled", p.Allow.Duplicates}, {"damaged", p.Allow.Damaged}, {"out of order", p.Allow.Disorder},
	} {
		verdict := "a failure"
		if l.allowed {
			verdict = "reported, no failure"
		}
		pr.line(l.what, "%s", verdict)
	}
}

func (pr *printer) options() {
	p := pr.plan
	endpoints := []*Endpoint{&p.Producer, &p.Consumer}
	if !p.Role.Consumes() || p.Role.Produces() && p.Producer.Factory.Name == p.Consumer.Factory.Name {
		endpoints = endpoints[:1] // the same protocol gets the same options on both sides
	}
	if !p.Role.Produces() {
		endpoints = endpoints[1:]
	}
	for _, e := range endpoints {
		options := driver.Describe(e.Open.Options)
		if len(options) == 0 {
			continue
		}
		pr.section(e.Factory.Title + " options")
		for _, o := range options {
			pr.line(o.Name, "%s", orNone(o.Default))
		}
	}
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
