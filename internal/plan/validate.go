package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/load"

	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// maxWorkers bounds producers and consumers of one process: each has goroutines, a recorder and a link of its own.
const maxWorkers = 100_000

// Validate finds everything in the plan that cannot be carried out, without connecting. The error joins one [*Mistake]
// or [*driver.Error] for each; it is nil if there are none.
func (p *Plan) Validate(drivers Drivers) error {
	v := validator{seen: map[string]bool{}, driver: drivers, verify: p.Verify && !p.Split(), window: p.VerifyWindow > 0}
	v.stomp = slices.ContainsFunc(p.Brokers(), func(b *Broker) bool { return b.Protocol == "stomp" })
	v.unmet(p)
	v.shards(p)
	poisson := func(g *Group) bool { return g.Poisson }
	v.wrong(p.any(poisson) && !p.any(func(g *Group) bool { return g.Poisson && g.Rated() }),
		Needs("--arrivals poisson", "--rate"))
	elsewhere := p.elsewhere()
	v.thresholds(p.Thresholds, elsewhere, "", p.Steps)
	for i := range p.Steps {
		step := &p.Steps[i]
		v.step(step)
		v.refuse(i < len(p.Steps)-1 && !step.ends(), "give it a duration, until: idle, or a message-count",
			"step %s never ends", step.Name)
		v.thresholds(step.Thresholds, elsewhere, step.Name, p.Steps[i:i+1])
		for _, g := range step.openings() {
			v.opening(g, step)
		}
		for _, g := range step.Groups {
			v.check(g)
			v.ramp(g, step)
			if g.Rate.Relative != nil {
				v.relative(g.Rate.Relative, p.Steps[:i])
			}
		}
	}
	v.group = nil
	brokers, _ := p.brokerNames()
	for _, b := range brokers {
		v.broker(b)
	}
	return errors.Join(v.errs...)
}

// check finds the mistakes of a group.
func (v *validator) check(g *Group) {
	v.group = g
	v.settings()
	v.destinations()
	v.subscriptions()
	if g.Role.Produces() {
		v.producing(v.driver(g.ProducerBroker))
	}
	if g.Role.Consumes() {
		v.consuming(v.driver(g.ConsumerBroker))
	}
	v.replies()
}

// replies checks the settings of requesters and responders.
func (v *validator) replies() {
	g := v.group
	if g.Role.Side() == g.Role {
		timeout, size := cmp.Or(g.ReplyTimeout, DefaultReplyTimeout), cmp.Or(g.ReplySize, DefaultReplySize)
		v.wrong(g.ReplyTo != "", Needs("--reply-to", "the role requester or service"))
		v.wrong(timeout != DefaultReplyTimeout, Needs("--reply-timeout", "the role requester or service"))
		v.wrong(size != DefaultReplySize, Needs("--reply-size", "the role responder or service"))
		return
	}
	if g.Role.Requests() && g.ReplyTo == "" {
		f := v.driver(g.ProducerBroker)
		v.capable(f, func(_ driver.Kind, c *driver.KindCapabilities) []string { return g.Replies().Missing(c) })
	}
	v.wrong(g.Role.Requests() && g.CommitInterval > 0, Excludes("--commit-interval", "requests"))
	v.wrong(g.Role.Requests() && g.Resend, Excludes("--in-doubt resend", "requests"))
	v.wrong(g.Role.Responds() && g.TransactionSize > 0, Excludes("--tx", "replies"))
}

// The defaults of settings of replies.
const (
	DefaultReplyTimeout = 30 * time.Second
	DefaultReplySize    = 1024
)

// Replies returns what the consumers of replies have in common.
func (g *Group) Replies() *driver.ConsumerSpec {
	spec := driver.ConsumerSpec{Correlated: true, Dynamic: g.ReplyTo == ""}
	if !spec.Dynamic {
		spec.Destination, _ = driver.ParseDestination(g.ReplyTo)
	}
	return &spec
}

type validator struct {
	group *Group // of which the mistakes are
	errs  []error
	seen  map[string]bool // texts of errs: a group is in several steps
	stomp bool            // some group sends or receives over STOMP

	driver Drivers
	verify bool
	window bool // of the verification

	demand   *threshold.Threshold // of which the mistakes are; nil if they are of something else
	demandOf string               // its step; empty for the whole run
}

