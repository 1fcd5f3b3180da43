// Package plan holds the resolved description of a run.
//
// A [Plan] is data. Files, variables and flags fill it in by the tags of its fields (see [Rows]), [Plan.Validate] finds
// everything that is wrong with it, [YAML] writes it as a scenario that perfmq run carries out, and the engine
// carries it out without looking at a flag again.
package plan

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/threshold"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/pkg/driver"
)

// Role is which side of the broker this process takes.
type Role string

// The roles, by the names of their commands.
const (
	Client   Role = "client"   // produces and consumes
	Producer Role = "producer" // only produces
	Consumer Role = "consumer" // only consumes

	Requester Role = "requester" // a producer of requests, which receives their replies
	Responder Role = "responder" // a consumer that answers
	Service   Role = "service"   // both
)

// Side returns the role without requests and replies: Client, Producer or Consumer.
func (r Role) Side() Role {
	switch r {
	case Requester:
		return Producer
	case Responder:
		return Consumer
	case Service:
		return Client
	default:
		return r
	}
}

// Produces reports whether the role sends; replies do not count.
func (r Role) Produces() bool { return r.Side() == Client || r.Side() == Producer }

// Consumes reports whether the role receives; replies do not count.
func (r Role) Consumes() bool { return r.Side() == Client || r.Side() == Consumer }

// has reports whether another role is a part of the role, or the role itself.
func (r Role) has(part Role) bool {
	return r == part || part == Producer && r.Produces() || part == Consumer && r.Consumes() ||
		part == Requester && r.Requests() || part == Responder && r.Responds()
}

// Requests reports whether the role sends requests.
func (r Role) Requests() bool { return r == Requester || r == Service }

// Responds reports whether the role answers what it receives.
func (r Role) Responds() bool { return r == Responder || r == Service }

// UnlimitedPending is the number of messages in flight that a producer may reach when the user asked for no limit.
const UnlimitedPending = 1 << 20

// Broker is a broker as the run reaches it.
type Broker struct {
	// Name is the name of the broker in its scenario; empty on a command line.
	Name string
	// Site names the broker, or the brokers that pass messages on to each other, on which a destination is one and the
	// same; empty if the run has only one.
	Site string `set:"site,key" section:"Broker" arg:"NAME" check:"filled" none:"the host of url" help:"name of the site; its brokers share each destination"`

	driver.OpenOptions
	Protocol     string `set:"protocol,command" section:"Broker" arg:"NAME" none:"that of the command, or of the URL" help:"the protocol; must agree with the command"`
	PasswordFile string `set:"password-file" arg:"FILE" help:"file with the password in its first line"`
	// Management is the URL of the broker's management over HTTP, the source of the broker's own counts.
	Management string `set:"management-url" arg:"URL" check:"management" help:"Jolokia or RabbitMQ's management plugin, for the broker's own counts"`
	// Client is the implementation of the protocol: [driver.Native], or the name of a client library.
	Client string `set:"client" arg:"NAME" default:"native" check:"filled" help:"native (perfmq's own) or library (a client library)"`

	// Assigned are the options of the protocol that were given, KEY=VALUE; Options has all of them.
	Assigned []string `set:"option,short=o,pairs" section:"" arg:"KEY=VALUE" check:"pair" help:"option of the protocol; may be repeated"`
	// Hosts are the hosts of the URL to which connections go, as host:port; nil if connections have no choice among them,
	// as with RocketMQ's name servers.
	Hosts []string
}

// Drivers finds the driver of a broker by its protocol and client.
type Drivers func(*Broker) *driver.Factory

// Same reports whether both are one broker, reached in one way, so that they may share connections.
func (b *Broker) Same(o *Broker) bool {
	return b.Name == o.Name && b.Protocol == o.Protocol && b.Client == o.Client && b.URL == o.URL
}

