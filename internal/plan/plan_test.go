package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

type options struct {
	Settle string `opt:"settle" help:"how to settle"`
}

// able is a protocol that can do everything.
func able() driver.Factory {
	return driver.Factory{
		Name: "able", Title: "Able 2.0", Schemes: []string{"able", "ables"}, DefaultURL: "able://localhost",
		Capabilities: driver.Capabilities{TLS: true, Streams: true, Queue: everything(), Topic: everything()},
		NewOptions:   func() any { return &options{Settle: "late"} },
	}
}

func everything() driver.KindCapabilities {
	return driver.KindCapabilities{
		RequestReply: true, DynamicReply: true, Exists: true, DurableSubscription: true, SharedSubscription: true, Persistent: true, TTL: true, Priority: true, Group: true,
		Properties: true, Selector: true, Transactions: true, TransactedReceive: true, Credit: true,
	}
}

// endpoint is a broker with its driver.
type endpoint struct {
	*Broker
	Factory driver.Factory
}

func at(f driver.Factory) *endpoint {
	return &endpoint{&Broker{Protocol: f.Name, Client: driver.Native, OpenOptions: driver.OpenOptions{
		URL: f.DefaultURL, ConnectTimeout: time.Second, Options: &options{Settle: "late"},
	}}, f}
}

// ables finds the driver of a protocol that can do everything, or what edit leaves.
func ables(edit func(*driver.Capabilities)) Drivers {
	f := able()
	if edit != nil {
		edit(&f.Capabilities)
	}
	return func(*Broker) *driver.Factory { return &f }
}

// flat is a plan of one step with one group.
type flat struct {
	*Plan
	*Step
	*Group
	Producer, Consumer *endpoint
}

func (p *flat) Validate() error {
	return p.Plan.Validate(func(b *Broker) *driver.Factory {
		if b == p.Producer.Broker {
			return &p.Producer.Factory
		}
		return &p.Consumer.Factory
	})
}

func bodyOf(text string) []Variant {
	return []Variant{{Weight: 1, Variant: driver.Variant{Priority: -1, Body: []byte(text)}}}
}

// valid returns a plan without mistakes.
func valid() *flat {
	sender, reader := at(able()), at(able())
	g := &Group{
		Role: Client, ProducerBroker: sender.Broker, ConsumerBroker: reader.Broker, Producers: 1, Consumers: 1,
		Destinations: []driver.Destination{{Name: "A"}}, Mix: bodyOf("abc"),
	}
	g.MaxPending = 1
	p := &Plan{Allow: verify.Allow{Disorder: true}, Steps: []Step{{Name: OnlyStep, Groups: []*Group{g}}}}
	return &flat{p, &p.Steps[0], g, sender, reader}
}

func rate(t *testing.T, s string) Rate {
	t.Helper()
	r, err := load.ParseSchedule(s)
	require.NoError(t, err)
	return Rate{Schedule: r}
}

func TestValidPlans(t *testing.T) {
	require.NoError(t, valid().Validate())
	for name, change := range map[string]func(*flat){
		"producer has no consumer side": func(p *flat) { p.Role, p.ConsumerBroker, p.Consumers = Producer, nil, 0 },
		"consumer has no producer side": func(p *flat) { p.Role, p.ProducerBroker, p.Producers, p.Mix = Consumer, nil, 0, nil },
		"durable topic":                 func(p *flat) { p.Destinations[0].Kind, p.Durable, p.ClientID = driver.Topic, true, "x" },
		"durable shared needs no client ID": func(p *flat) {
			p.Destinations[0].Kind, p.Durable, p.Shared = driver.Topic, true, 2
		},
		"a producer may ignore --durable": func(p *flat) { p.Role, p.Durable = Producer, true },
		"password for the URL's user":     func(p *flat) { p.Producer.URL, p.Producer.Password = "able://u@h", "secret" },
		"tls":                             func(p *flat) { p.Role, p.Producer.URL, p.Producer.TLS.ServerName = Producer, "ables://h", "x" },
		"warm-up without an end":          func(p *flat) { p.Warmup = time.Hour },
		"limits":                          func(p *flat) { p.Mix[0].Priority, p.MaxPending, p.Producers = 9, UnlimitedPending, maxWorkers-1 },
	} {
		t.Run(name, func(t *testing.T) {
			p := valid()
			change(p)
			require.NoError(t, p.Validate())
		})
	}
}