// add records a mistake, once.
func (v *validator) add(err error) {
	if v.group != nil && v.group.Name != "" {
		if m, ok := errors.AsType[*Mistake](err); ok {
			err = &Mistake{Text: "group " + v.group.Name + ": " + m.Text, Hint: m.Hint}
		}
		if v.seen[err.Error()] {
			return
		}
		v.seen[err.Error()] = true
	}
	v.errs = append(v.errs, err)
}

// wrong records a mistake if it is one, and the threshold that it is about.
func (v *validator) wrong(is bool, m *Mistake) {
	if !is {
		return
	}
	if v.demand != nil {
		m.Threshold, m.Step = v.demand.String(), v.demandOf
	}
	v.add(m)
}

// refuse records a mistake with its words.
func (v *validator) refuse(wrong bool, hint, format string, args ...any) {
	v.wrong(wrong, Wrong(hint, format, args...))
}

// unmet records settings of a struct that are given without the one that they need.
func (v *validator) unmet(of any) {
	for _, m := range Unmet(of) {
		v.wrong(true, m)
	}
}

// step checks the settings that all groups of a step share.
func (v *validator) step(s *Step) {
	v.group = nil
	v.refuse(s.Duration > 0 && s.Warmup >= s.Duration,
		fmt.Sprintf("the duration includes the warm-up: try --duration %v", s.Warmup+max(s.Duration, time.Second)),
		"--warmup %v leaves nothing to measure of --duration %v", s.Warmup, s.Duration)
	workers := 0
	for _, g := range s.Groups {
		producers, consumers := g.workers()
		workers += producers + consumers
	}
	v.wrong(workers > maxWorkers, TooMany("producers and consumers", workers, maxWorkers))
}

// ends reports whether the step ends by itself.
func (s *Step) ends() bool {
	if s.Duration > 0 {
		return true
	}
	producing, bounded, counted := false, true, false
	for _, g := range s.Groups {
		if g.Role != Connections && !g.Role.Produces() {
			counted = counted || g.Count > 0
			continue
		}
		_, ends := g.Rate.End()
		producing, bounded = true, bounded && (ends || g.Count > 0 || g.Connections > 0)
	}
	return counted || producing && bounded || !producing && s.Drained
}

// settings checks settings of a group against each other.
func (v *validator) settings() {
	g := v.group
	v.wrong(g.SendTimeout > 0 && g.CommitInterval > 0, Excludes("--send-timeout", "--commit-interval"))
	v.resend()
	v.refuse(g.TTL > 0 && g.Delay >= g.TTL, "raise --ttl", "--delivery-delay %v leaves nothing of --ttl %v",
		g.Delay, g.TTL)
	v.refuse(g.ReconnectTimeout > 0 && g.ReconnectTimeout <= g.ReconnectSpread, "",
		"--reconnect-timeout must be longer than --reconnect-spread")
	v.unmet(g)
	for _, b := range g.Brokers() {
		f := v.driver(b)
		v.refuse(g.Hosts == Spread && f.Hosts == nil, "leave --hosts out",
			"--hosts spread: the hosts of a URL of %s are name servers", f.Spoken())
		v.refuse(g.LocalAddress != "" && f.Capabilities.HidesConnections,
			"use --client native, or leave --local-address out",
			"--local-address: %s opens its connections by itself", f.Spoken())
		v.refuse(g.Reconnect && f.Capabilities.Reconnects, "use --client native, or leave --reconnect out",
			"--reconnect: %s reconnects by itself and reports no outage", f.Spoken())
	}
}

// ramp finds the mistakes of workers that open during the load.
func (v *validator) ramp(g *Group, s *Step) {
	if g.RampWorkers == 0 {
		return
	}
	v.refuse(s.Duration > 0 && g.RampWorkers >= s.Duration, "", "--ramp-workers must be shorter than --duration")
	v.refuse(g.Role.Consumes() && slices.ContainsFunc(g.Destinations, func(d driver.Destination) bool {
		return d.Kind == driver.Topic
	}), "leave --ramp-workers to groups of producers",
		"--ramp-workers: a consumer of a topic misses what came before it")
	v.wrong(g.Skew > 0, Excludes("--ramp-workers", "--destination-skew"))
}