// Plan is everything that a run needs to know: the settings of the whole run, and its steps.
type Plan struct {
	// Name is the name of the scenario; empty for a command line.
	Name string
	// Labels are free texts of the user's, such as the broker's version, for the outputs.
	Labels map[string]string `set:"label,shape" section:"Output" arg:"NAME=TEXT" help:"note in all outputs, such as heap=512m; may be repeated"`

	WaitForBroker time.Duration `set:"wait-for-broker" section:"Broker" default:"0s" help:"time to retry an unreachable broker"`
	// BrokerCount compares the run with the counts of its brokers, where they can be asked.
	BrokerCount bool `set:"broker-count" words:"off,auto" default:"auto" help:"compare the run with the broker's own counts: auto or off"`
	// Embedded starts a broker in the process for each site, and Faults are its faults.
	Embedded bool   `set:"embedded,daily" help:"use a broker inside this process, which measures perfmq itself"`
	Faults   string `set:"embedded-faults" needs:"embedded" arg:"LIST" check:"faults" help:"with --embedded: faults such as lose=1000,delay=5ms; see perfmq broker --help"`
	// Threads bounds the operating system threads that run load at once.
	Threads int `set:"threads" section:"Destinations and workers" range:"1..1024" none:"all processors" help:"threads of the load; with --shared-connections also their number, 1 by default"`
	// DrainTimeout bounds the wait for completions and deliveries after the load.
	DrainTimeout time.Duration `set:"drain-timeout" section:"Load" default:"30s" help:"time limit for messages in flight at the end"`
	// Verify lets messages carry numbers and checksums, and checks the messages received against the messages sent.
	Verify bool `set:"verify,daily" section:"Verification" help:"check that each message arrives once and undamaged; numbers all messages"`
	// VerifyWindow is how long a completed message may take to arrive before it is lost; 0 for until the end of the run.
	VerifyWindow time.Duration `set:"verify-window" default:"0s" least:"0|1s" help:"as --verify, and count a message as lost once it has not come for this long; 0: at the end"`
	// Allow says which findings of the verification do not make the run a failure.
	Allow verify.Allow
	// TraceSample is the share of the messages whose events are written into the folder of the result.
	TraceSample load.Sample `set:"trace-sample" section:"Output" arg:"1/N" none:"no trace" help:"write when one of N messages was due, sent, completed, received and settled; needs --result"`
	// Shard is the part of the run that this process has.
	Shard Shard `set:"shard,flag" section:"Several load hosts" arg:"NUMBER/COUNT" help:"run shard NUMBER of COUNT, such as 2/5; COUNT alone takes the number from JOB_COMPLETION_INDEX"`
	// Seed decides random arrivals, the order of sizes, and fields of bodies; 0 for one that DrawSeed chooses.
	Seed uint64 `set:"seed" section:"Load" range:"1.." none:"random, in plan.yaml" help:"seed of random numbers"`
	// Thresholds are thresholds on the metrics of the run.
	Thresholds []threshold.Threshold `set:"threshold,shape,daily" section:"Output" arg:"DEMAND" help:"METRIC OP VALUE, such as 'ack.p99 < 50ms'; else exit status 3. May be repeated; see perfmq scenario metrics"`
	// StallThreshold is the length from which on a time without answers or deliveries is a stall; 0 for none.
	StallThreshold time.Duration `set:"stall-threshold" default:"1s" least:"0|200ms" help:"report a stall when the broker confirms and delivers nothing for this time; 0: none"`

	// Steps are carried out one after the other. There is one at least; a command line is a plan of one step.
	Steps []Step

	// Environ are further variables for commands: NAME=VALUE.
	Environ []string
	// VerifyFile is where this process' side of the verification is written; empty for nowhere.
	VerifyFile string
	// RunID is the number that the messages carry; 0 for one that no other run has.
	RunID int64
	// Met: the shards meet at a rendezvous, which gives RunID and StartAt and judges the thresholds.
	Met bool
	// StartAt is when the load of the first step begins, by the wall clock; the zero time for as soon as all workers are
	// open.
	StartAt time.Time
	// FakeClock is for tests in a bubble of testing/synctest: producers sleep by the Go runtime's timers alone, which wake
	// up to 1 ms late, where otherwise the kernel's are used if there are any, and the use of the machine, which passes in
	// real time, is not measured.
	FakeClock bool
	// ClockShift is an assumed lead of this process's wall clock, for tests with different clocks.
	ClockShift time.Duration
}

