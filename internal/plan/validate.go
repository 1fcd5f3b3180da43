package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perfmq/perfmq/pkg/driver"
)

// maxWorkers bounds producers and consumers of one process: each has goroutines, a recorder and a link of its own.
const maxWorkers = 100_000

// Validate finds everything in the plan that cannot be carried out, without connecting. The error joins one [*Mistake] or
// [*driver.Error] for each; it is nil if there are none.
func (p *Plan) Validate() error {
	v := validator{plan: p}
	v.numbers()
	v.load()
	v.destinations()
	v.subscriptions()
	v.thresholds()
	if p.Role.Produces() {
		v.producing(&p.Producer.Factory)
	}
	if p.Role.Consumes() {
		v.consuming(&p.Consumer.Factory)
	}
	for _, e := range p.Endpoints() {
		v.endpoint(e)
	}
	return errors.Join(v.errs...)
}

// Endpoints returns the brokers of the plan's role, each once.
func (p *Plan) Endpoints() []*Endpoint {
	switch {
	case !p.Role.Consumes():
		return []*Endpoint{&p.Producer}
	case !p.Role.Produces():
		return []*Endpoint{&p.Consumer}
	case p.SameBroker():
		return []*Endpoint{&p.Producer}
	default:
		return []*Endpoint{&p.Producer, &p.Consumer}
	}
}

// Notes returns what the user should know about a plan that is valid nevertheless, one sentence each.
func (p *Plan) Notes() []string {
	var notes []string
	if p.Role.Produces() && p.MaxPending == 0 {
		notes = append(notes, fmt.Sprintf("--max-pending 0 lets up to %d messages per producer be in flight (the tool's own bound): "+
			"expect memory to grow and latencies to be those of a queue in front of the broker", UnlimitedPending))
	}
	if p.Role.Produces() && p.MaxPending > 0 && p.MaxPending < p.CommitInterval {
		notes = append(notes, fmt.Sprintf("--max-pending is raised to %d: the messages of a transaction end together", p.CommitInterval))
	}
	if !p.Role.Produces() && p.CommitInterval > 0 {
		notes = append(notes, "--commit-interval is ignored: it is for producers; --tx-size is how many messages a consumer receives per transaction")
	}
	if p.Role == Client && p.Producer.Factory.Name == p.Consumer.Factory.Name {
		_, _, from, _ := splitUserinfo(p.Producer.Open.URL)
		if _, _, to, _ := splitUserinfo(p.Consumer.Open.URL); from != to {
			notes = append(notes, "producers and consumers use different URLs: if these are different brokers, they must pass messages on")
		}
	}
	if _, usual := bodyLimits(&p.Producer.Factory); p.Role.Produces() && usual > 0 && len(p.Body) > usual {
		notes = append(notes, fmt.Sprintf("bodies of %d bytes are more than the %d that brokers of %s take unless they are told otherwise: "+
			"expect them to be refused, or the connection to be ended", len(p.Body), usual, p.Producer.Factory.Title))
	}
	if p.Verify && p.VerifyFile == "" && p.Role != Client {
		notes = append(notes, "--verify on one side alone cannot find what is lost: with --verify-file FILE on both, perfmq verify can")
	}
	return notes
}

type validator struct {
	plan *Plan
	errs []error
}

// refuse records a mistake if wrong is true.
func (v *validator) refuse(wrong bool, hint, format string, args ...any) {
	if wrong {
		v.errs = append(v.errs, mistake(hint, format, args...))
	}
}

func (v *validator) numbers() {
	p := v.plan
	const positive = "leave it out, or give a number that is not negative"
	for _, n := range []struct {
		name  string
		value int
	}{
		{"--shared", p.Shared},
		{"--threads", p.Threads},
		{"--max-pending", p.MaxPending},
		{"--commit-interval", p.CommitInterval},
		{"--credit", p.Credit},
		{"--consumer-connections", p.ConsumerConnections},
	} {
		v.refuse(n.value < 0, positive, "%s %d is negative", n.name, n.value)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"--duration", p.Duration},
		{"--warmup", p.Warmup},
		{"--drain-timeout", p.DrainTimeout},
		{"--ttl", p.TTL},
	} {
		v.refuse(d.value < 0, positive, "%s %v is negative", d.name, d.value)
	}
	v.refuse(p.MaxPending > UnlimitedPending, "0 means as many as the tool allows",
		"--max-pending %d is more than the tool allows (%d per producer)", p.MaxPending, UnlimitedPending)
	v.refuse(p.Priority < -1 || p.Priority > 9, "0 is the lowest, 9 the highest, 4 what brokers assume",
		"--priority %d is not 0 to 9", p.Priority)
}