// workers returns the number of producers and consumers of the group.
func (g *Group) workers() (producers, consumers int) {
	if g.Role.Produces() {
		producers = g.Producers * len(g.Destinations)
	}
	if g.Role.Consumes() {
		consumers = g.Consumers * len(g.Destinations) * max(g.Shared, 1)
	}
	return producers, consumers
}

func (v *validator) destinations() {
	g := v.group
	for _, b := range g.Brokers() {
		f := v.driver(b)
		for _, d := range g.Destinations {
			if !f.Capabilities.Of(d.Kind).Exists {
				other := driver.Destination{Kind: driver.Queue, Name: d.Name}
				if d.Kind == driver.Queue {
					other.Kind = driver.Topic
				}
				hint := "use " + other.String()
				if f.Native != nil && f.Native.Of(d.Kind).Exists {
					hint += ", or use " + native(f)
				}
				v.refuse(true, hint, "%s has no %ss: %s", f.Spoken(), d.Kind, d)
				break
			}
		}
	}
}

func (v *validator) subscriptions() {
	g := v.group
	if !g.Role.Consumes() {
		return
	}
	topics := g.hasKind(driver.Topic)
	const topic = "a destination topic://NAME"
	v.refuse(g.Durable && !topics, "use "+topic, "--durable needs "+topic)
	v.refuse(g.Shared > 0 && !topics, "use "+topic, "--shared needs "+topic)
	v.wrong(g.Shared > 0 && topics && g.hasKind(driver.Queue), Excludes("--shared", "queues and topics together"))
	v.refuse(g.Durable && g.Shared == 0 && g.ClientID == "", "add --clientID PREFIX",
		"Cannot create durable subscription - client ID has not been set")
}

func (g *Group) hasKind(kind driver.Kind) bool {
	return slices.ContainsFunc(g.Destinations, func(d driver.Destination) bool { return d.Kind == kind })
}

func (v *validator) producing(f *driver.Factory) {
	g := v.group
	v.capable(f, func(_ driver.Kind, c *driver.KindCapabilities) []string {
		spec := g.producerSpec()
		return spec.Missing(c)
	})
	v.streams(f, "--stream-filter-value",
		slices.ContainsFunc(g.Mix, func(m Variant) bool { return m.FilterValue != "" }))
	v.wrong(g.Skew > 0 && !g.Rated() && g.Count == 0, Needs("--destination-skew", "--rate or --message-count"))
	v.wrong(g.Skew > 0 && len(g.Destinations) < 2, Needs("--destination-skew", "--num-destinations above 1"))
	grouped := slices.ContainsFunc(g.Mix, func(m Variant) bool { return m.Group != "" })
	v.wrong(g.Keys > 0 && grouped, Excludes("--group-keys", "--group"))
	v.mix()
	v.text()
	for _, key := range []string{driver.TimeProperty, driver.IDProperty} {
		v.refuse(slices.ContainsFunc(g.Mix, func(m Variant) bool {
			return slices.ContainsFunc(m.Properties, func(p driver.Property) bool { return p.Key == key })
		}), "choose another key", "--property %s=... is taken: perfmq sets it on each message", key)
	}
}

func (v *validator) consuming(f *driver.Factory) {
	g := v.group
	v.refuse(g.Credit > 0 && g.TransactionSize > g.Credit, "lower --tx-size or raise --credit",
		"--tx-size %d is above --credit %d", g.TransactionSize, g.Credit)
	v.capable(f, func(kind driver.Kind, c *driver.KindCapabilities) []string {
		spec := g.consumerSpec(kind)
		return spec.Missing(c)
	})
	v.streams(f, "--stream-offset and --stream-filter", g.Streams())
	v.refuse(g.Failing == driver.Release && g.ConsumerFail == load.Whole,
		"give a smaller share, or --consumer-fail-as reject",
		"--consumer-fail 100%%: each message would come again for ever")
	v.wrong(!g.ConsumerFail.IsZero() && g.TransactionSize > 0, Excludes("--consumer-fail", "--tx"))
}

