// Package plan holds the resolved description of a run, merged from the flags, the environment and the defaults.
//
// A [Plan] is data. The command line or a scenario fills it in, [Plan.Validate] finds everything that is wrong with it,
// --dry-run prints it, and the engine carries it out without looking at a flag again.
package plan

import (
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
)

// Produces tells whether the role sends.
func (r Role) Produces() bool { return r != Consumer }

// Consumes tells whether the role receives.
func (r Role) Consumes() bool { return r != Producer }

// UnlimitedPending is the number of messages in flight that a producer may reach when the user asked for no limit.
const UnlimitedPending = 1 << 20

// Broker is a broker as the run reaches it.
type Broker struct {
	// Name is the name of the broker in its scenario; empty for that of a command line.
	Name string
	// Site names the broker, or the brokers that pass messages on to each other, on which a destination is one and the
	// same; empty if the run has only one.
	Site string
	// Protocol is the name of the protocol, and Client that of its implementation: [driver.Native], or a client library.
	Protocol, Client string
	driver.OpenOptions
	// Hosts are the hosts of the URL to which connections go, as host:port; nil if connections have no choice among them,
	// as with RocketMQ's name servers.
	Hosts []string
	// Given is the URL that the user gave, fit for printing, if URL was made of it: a failover URL. Else it is empty.
	Given string
	// Management is the URL of the broker's management over HTTP, by which it is asked for its own counts; empty if it has
	// none.
	Management string
}

// Drivers finds the driver of a broker by its protocol and client.
type Drivers func(*Broker) *driver.Factory

// Shown returns the URL, fit for printing.
func (b *Broker) Shown() string {
	if b.Given != "" {
		return b.Given
	}
	return RedactURL(b.URL)
}

// Same tells whether both are one broker, reached in one way, so that they may share connections.
func (b *Broker) Same(o *Broker) bool {
	return b.Name == o.Name && b.Protocol == o.Protocol && b.Client == o.Client && b.URL == o.URL
}

// title is the protocol, and the client library if it is one.
func title(f *driver.Factory) string {
	if f.Client == "" || f.Client == driver.Native {
		return f.Title
	}
	return f.Title + " over " + f.Client
}

// DefaultStall is the usual [Plan.StallThreshold].
const DefaultStall = time.Second

// Plan is everything that a run needs to know: the settings of the whole run, and its steps.
type Plan struct {
	// Name is the name of the scenario; empty for a command line.
	Name string
	// Labels are free texts of the user's, such as the broker's version, for the outputs.
	Labels map[string]string
	// Environ are variables that commands get beside those of the process and the labels: NAME=VALUE.
	Environ []string
	// Threads bounds the operating system threads that run load at once; 0 means one per processor.
	Threads int
	// DrainTimeout bounds the wait for completions and deliveries after the load.
	DrainTimeout time.Duration
	// StallThreshold is the length from which on a time without answers or deliveries is a stall; 0 for none. It is not
	// below [stats.PauseLimit].
	StallThreshold time.Duration
	// WaitForBroker is for how long a broker that cannot be reached is tried again; 0 for not at all.
	WaitForBroker time.Duration
	// FakeClock is for tests in a bubble of testing/synctest: producers sleep by the Go runtime's timers alone, which wake
	// up to 1 ms late, where otherwise the kernel's are used if there are any, and the use of the machine, which passes in
	// real time, is not measured.
	FakeClock bool
	// Verify lets messages carry numbers and checksums, and checks the messages received against the messages sent.
	Verify bool
	// VerifyFile is where this process' side of the verification is written; empty for nowhere.
	VerifyFile string
	// BrokerCount holds the run against the counts of its brokers, where they can be asked.
	BrokerCount bool
	// Allow says which findings of the verification do not make the run a failure.
	Allow verify.Allow
	// FailOnForeign makes messages of another run or tool a failure.
	FailOnForeign bool
	// Thresholds are demands on the figures of the run.
	Thresholds []threshold.Threshold
	// Shard is the part of the run that this process has.
	Shard Shard
	// RunID is the number that the messages carry; 0 for one that no other run has.
	RunID int64
	// StartAt is when the load of the first step begins, by the wall clock; the zero time for as soon as all workers are
	// open.
	StartAt time.Time
	// ClockShift is by how much the wall clock of this process is taken to be ahead, for tests of clocks that differ.
	ClockShift time.Duration
	// Steps are carried out one after the other. There is one at least; a command line is a plan of one step.
	Steps []Step
}