func (v *validator) load() {
	p := v.plan
	v.refuse(p.Duration > 0 && p.Warmup >= p.Duration,
		fmt.Sprintf("the duration includes the warm-up: try --duration %v", p.Warmup+max(p.Duration, time.Second)),
		"--warmup %v leaves nothing to measure of --duration %v", p.Warmup, p.Duration)
	v.refuse(p.SharedConnections && p.ProducerConnections < 1, "--threads N is the number of shared connections",
		"--shared-connections needs at least one connection")
	groups := max(p.Shared, 1)
	var workers int
	if p.Role.Produces() {
		v.refuse(p.Producers < 1, "to receive only, use the consumer command", "--producers %d: at least 1 is needed", p.Producers)
		workers += p.Producers * len(p.Destinations)
	}
	if p.Role.Consumes() {
		v.refuse(p.Consumers < 1, "to send only, use the producer command", "--consumers %d: at least 1 is needed", p.Consumers)
		workers += p.Consumers * len(p.Destinations) * groups
	}
	v.refuse(workers > maxWorkers, fmt.Sprintf("at most %d in one process; run several processes", maxWorkers),
		"the plan comes to %d producers and consumers", workers)
}

func (v *validator) destinations() {
	p := v.plan
	v.refuse(len(p.Destinations) == 0, "name at least one, such as queue://TEST", "there is no destination")
	for _, e := range p.Endpoints() {
		for _, d := range p.Destinations {
			if !e.Factory.Capabilities.Of(d.Kind).Exists {
				other := driver.Destination{Kind: driver.Queue, Name: d.Name}
				if d.Kind == driver.Queue {
					other.Kind = driver.Topic
				}
				v.refuse(true, "use "+other.String(), "%s has no %ss: %s", e.Factory.Title, d.Kind, d)
				break
			}
		}
	}
}

func (v *validator) subscriptions() {
	p := v.plan
	if !p.Role.Consumes() {
		return
	}
	topics := p.hasKind(driver.Topic)
	const useTopic = "name the destination topic://NAME; what waits in a queue is kept without it"
	v.refuse(p.Durable && !topics, useTopic, "--durable subscriptions exist on topics only")
	v.refuse(p.Shared > 0 && !topics, "name the destination topic://NAME; the consumers of a queue share its messages anyway",
		"--shared subscriptions exist on topics only")
	v.refuse(p.Shared > 0 && topics && p.hasKind(driver.Queue), "measure queues and topics in two runs",
		"--shared %d does not work with queues and topics in one run", p.Shared)
	v.refuse(p.Durable && p.Shared == 0 && p.ClientID == "", "add --clientID PREFIX",
		"Cannot create durable subscription - client ID has not been set")
	v.refuse(p.KeepSubscription && !p.Durable, "add --durable", "--keep-subscription works only with durable subscriptions")
}

func (p *Plan) hasKind(kind driver.Kind) bool {
	for _, d := range p.Destinations {
		if d.Kind == kind {
			return true
		}
	}
	return false
}

func (v *validator) producing(f *driver.Factory) {
	p := v.plan
	v.refuse(p.CommitInterval > 0 && v.lacks(f, func(c *capabilities) bool { return c.Transactions }),
		leaveOut("--commit-interval", f), "%s", noTransactions(f))
	for _, s := range []setting{
		{p.Persistent, func(c *capabilities) bool { return c.Persistent }, "--persistent", "choose a delivery mode"},
		{p.TTL > 0, func(c *capabilities) bool { return c.TTL }, "--ttl", "let messages expire"},
		{p.Priority >= 0, func(c *capabilities) bool { return c.Priority }, "--priority", "give messages a priority"},
		{p.Group != "", func(c *capabilities) bool { return c.Group }, "--group", "name a message group"},
		{len(p.Properties) > 0, func(c *capabilities) bool { return c.Properties }, "--property", "carry properties"},
	} {
		v.cannot(f, &s)
	}
	v.refuse(len(p.Body) > MaxMessageSize, "", "the body of %d bytes is larger than %d", len(p.Body), MaxMessageSize)
	for _, property := range p.Properties {
		v.refuse(property.Key == driver.TimeProperty, "choose another key",
			"--property %s=... is taken: the time of sending travels in it", driver.TimeProperty)
		v.refuse(property.Key == driver.IDProperty, "choose another key",
			"--property %s=... is taken: of which run the message is travels in it", driver.IDProperty)
	}
}