// streams refuses settings of streams where a destination cannot be one.
func (v *validator) streams(f *driver.Factory, settings string, given bool) {
	if given && !f.Capabilities.Streams {
		hint := ""
		if f.Native != nil && f.Native.Streams {
			hint = ", or use --client native"
		}
		v.unsupported(settings, f.Spoken(), hint)
		return
	}
	v.refuse(given && v.group.hasKind(driver.Queue), "use topic://NAME with -o declare=stream",
		"%s: perfmq reads a stream as a topic, since each consumer gets all messages", settings)
}

// broker checks one broker: it checks the settings common to all protocols here, the rest by the protocol's own Check.
func (v *validator) broker(b *Broker) {
	o, f := &b.OpenOptions, v.driver(b)
	v.wrong(o.Password != "" && o.User == "" && !HasUser(o.URL), Needs("--password", "--user"))
	if o.TLS != (driver.TLS{}) {
		switch {
		case !f.Capabilities.TLS:
			v.unsupported("--tls", f.Title, "")
		case !Encrypted(o.URL):
			v.wrong(true, Needs("--tls", "a --url with "+strings.Join(encryptedSchemes(f), ", ")))
		default: // the files are read by the protocol's Check
		}
	}
	if f.Check == nil {
		return
	}
	if err := f.Check(*o); err != nil {
		v.add(err)
	}
}

// Encrypted reports whether a URL means an encrypted connection.
func Encrypted(url string) bool { return encrypted(Scheme(url)) }

// native is the setting that selects the native driver in place of f.
func native(f *driver.Factory) string {
	if slices.Contains(f.Schemes, f.Name) {
		return "--client native"
	}
	return "a --url with " + f.Name + "://"
}