func TestMistakes(t *testing.T) {
	topic := driver.Destination{Kind: driver.Topic, Name: "T"}
	for _, c := range []struct {
		name   string
		change func(*flat)
		want   string // the only mistake
		hint   string // part of it
	}{
		{"durable queue", func(p *flat) { p.Durable, p.ClientID = true, "x" }, "--durable needs a destination topic://NAME", "use a destination topic://NAME"},
		{
			"durable without client ID", func(p *flat) { p.Durable, p.Destinations = true, []driver.Destination{topic} },
			"Cannot create durable subscription - client ID has not been set", "--clientID PREFIX",
		},
		{"shared queue", func(p *flat) { p.Shared = 2 }, "--shared needs a destination topic://NAME", "use a destination topic://NAME"},
		{
			"shared on both", func(p *flat) { p.Shared, p.Destinations = 2, append(p.Destinations, topic) },
			"--shared does not work with queues and topics together", "leave one",
		},
		{
			"spread beyond the time-out", func(p *flat) {
				p.Reconnect, p.ReconnectSpread, p.ReconnectTimeout = true, time.Minute, time.Minute
			},
			"--reconnect-timeout must be longer than --reconnect-spread", "",
		},
		{
			"ramp beyond the end", func(p *flat) { p.RampWorkers, p.Steps[0].Duration = time.Minute, time.Minute },
			"--ramp-workers must be shorter than --duration", "",
		},
		{
			"ramp of a topic", func(p *flat) { p.RampWorkers, p.Destinations = time.Minute, []driver.Destination{topic} },
			"--ramp-workers: a consumer of a topic misses what came before it", "groups of producers",
		},
		{
			"ramp and skew", func(p *flat) {
				p.RampWorkers, p.Skew, p.Count, p.Destinations = time.Minute, 1, 5, append(p.Destinations, driver.Destination{Name: "R"})
			},
			"--ramp-workers does not work with --destination-skew", "leave one",
		},
		{"spread without reconnecting", func(p *flat) { p.ReconnectSpread = time.Minute }, "--reconnect-spread needs --reconnect", "--reconnect"},
		{"arrivals of no rate", func(p *flat) { p.Poisson = true }, "--arrivals poisson needs --rate", "--rate"},
		{
			"skew of nothing", func(p *flat) { p.Skew, p.Destinations = 1, append(p.Destinations, topic) },
			"--destination-skew needs --rate or --message-count", "--rate",
		},
		{
			"keys and a group", func(p *flat) { p.Keys, p.Mix[0].Group = 5, "g" },
			"--group-keys does not work with --group", "leave one",
		},
		{"reply-to of a client", func(p *flat) { p.ReplyTo = "queue://R" }, "--reply-to needs the role requester or service", "the role requester"},
		{"reply time-out of a client", func(p *flat) { p.ReplyTimeout = 1 }, "--reply-timeout needs the role requester or service", "the role requester"},
		{"reply size of a client", func(p *flat) { p.ReplySize = 1 }, "--reply-size needs the role responder or service", "the role responder"},
		{"requests in transactions", func(p *flat) { p.Role, p.CommitInterval = Service, 10 }, "--commit-interval does not work with requests", "leave one"},
		{"replies in transactions", func(p *flat) { p.Role, p.TransactionSize = Service, 10 }, "--tx does not work with replies", "leave one"},
		{"requests sent again", func(p *flat) { p.Role, p.Resend, p.Reconnect = Service, true, true }, "--in-doubt resend does not work with requests", "leave one"},
		{"skew of no keys", func(p *flat) { p.KeySkew = 1 }, "--group-skew needs --group-keys", "--group-keys"},
		{"skew of one", func(p *flat) { p.Skew, p.Count = 1, 5 }, "--destination-skew needs --num-destinations above 1", "--num-destinations"},
		{
			"a stream that is a queue", func(p *flat) { p.StreamOffset = "first" },
			"--stream-offset and --stream-filter: perfmq reads a stream as a topic, since each consumer gets all messages", "topic://NAME with -o declare=stream",
		},
		{"unfiltered what", func(p *flat) { p.StreamUnfiltered = true }, "--stream-unfiltered needs --stream-filter", "--stream-filter"},
		{"keep what", func(p *flat) { p.KeepSubscription = true }, "--keep-subscription needs --durable", "--durable"},
		{
			"warm-up too long", func(p *flat) { p.Warmup, p.Duration = 20*time.Second, 20*time.Second },
			"--warmup 20s leaves nothing to measure of --duration 20s", "--duration 40s",
		},
		{"too many", func(p *flat) { p.Producers = maxWorkers }, "there are 100001 producers and consumers, more than 100000", ""},
		{"time property", func(p *flat) { p.Mix[0].Properties = []driver.Property{{Key: "time"}} }, "--property time=... is taken: perfmq sets it on each message", "another key"},
		{
			"name servers", func(p *flat) { p.Hosts = Spread }, "--hosts spread: the hosts of a URL of Able 2.0 are name servers", "leave --hosts out",
		},
		{"password alone", func(p *flat) { p.Role, p.Producer.Password = Producer, "x" }, "--password needs --user", "--user"},
		{
			"tls without encryption", func(p *flat) { p.Role, p.Producer.TLS.CAFile = Producer, "ca.pem" },
			"--tls needs a --url with ables://", "ables://",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := valid()
			c.change(p)
			requireMistake(t, p.Validate(), c.want, c.hint)
		})
	}
}