func (v *validator) consuming(f *driver.Factory) {
	p := v.plan
	v.refuse(p.Credit > 0 && p.transactionSize() > p.Credit, "lower --tx-size or raise --credit",
		"--tx-size %d is above --credit %d: the messages of a transaction would never all come", p.TransactionSize, p.Credit)
	v.refuse(p.Transacted && v.lacks(f, func(c *capabilities) bool { return c.TransactedReceive }),
		leaveOut("--tx", f), "%s", noTransactions(f))
	for _, s := range []setting{
		{p.Selector != "", func(c *capabilities) bool { return c.Selector }, "--selector", "filter at the broker"},
		{p.Credit > 0, func(c *capabilities) bool { return c.Credit }, "--credit", "set the receive window"},
	} {
		v.cannot(f, &s)
	}
	// These concern topics only, whatever else there is.
	topic := &f.Capabilities.Topic
	v.refuse(p.Durable && p.hasKind(driver.Topic) && !topic.DurableSubscription,
		leaveOut("--durable", f), "--durable: %s cannot keep subscriptions", title(f))
	v.refuse(p.Shared > 0 && p.hasKind(driver.Topic) && !topic.SharedSubscription,
		leaveOut("--shared", f), "--shared: %s cannot share subscriptions", title(f))
}

type capabilities = driver.KindCapabilities

// setting is one that needs a capability.
type setting struct {
	used       bool
	can        func(*capabilities) bool
	flag, what string
}

// cannot refuses a setting that a protocol has no means for with one of the destinations.
func (v *validator) cannot(f *driver.Factory, s *setting) {
	v.refuse(s.used && v.lacks(f, s.can), leaveOut(s.flag, f), "%s: %s cannot %s", s.flag, title(f), s.what)
}

// lacks tells whether a capability is missing for one of the kinds of destinations.
func (v *validator) lacks(f *driver.Factory, can func(*capabilities) bool) bool {
	for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
		if c := f.Capabilities.Of(kind); v.plan.hasKind(kind) && c.Exists && !can(c) {
			return true
		}
	}
	return false
}

func noTransactions(f *driver.Factory) string { return title(f) + " transactions are not supported" }

// leaveOut is the hint for a flag that cannot be had.
func leaveOut(flag string, f *driver.Factory) string {
	if f.Client == "" || f.Client == driver.Native {
		return "leave " + flag + " out"
	}
	return "leave " + flag + " out, or use --client native"
}

// endpoint checks one broker: what all protocols have in common here, the rest by the protocol's own Check.
func (v *validator) endpoint(e *Endpoint) {
	o := &e.Open
	v.refuse(o.ConnectTimeout <= 0, "give it some seconds", "--connect-timeout must be above 0")
	v.refuse(o.Password != "" && o.User == "" && !HasUser(o.URL), "add --user NAME", "a password was given but no user")
	if o.TLS != (driver.TLS{}) {
		switch scheme := Scheme(o.URL); {
		case !e.Factory.Capabilities.TLS:
			v.refuse(true, "leave the --tls flags out", "--tls: %s connections cannot be encrypted", e.Factory.Title)
		case !encrypted(scheme):
			v.refuse(true, "give a --url with an encrypted scheme: "+strings.Join(encryptedSchemes(&e.Factory), ", "),
				"--tls flags were given, but %s is not encrypted", RedactURL(o.URL))
		default: // the files are read by the protocol's Check
		}
	}
	if e.Factory.Check == nil {
		return
	}
	checked := *o
	checked.ConnectTimeout = max(checked.ConnectTimeout, 1) // reported above
	if err := e.Factory.Check(checked); err != nil {
		v.errs = append(v.errs, err)
	}
}

// encrypted tells whether a scheme means an encrypted connection: amqps, amqp+ssl.
func encrypted(scheme string) bool {
	return strings.HasSuffix(scheme, "s") || strings.HasSuffix(scheme, "ssl") || strings.HasSuffix(scheme, "tls")
}

func encryptedSchemes(f *driver.Factory) []string {
	var list []string
	for _, scheme := range f.Schemes {
		if encrypted(scheme) {
			list = append(list, scheme+"://")
		}
	}
	return list
}