// Split reports whether another process judges the verification, as this one does not have both sides of its messages.
func (p *Plan) Split() bool { return p.VerifyWindow > 0 && (p.Roles() != Client || p.Shard.Of > 1) }

// Unjudged returns the plan without its thresholds.
func (p *Plan) Unjudged() *Plan {
	c := *p
	c.Thresholds, c.Steps = nil, slices.Clone(p.Steps)
	for i := range c.Steps {
		c.Steps[i].Thresholds = nil
	}
	return &c
}

// Step is a part of a run: groups that work side by side until something ends it.
type Step struct {
	// Name is the name of the step; [OnlyStep] on a command line.
	Name string
	// Duration bounds the load, warm-up included; 0 means no limit.
	Duration time.Duration `set:"duration,daily" section:"Load" none:"no limit" help:"length of the load, warm-up included"`
	// Warmup is the first part of the load; its latencies do not enter the summary.
	Warmup time.Duration `set:"warmup,daily" default:"0s" help:"first part of the load, left out of latencies"`
	// Drained lets the step end only when the messages of the run that its consumers are to receive have come. The last
	// step of a run always does. A step without producers and without a duration ends when that is so.
	Drained bool
	// Marks are numbers of messages, in ascending order, at which the rate is noted: of completed ones, or, without
	// producers, received.
	Marks []uint64 `set:"marks" arg:"N,N..." join:"," help:"report the rate at so many completed messages, such as 100k,500k,1M; without producers, received"`
	// Groups work side by side. A group of the same name in the step before continues with its connections and
	// subscriptions if only its load changes.
	Groups []*Group
	// Thresholds are thresholds on the metrics of the step.
	Thresholds []threshold.Threshold
	// Before and After are commands for the shell, which run before the groups of the step are opened and after it has
	// ended.
	Before, After []string
}

// The names of an only step and an only broker.
const (
	OnlyStep   = "load"   // the step of a command line, or of a scenario without steps
	OnlyBroker = "broker" // the broker of a scenario without brokers
)

// DrawSeed sets the seed of a plan with random arrivals, sizes, bodies or keys that has none, for all shards the same.
func (p *Plan) DrawSeed() {
	switch {
	case p.Seed > 0 || !p.any((*Group).random):
	case p.RunID > 0 && !p.Shard.IsZero():
		p.Seed = uint64(p.RunID)
	default:
		p.Seed = 1 + rand.Uint64N(1e9) //nolint:gosec // no secret
	}
}

// random reports whether random numbers decide something.
func (g *Group) random() bool {
	return g.Poisson || g.Rate.Random() || g.Keys > 0 || g.law() != "" || g.Templates() != nil ||
		g.ReconnectSpread > 0
}

// Rated reports whether any messages of the plan have intended times.
func (p *Plan) Rated() bool {
	return p.any(func(g *Group) bool { return g.Role.Produces() && g.Rated() })
}