func requireMistake(t *testing.T, err error, text, hint string) {
	t.Helper()
	require.EqualError(t, err, text)
	var m *Mistake
	require.ErrorAs(t, err, &m)
	require.Contains(t, m.Hint, hint)
}

func TestCapabilities(t *testing.T) {
	topic := []driver.Destination{{Kind: driver.Topic, Name: "T"}}
	for _, c := range []struct {
		without func(*driver.Capabilities)
		change  func(*flat)
		want    string
	}{
		{func(c *driver.Capabilities) { c.Queue.Exists = false }, func(*flat) {}, "Able 2.0 has no queues: queue://A"},
		{func(c *driver.Capabilities) { c.Topic.Exists = false }, func(p *flat) { p.Destinations = topic }, "Able 2.0 has no topics: topic://T"},
		{
			func(c *driver.Capabilities) { c.Topic.DurableSubscription = false },
			func(p *flat) { p.Destinations, p.Durable, p.ClientID = topic, true, "x" }, "--durable: Able 2.0 does not support that",
		},
		{
			func(c *driver.Capabilities) { c.Topic.SharedSubscription = false },
			func(p *flat) { p.Destinations, p.Shared = topic, 1 }, "--shared: Able 2.0 does not support that",
		},
		{func(c *driver.Capabilities) { c.Queue.RequestReply = false }, func(p *flat) { p.Role, p.ReplyTo = Requester, "queue://R" }, "the role requester: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.DynamicReply = false }, func(p *flat) { p.Role = Requester }, "dynamic reply addresses (give --reply-to): Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.Persistent = false }, func(p *flat) { p.Persistent = true }, "--persistent: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.TTL = false }, func(p *flat) { p.TTL = 1 }, "--ttl: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.Priority = false }, func(p *flat) { p.Mix[0].Priority = 0 }, "--priority: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.Group = false }, func(p *flat) { p.Keys = 5 }, "--group-keys: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.Group = false }, func(p *flat) { p.Mix[0].Group = "g" }, "--group: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.Selector = false }, func(p *flat) { p.Selector = "a=1" }, "--selector: Able 2.0 does not support that"},
		{
			func(c *driver.Capabilities) { c.Streams = false },
			func(p *flat) { p.Destinations, p.StreamOffset = topic, "next" }, "--stream-offset and --stream-filter: Able 2.0 does not support that",
		},
		{
			func(c *driver.Capabilities) { c.Streams = false },
			func(p *flat) { p.Destinations, p.Mix[0].FilterValue = topic, "red" }, "--stream-filter-value: Able 2.0 does not support that",
		},
		{func(c *driver.Capabilities) { c.Queue.Credit = false }, func(p *flat) { p.Credit = 1 }, "--credit: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.Transactions = false }, func(p *flat) { p.CommitInterval = 1 }, "--commit-interval: Able 2.0 does not support that"},
		{func(c *driver.Capabilities) { c.Queue.TransactedReceive = false }, func(p *flat) { p.TransactionSize = 1 }, "--tx: Able 2.0 does not support that"},
		{
			func(c *driver.Capabilities) { c.TLS = false },
			func(p *flat) { p.Producer.TLS.InsecureSkipVerify = true }, "--tls: Able 2.0 does not support that",
		},
	} {
		t.Run(c.want, func(t *testing.T) {
			p := valid()
			c.change(p)
			if !strings.HasPrefix(c.want, "--tls") { // which needs an encrypted URL, too
				require.NoError(t, p.Validate(), "with the capability")
			}
			c.without(&p.Producer.Factory.Capabilities)
			c.without(&p.Consumer.Factory.Capabilities)
			err := p.Validate()
			require.EqualError(t, err, c.want)
			var m *Mistake
			require.ErrorAs(t, err, &m)
			if strings.HasPrefix(c.want, "--tls") || !strings.HasPrefix(m.Hint, "leave --") {
				return
			}
			native := able().Capabilities
			p.Producer.Factory.Native, p.Consumer.Factory.Native = &native, &native
			hint := m.Hint
			require.ErrorAs(t, p.Validate(), &m)
			require.Equal(t, hint+", or use --client native", m.Hint)
			c.without(&native)
			require.ErrorAs(t, p.Validate(), &m)
			require.Equal(t, hint, m.Hint, "the native driver lacks it, too")
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	f := able()
	f.Check = func(driver.OpenOptions) error { return errors.Join(errors.New("one"), errors.New("two")) }
	p := valid()
	p.Producer.Factory, p.Consumer.Factory = f, f
	p.Durable = true
	require.Len(t, strings.Split(p.Validate().Error(), "\n"), 4, "the endpoint is checked once for both sides")
	p.Consumer.URL = "able://other"
	require.Len(t, strings.Split(p.Validate().Error(), "\n"), 6)
}

func TestDestinations(t *testing.T) {
	list, err := Destinations([]string{"queue://A", "topic://B", "C", "D::E"}, 1)
	require.NoError(t, err)
	require.Equal(t, []driver.Destination{{Name: "A"}, {Kind: driver.Topic, Name: "B"}, {Name: "C"}, {Name: "D::E"}}, list)

	list, err = Destinations([]string{"queue://PUB one", "topic://a  b"}, 2)
	require.NoError(t, err)
	require.Equal(t, []driver.Destination{
		{Name: "PUB one0"}, {Name: "PUB one1"}, {Kind: driver.Topic, Name: "a  b0"}, {Kind: driver.Topic, Name: "a  b1"},
	}, list)

	list, err = Destinations([]string{"A", "topic://B"}, 3)
	require.NoError(t, err)
	require.Equal(t, []driver.Destination{
		{Name: "A0"},
		{Name: "A1"},
		{Name: "A2"},
		{Kind: driver.Topic, Name: "B0"},
		{Kind: driver.Topic, Name: "B1"},
		{Kind: driver.Topic, Name: "B2"},
	}, list)

	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"queue://", 1, `destination "queue://" has no name`},
		{"que://A", 1, `destination "que://A": unknown kind "que", must be queue://NAME or topic://NAME`},
		{"a b", 1, `destination "a b" is not one name`},
		{"queue://a topic://b", 1, `destination "queue://a topic://b" is not one name`},
		{"queue://a ", 1, `destination "queue://a " is not one name`},
		{"topic:// a", 1, `destination "topic:// a" is not one name`},
		{" a", 1, `destination " a" is not one name`},
		{"queue://a\tb", 1, `destination "queue://a\tb": a name cannot have control characters or invalid UTF-8`},
		{"A::", 1, `destination "A::" is not one name`},
		{"::B", 1, `destination "::B" is not one name`},
		{"A::B", 2, "--num-destinations does not work with A::B"},
		{"A", maxDestinations + 1, "there are 100001 destinations, more than 100000"},
	} {
		_, err := Destinations([]string{c.name}, c.n)
		requireMistake(t, err, c.want, "")
	}

	list, err = Destinations([]string{"A", "queue://A", "A0", "x://"}, 1)
	require.ErrorContains(t, err, "destination queue://A is given twice\n")
	require.Len(t, list, 2, "what is right is returned")
	_, err = Destinations([]string{"A", "A"}, 2)
	require.EqualError(t, err, "destination queue://A0 is given twice\ndestination queue://A1 is given twice")
}