// Step is a part of a run: groups that work side by side until something ends it.
type Step struct {
	// Name is the name of the step; [OnlyStep] for that of a command line.
	Name string
	// Duration bounds the load, warm-up included; 0 means no limit.
	Duration time.Duration
	// Warmup is the first part of the load, whose latencies do not enter the summary.
	Warmup time.Duration
	// Drained lets the step end only when the messages of the run that its consumers are to receive have come. The last
	// step of a run always does. A step without producers and without a duration ends when that is so.
	Drained bool
	// Idle ends the load when the consumers of the step have received nothing for that long; 0 does not. Its producers may
	// have sent all that they are to send before.
	Idle time.Duration
	// Marks are numbers of messages, in ascending order, at which the rate is noted: of completed ones, or, without
	// producers, received.
	Marks []uint64
	// Groups work side by side. A group of the same name in the step before goes on with its connections and
	// subscriptions, if nothing but its load is different.
	Groups []*Group
	// Thresholds are demands on the figures of the step.
	Thresholds []threshold.Threshold
	// Before and After are commands for the shell, which run before the groups of the step are opened and after it has
	// ended.
	Before, After []string
}

// OnlyStep is the name of the step of a command line.
const OnlyStep = "load"

// Rated tells whether any messages of the plan have intended times.
func (p *Plan) Rated() bool {
	return p.any(func(g *Group) bool { return g.Role.Produces() && g.Rated() })
}

// Group are producers or consumers, or as many of both as a client command has, with one setting.
type Group struct {
	// Name is the name of the group; empty for that of a command line.
	Name string
	Role Role
	// ProducerBroker and ConsumerBroker are the brokers of both sides; nil for a side that the role does not have.
	ProducerBroker, ConsumerBroker *Broker
	// ProducerSpec and ConsumerSpec are the driver's part of the settings: all but what tells workers apart. MaxPending 0
	// means [UnlimitedPending].
	driver.ProducerSpec
	driver.ConsumerSpec

	// Destinations are the final names, after --num-destinations has been applied.
	Destinations []driver.Destination
	// Producers and Consumers are per destination; with Shared > 0, Consumers is per destination and subscription.
	Producers, Consumers int
	// Shared is the number of shared subscriptions per topic, 0 for none.
	Shared int
	// SharedConnections lets all producers share ProducerConnections connections; otherwise each has its own.
	SharedConnections   bool
	ProducerConnections int
	// ConsumerConnections is the number of connections for all consumers; 0 means one each.
	ConsumerConnections int
	// ClientID is the prefix of the connections' client identifiers; empty for none.
	ClientID string
	// Backoff are the pauses before a lost connection is opened again; the zero value is [Probing] with ReconnectDelay.
	Backoff Backoff
	// ReconnectDelay is the longest of these pauses; 0 is the default, or that of Backoff.
	ReconnectDelay time.Duration
	// Hosts is the order in which connections try the hosts of a URL; empty is [InOrder].
	Hosts HostOrder
	// Reconnect opens a connection again that was lost, instead of ending the run.
	Reconnect bool
	// ReconnectTimeout bounds the time until a lost connection is there again; 0 for none.
	ReconnectTimeout time.Duration
	// Resend sends messages again that ended without an answer, with the same number.
	Resend bool

	// Rate is the target of all producers together; the zero value means as fast as possible.
	Rate Rate
	// Count is the total of messages to send (or, for a consumer, to receive); 0 means no limit.
	Count uint64

	// Mix are the kinds of messages of producers, one at least.
	Mix []Variant

	// ConsumerWork is the simulated work on each message before its settlement, and ConsumerRate the most that all
	// consumers together receive per second; the zero values are none.
	ConsumerWork load.Work
	ConsumerRate load.Rate
	// ConsumerFail is the share of the deliveries that consumers do not accept, on purpose, but treat as Failing says:
	// reject or release.
	ConsumerFail load.Share
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

// SameBroker tells whether both sides of the group are at one broker.
func (g *Group) SameBroker() bool { return g.ProducerBroker.Same(g.ConsumerBroker) }

// Brokers returns the brokers of all groups.
func (p *Plan) Brokers() (list []*Broker) {
	for i := range p.Steps {
		for _, g := range p.Steps[i].Groups {
			for _, b := range g.Sides() {
				if !slices.Contains(list, b) {
					list = append(list, b)
				}
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
	if g.Role.Produces() {
		list = append(list, g.ProducerBroker)
	}
	if g.Role.Consumes() {
		list = append(list, g.ConsumerBroker)
	}
	return list
}