// Group are producers or consumers, or as many of both as a client command has, with one setting.
type Group struct {
	// Name is the name of the group; empty on a command line.
	Name string
	Role Role
	// ProducerBroker and ConsumerBroker are the brokers of both sides; nil for a side that the role does not have. The
	// broker of connections is ProducerBroker.
	ProducerBroker, ConsumerBroker *Broker
	// Destinations are the final names, after --num-destinations has been applied.
	Destinations []driver.Destination

	// ClientID is the prefix of the connections' client identifiers; empty for none.
	ClientID string `set:"clientID,alias=client-id" roles:"all" section:"Broker" arg:"PREFIX" help:"prefix of the connections' client IDs; each adds an index"`
	// Hosts is the order in which connections try the hosts of a URL; empty is [InOrder].
	Hosts HostOrder `set:"hosts" roles:"all" words:"order,spread" default:"order" help:"hosts of the URL: order, in their order; spread, from the next host for each connection"`
	// LocalAddress has the addresses of this machine from which the workers connect, in turn; empty leaves them to the
	// system.
	LocalAddress string `set:"local-address" roles:"all" arg:"LIST" check:"local" none:"the system's" help:"addresses of this machine to connect from, in turn: 127.0.0.2-127.0.0.9; each has 28,000 ports to one of the broker"`
	// Reconnect opens a connection again that was lost, instead of ending the run.
	Reconnect bool `set:"reconnect,daily" help:"reconnect a lost connection, which else ends the run"`
	// ReconnectTimeout bounds the time until a lost connection is there again; 0 for none.
	ReconnectTimeout time.Duration `set:"reconnect-timeout" needs:"reconnect" default:"0s" help:"with --reconnect: end the run when a connection is lost for this time; 0: never"`
	// ReconnectDelay is the longest of the pauses before a lost connection is opened again; 0 is the default.
	ReconnectDelay time.Duration `set:"reconnect-delay" needs:"reconnect" least:"1ms" none:"250ms" help:"with --reconnect: longest pause between attempts at a host"`
	// ReconnectSpread is the time within which the workers reconnect, each at a random moment, once their host is back.
	ReconnectSpread time.Duration `set:"reconnect-spread" needs:"reconnect" default:"0s" help:"with --reconnect: time in which workers reconnect after the broker is back, each at a random moment; 0: at once"`
	// Producers and Consumers are per destination; with Shared > 0, Consumers is per destination and subscription.
	Producers int `set:"producers,daily" roles:"producer" section:"Destinations and workers" range:"1.." default:"1" help:"producers per destination"`
	Consumers int `set:"consumers,daily" roles:"consumer" range:"1.." default:"1" help:"consumers per destination, or shared subscription"`
	// SharedConnections lets all producers share ProducerConnections connections; otherwise each has its own.
	SharedConnections   bool `set:"shared-connections" roles:"producer" help:"share --threads connections between producers (else one each)"`
	ProducerConnections int
	// ConsumerConnections is the number of connections for all consumers; 0 means one each.
	ConsumerConnections int `set:"consumer-connections,alias=num-connections" roles:"consumer" none:"one per consumer" help:"connections of all consumers"`

	// RampWorkers is the time over which the workers open, evenly, from the start of the load. Each begins its load
	// when it is due to open: the schedule of a producer is shifted by that.
	RampWorkers time.Duration `set:"ramp-workers" default:"0s" help:"open the workers evenly over this time of the load, each with its share of rate and count; 0: before the load"`

	// NumDestinations is the number of Destinations of each name.
	NumDestinations int `set:"num-destinations,made" roles:"all" range:"1.." default:"1" help:"destinations per name: above 1, 0 to N-1 is added to it"`

	// Rate is the target of all producers together; the zero value means as fast as possible.
	Rate Rate `set:"rate,relative,daily" roles:"producer,connections" section:"Load" arg:"N" join:", " none:"as fast as possible" help:"messages per second of all producers (connections: openings), such as 30k or 0.5; or segments, such as 'ramp 0 to 5000 for 60s, pause 10s'"`
	// Poisson makes arrivals random, but in segments of the rate that say even.
	Poisson bool `set:"arrivals" roles:"producer" words:"even,poisson" default:"even" help:"even, or poisson (random)"`
	// Skew divides the rate and the count among the destinations; the zero value gives them equal shares.
	Skew load.Zipf `set:"destination-skew" roles:"producer" arg:"zipf:S" help:"weight of the k-th destination: 1/k^S"`
	// Count is the total of messages to send (or, for a consumer, to receive); 0 means no limit.
	Count uint64 `set:"message-count,daily" none:"no limit" help:"exact number of messages to send; of a consumer, to receive (several consumers may receive some more)"`
	// Resend sends messages again that ended without an answer, with the same number.
	Resend bool `set:"in-doubt" roles:"producer" words:"report,resend" default:"report" help:"messages without an answer: report, or resend until confirmed (with --reconnect or --send-timeout)"`
	// ProducerSpec and ConsumerSpec are the driver's part of the settings: all but what tells workers apart. MaxPending 0
	// means [UnlimitedPending].
	// Opening is the load of a group of connections.
	Opening

	driver.ProducerSpec
	// ReplyTo is the destination of the replies to all requests; empty for a dynamic queue of each requester.
	ReplyTo string `set:"reply-to" roles:"requester" arg:"DESTINATION" check:"destination" none:"a dynamic queue of each" help:"queue of the replies to all requesters, told apart by correlation ID"`
	// KeySkew has the weights of the group keys; the zero value is equal ones.
	KeySkew load.Zipf `set:"group-skew" needs:"group-keys" roles:"producer" arg:"zipf:S" help:"weight of key k: 1/k^S"`
	// Mix are the kinds of messages of producers, one at least.
	Mix []Variant

	driver.ConsumerSpec
	// Shared is the number of shared subscriptions per topic, 0 for none.
	Shared int `set:"shared" roles:"consumer" section:"Consumer" default:"0" help:"shared subscriptions per topic, each with --consumers"`
	// ConsumerWork is the simulated work on each message before its settlement, and ConsumerRate the most that all
	// consumers together receive per second; the zero values are none.
	ConsumerWork load.Work `set:"consumer-work,alias=work" roles:"consumer" arg:"TIME" help:"work of a consumer per message: 2ms, or exp:2ms (exponential)"`
	ConsumerRate load.Rate `set:"consumer-rate" roles:"consumer" arg:"N" none:"as fast as possible" help:"limit of messages per second for all consumers"`
	// ReplySize is the size of the bodies of replies.
	ReplySize int `set:"reply-size" roles:"responder" arg:"SIZE" unit:"bytes" range:"0.." default:"1024" help:"size of the body of each reply"`
	// ConsumerFail is the share of the deliveries that consumers do not accept, on purpose, but treat as Failing says:
	// reject or release.
	ConsumerFail load.Share `set:"consumer-fail" roles:"consumer" arg:"PERCENT" none:"0%" help:"share of deliveries that consumers refuse, such as 0.25%"`

	// Tx lets consumers receive in transactions, and MaxMessageSize bounds their messages.
	Tx             bool `set:"tx,made" roles:"consumer" help:"receive in transactions"`
	MaxMessageSize int  `set:"max-message-size,made" roles:"consumer" arg:"SIZE" unit:"bytes" range:"1.." default:"16MiB" help:"largest message to receive, unless the run sends larger ones"`
}