// encrypted reports whether a scheme means an encrypted connection: amqps, amqp+ssl.
func encrypted(scheme string) bool {
	base, _, _ := strings.Cut(scheme, "+") // rocketmqs+grpc
	return strings.HasSuffix(base, "s") || strings.HasSuffix(scheme, "ssl") || strings.HasSuffix(scheme, "tls")
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

// resend checks whether messages in doubt can be sent again.
func (v *validator) resend() {
	g := v.group
	if !g.Resend {
		return
	}
	c := &v.driver(g.ProducerBroker).Capabilities
	v.wrong(!g.Reconnect && g.SendTimeout == 0 && !c.TimesOut && !c.Reconnects,
		Needs("--in-doubt resend", "--reconnect or --send-timeout"))
	v.wrong(g.CommitInterval > 0, Excludes("--in-doubt resend", "--commit-interval"))
}

// unsupported records a setting that a protocol does not have.
func (v *validator) unsupported(flag, protocol, hint string) {
	v.refuse(true, "leave "+flag+" out"+hint, "%s: %s does not support that", flag, protocol)
}

// capable refuses settings that a protocol does not support for one of the destinations. The native driver may support
// more than a client library.
func (v *validator) capable(f *driver.Factory, missing func(driver.Kind, *driver.KindCapabilities) []string) {
	all := func(c *driver.Capabilities) (settings []string) {
		for _, kind := range []driver.Kind{driver.Queue, driver.Topic} {
			if v.group.hasKind(kind) && c.Of(kind).Exists {
				settings = append(settings, missing(kind, c.Of(kind))...)
			}
		}
		return settings
	}
	missed := all(&f.Capabilities)
	for i, setting := range missed {
		hint := ""
		if f.Native != nil && !slices.Contains(all(f.Native), setting) {
			hint = ", or use " + native(f)
		}
		if !slices.Contains(missed[:i], setting) {
			v.unsupported(setting, f.Spoken(), hint)
		}
	}
}

// figuresOf returns the figures that a group has in any of the steps, and whether there is such a group.
// Without a name, it returns the figures of the steps.
func (v *validator) figuresOf(steps []Step, group string) (has result.Role, found bool) {
	whole := group == ""
	found, has = whole, threshold.Verification.If(whole && v.verify)|threshold.Window.If(whole && v.window)
	for i := range steps {
		for _, g := range steps[i].Groups {
			if whole || g.Name == group {
				found = true
				has |= g.figures()
			}
		}
	}
	return has, found
}

// elsewhere returns the figures that parts of the run will have because of other parts: figures of delayed messages
// from other steps, groups or processes, and figures of the whole run.
func (p *Plan) elsewhere() (has result.Role) {
	sends := false
	for _, g := range p.uses() {
		sends = sends || g.Role.Produces()
		has |= threshold.Delay.If(g.Delay > 0)
	}
	return has | threshold.Delay.If(!sends) | threshold.Stalls.If(p.StallThreshold > 0)
}

// figures returns the figures that the group will have.
func (g *Group) figures() result.Role {
	sends, receives := g.Role.Produces(), g.Role.Consumes()
	if g.Role == Connections {
		return g.opens()
	}
	return threshold.Producers.If(sends) | threshold.Consumers.If(receives) | threshold.Rate.If(sends && g.Rated()) |
		threshold.Transactions.If(sends && g.CommitInterval > 0 || receives && g.TransactionSize > 0) |
		threshold.Reconnection.If(g.Reconnect) | threshold.Requests.If(g.Role.Requests()) |
		threshold.Replies.If(g.Role.Responds())
}

// Rated reports whether the messages of the group have intended times.
func (g *Group) Rated() bool { return !g.Rate.IsZero() || g.Rate.Relative != nil }

// Roles returns which sides all groups of the plan have together.
func (p *Plan) Roles() Role {
	switch {
	case !p.any(func(g *Group) bool { return g.Role != Connections }):
		return Connections
	case !p.any(func(g *Group) bool { return g.Role.Consumes() }):
		return Producer
	case !p.any(func(g *Group) bool { return g.Role.Produces() }):
		return Consumer
	default:
		return Client
	}
}

func (p *Plan) any(is func(*Group) bool) bool { return slices.ContainsFunc(p.uses(), is) }

// thresholds refuses thresholds on figures that the steps will not have: all steps of the run, or the named one.
// elsewhere are the figures by others.
func (v *validator) thresholds(list []threshold.Threshold, elsewhere result.Role, step string, steps []Step) {
	v.group, v.demandOf = nil, step
	defer func() { v.demand = nil }()
	for i := range list {
		t := &list[i]
		v.demand = t
		v.refuse(t.Abort && !t.CanAbort(), "leave abort out",
			"threshold %q cannot end the run early", t.String())
		has, found := v.figuresOf(steps, t.Metric.Group)
		switch lacks := t.Lacks(has | elsewhere); {
		case !found:
			v.refuse(true, "", "--threshold %q: there is no group %s", t.String(), t.Metric.Group)
		case lacks != 0:
			v.lacking(t, lacks)
		default:
			v.refuse(t.OfTarget && !hasTarget(t.Metric.Group, steps),
				"make it a threshold of a step or group: group.NAME.completed.avg",
				"--threshold %q: there is no one target", t.String())
		}
	}
}

// hasTarget reports whether there is a rate for a share: in one step, of all its producers or of a group's.
func hasTarget(group string, steps []Step) bool {
	if len(steps) != 1 {
		return false
	}
	for _, g := range steps[0].Groups {
		if (group == "" || g.Name == group) && g.Role.Produces() && !g.Rated() {
			return false
		}
	}
	return true
}

// lacking refuses a threshold for which the run lacks something.
func (v *validator) lacking(t *threshold.Threshold, lacks result.Role) {
	var hints []string
	for _, need := range []struct {
		needs result.Role
		hint  string
	}{
		{threshold.Verification, map[bool]string{false: "add --verify", true: "leave it to perfmq merge --follow"}[v.window]},
		{threshold.Window, "add --verify-window"},
		{threshold.Rate, "add --rate"},
		{threshold.Transactions, "add --commit-interval or --tx"},
		{threshold.Reconnection, "add --reconnect"},
		{threshold.Delay, "add --delivery-delay"},
		{threshold.Stalls, "raise --stall-threshold"},
		{threshold.Openings, "add a group with the role connections"},
		{threshold.Requests, "use the role requester or service"},
		{threshold.Replies, "use the role responder or service"},
		{threshold.Producers, "add producers"},
		{threshold.Consumers, "add consumers"},
	} {
		if lacks&need.needs != 0 {
			hints = append(hints, need.hint)
		}
	}
	v.refuse(true, strings.Join(hints, "; "), "--threshold %q: this run does not measure it", t.String())
}