func TestURL(t *testing.T) {
	for _, c := range []struct{ url, scheme, redacted, user string }{
		{"amqp://h1:5672,h2:5672", "amqp", "amqp://h1:5672,h2:5672", ""},
		{"AMQP://u@h", "amqp", "AMQP://u@h", "u"},
		{"amqp://u:p@h1,h2/x?y=u:p@z", "amqp", "amqp://u@h1,h2/x?y=u:p@z", "u"},
		{"amqp://u:p@ss@h", "amqp", "amqp://u@h", "u"},
		{"amqp://u:p/w@h", "amqp", "amqp://u@h", "u"},
		{"amqp://a%40b:p@h", "amqp", "amqp://a%40b@h", "a@b"},
		{"u:p@h:1", "", "u@h:1", "u"},
		{"localhost:5672", "", "localhost:5672", ""},
		{"", "", "", ""},
	} {
		require.Equal(t, c.scheme, Scheme(c.url), c.url)
		require.Equal(t, c.redacted, RedactURL(c.url), c.url)
		require.Equal(t, c.user, User(c.url), c.url)
		require.Equal(t, c.user != "", HasUser(c.url), c.url)
	}
}

func TestNotes(t *testing.T) {
	p := valid()
	require.Empty(t, p.Notes())
	p.Producer.URL, p.Consumer.URL = "able://a:b@h", "able://c@h"
	require.Empty(t, p.Notes(), "the same broker")
	p.Consumer.URL = "able://other"
	require.Len(t, p.Notes(), 1)
	p.Role = Consumer
	require.Empty(t, p.Notes())
}