// Rate is when messages are sent: by a schedule, or, if Relative is not nil, at a share of a rate that an earlier step
// reached.
type Rate struct {
	load.Schedule
	Relative *Relative
}

// String returns the rate in the form that the setting takes; empty for as fast as possible.
func (r Rate) String() string {
	if r.Relative != nil {
		return r.Relative.String()
	}
	return r.Schedule.String()
}

// Pending returns the number of slots of each producer.
func (g *Group) Pending() int {
	if g.MaxPending == 0 {
		return UnlimitedPending
	}
	return max(g.MaxPending, g.CommitInterval)
}

// SameBroker reports whether both sides of the group are at one broker.
func (g *Group) SameBroker() bool { return g.ProducerBroker.Same(g.ConsumerBroker) }

// Groups returns the groups of all steps, each as the first step that names it has it.
func (p *Plan) Groups() (list []*Group) {
	for _, g := range p.uses() {
		if !slices.ContainsFunc(list, func(o *Group) bool { return o.Name == g.Name }) {
			list = append(list, g)
		}
	}
	return list
}

// Brokers returns the brokers of all groups.
func (p *Plan) Brokers() (list []*Broker) {
	for _, g := range p.uses() {
		for _, b := range g.Sides() {
			if !slices.Contains(list, b) {
				list = append(list, b)
			}
		}
	}
	return list
}

// Brokers returns the brokers of the group's role, each once.
func (g *Group) Brokers() []*Broker {
	list := g.Sides()
	if len(list) > 1 && g.SameBroker() {
		return list[:1]
	}
	return list
}

// Sides returns the brokers of both sides that the group has, also if they are the same.
func (g *Group) Sides() (list []*Broker) {
	if g.Role.Produces() || g.Role == Connections {
		list = append(list, g.ProducerBroker)
	}
	if g.Role.Consumes() {
		list = append(list, g.ConsumerBroker)
	}
	return list
}