// listing is a plan with connections to each of the hosts.
func listing(hosts string) *flat {
	p := valid()
	for _, e := range []*endpoint{p.Producer, p.Consumer} {
		e.URL, e.Hosts = "able://"+hosts, strings.Split(hosts, ",")
		e.Factory.Hosts = func(string) []string { return e.Hosts }
	}
	return p
}

// TestHostOrder: connection i of each side begins with host i modulo their number, and workers that share a connection
// have its host.
func TestHostOrder(t *testing.T) {
	p := listing("a,b,c")
	p.Producers, p.Consumers, p.ConsumerConnections = 4, 5, 2
	for _, s := range p.ProducerSpecs("") {
		require.Nil(t, s.Connection.Order)
	}
	p.Hosts = Spread
	var got [][]int
	for _, s := range p.ProducerSpecs("") {
		got = append(got, s.Connection.Order)
	}
	require.Equal(t, [][]int{{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 1, 2}}, got)
	got = nil
	for _, s := range p.ConsumerSpecs("") {
		got = append(got, s.Connection.Order)
	}
	require.Equal(t, [][]int{{0, 1, 2}, {1, 2, 0}, {0, 1, 2}, {1, 2, 0}, {0, 1, 2}}, got)
}

// A step that is not the last must end by itself.
func TestStepsThatNeverEnd(t *testing.T) {
	senders := func(edit func(*Group)) *Group {
		g := valid().Group
		g.Role, g.Name, g.ConsumerBroker = Producer, "senders", nil
		if edit != nil {
			edit(g)
		}
		return g
	}
	readers := valid().Group
	readers.Role, readers.Name, readers.ProducerBroker = Consumer, "readers", nil
	counting := *readers
	counting.Count = 5
	for _, c := range []struct {
		name string
		step Step
		ends bool
	}{
		{"closed loop", Step{Groups: []*Group{senders(nil)}}, false},
		{"duration", Step{Groups: []*Group{senders(nil)}, Duration: time.Second}, true},
		{"count", Step{Groups: []*Group{senders(func(g *Group) { g.Count = 5 })}}, true},
		{"one of two counts", Step{Groups: []*Group{senders(func(g *Group) { g.Count = 5 }), senders(nil)}}, false},
		{"rate", Step{Groups: []*Group{senders(func(g *Group) { g.Rate = rate(t, "5") })}}, false},
		{"rate that ends", Step{Groups: []*Group{senders(func(g *Group) { g.Rate = rate(t, "5 for 9s") })}}, true},
		{"drained, with producers", Step{Groups: []*Group{senders(nil), readers}, Drained: true}, false},
		{"drained", Step{Groups: []*Group{readers}, Drained: true}, true},
		{"consumers", Step{Groups: []*Group{readers}}, false},
		{"counting consumers", Step{Groups: []*Group{&counting}}, true},
	} {
		c.step.Name = "first"
		p := &Plan{Allow: verify.Allow{Disorder: true}, Steps: []Step{c.step, {Name: "last", Groups: []*Group{readers}}}}
		if err := p.Validate(ables(nil)); c.ends {
			require.NoError(t, err, c.name)
		} else {
			requireMistake(t, err, "step first never ends", "duration")
		}
		p.Steps = p.Steps[:1]
		require.NoError(t, p.Validate(ables(nil)), "the last one may")
	}
}
