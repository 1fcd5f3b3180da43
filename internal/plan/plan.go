// Package plan holds the resolved description of a run: what the flags, the environment and the defaults came to.
//
// A [Plan] is data. The command line fills it in, [Plan.Validate] finds everything that is wrong with it, --dry-run
// prints it, and the engine carries it out without looking at a flag again.
package plan

import (
	"fmt"
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

// Endpoint is a broker as one side of the run reaches it.
type Endpoint struct {
	Factory driver.Factory
	Open    driver.OpenOptions
}

// Client returns what speaks the protocol: [driver.Native], or the name of a client library.
func (e *Endpoint) Client() string {
	if e.Factory.Client == "" {
		return driver.Native
	}
	return e.Factory.Client
}

// title is the protocol, and the client library if it is one.
func title(f *driver.Factory) string {
	if f.Client == "" || f.Client == driver.Native {
		return f.Title
	}
	return f.Title + " over " + f.Client
}

// Plan is everything that a run needs to know.
type Plan struct {
	Role               Role
	Producer, Consumer Endpoint // only the side that the role has is set

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
	// Threads bounds the operating system threads that run load at once; 0 means one per processor.
	Threads int

	// MaxPending is the number of messages in flight per producer; 0 means UnlimitedPending.
	MaxPending int
	// Rate is the target of all producers together; the zero value means as fast as possible.
	Rate load.Rate
	// CoarseTimers makes producers sleep by the Go runtime's timers alone, which wake up to 1 ms late, where otherwise
	// the kernel's are used if there are any. Tests with a fake clock need it.
	CoarseTimers bool
	// Count is the total of messages to send (or, for a consumer, to receive); 0 means no limit.
	Count uint64
	// Duration bounds the load, warm-up included; 0 means no limit.
	Duration time.Duration
	// Warmup is the first part of the load, whose latencies do not enter the summary.
	Warmup time.Duration
	// DrainTimeout bounds the wait for completions and deliveries after the load.
	DrainTimeout time.Duration

	// Verify lets messages carry numbers and checksums, and checks what arrives against what was sent.
	Verify bool
	// VerifyFile is where this process' side of the verification is written; empty for nowhere.
	VerifyFile string
	// Allow says which findings of the verification do not make the run a failure.
	Allow verify.Allow

	// Thresholds are demands on the figures of the run.
	Thresholds []threshold.Threshold

	// Body is the payload of every message.
	Body []byte
	// BodySource says where Body is from, for the printed plan: "1024 bytes" or a file name.
	BodySource     string
	Persistent     bool
	TTL            time.Duration
	Priority       int // 0 to 9, -1 for the protocol's default
	Group          string
	Properties     []driver.Property
	CommitInterval int

	Durable          bool
	KeepSubscription bool
	Selector         string
	Credit           int // 0 for the driver's default
	Transacted       bool
	// ConsumerWork is what consumers do with each message before they settle it, and ConsumerRate what all consumers together
	// receive at most per second; the zero values are none.
	ConsumerWork    load.Work
	ConsumerRate    load.Rate
	TransactionSize int // messages per transaction with Transacted; 0 is 1
}

// Pending returns the number of slots of each producer: at least as many as a transaction has messages, since those
// end together.
func (p *Plan) Pending() int {
	if p.MaxPending == 0 {
		return UnlimitedPending
	}
	return max(p.MaxPending, p.CommitInterval)
}

// ProducerSpecs returns what each producer of the run is opened with. Producers of different destinations alternate, so
// that a rate is spread over the destinations evenly.
func (p *Plan) ProducerSpecs(process string) []driver.ProducerSpec {
	if !p.Role.Produces() {
		return nil
	}
	total := p.Producers * len(p.Destinations)
	variants := []driver.Variant{{Body: p.Body, Priority: p.Priority, Group: p.Group, Properties: p.Properties}}
	specs := make([]driver.ProducerSpec, 0, total)
	for i := range total {
		conn := i
		if p.SharedConnections {
			conn = i % p.ProducerConnections
		}
		specs = append(specs, driver.ProducerSpec{
			Connection:     p.connection("producer", conn, process),
			Destination:    p.Destinations[i%len(p.Destinations)],
			Name:           fmt.Sprintf("producer-%d", i),
			MaxPending:     p.Pending(),
			Persistent:     p.Persistent,
			TTL:            p.TTL,
			Variants:       variants,
			CommitInterval: p.CommitInterval,
		})
	}
	return specs
}

// ConsumerSpecs returns what each consumer of the run is opened with.
func (p *Plan) ConsumerSpecs(process string) []driver.ConsumerSpec {
	if !p.Role.Consumes() {
		return nil
	}
	groups := max(p.Shared, 1)
	var specs []driver.ConsumerSpec
	for _, dest := range p.Destinations {
		for g := range groups {
			for range p.Consumers {
				specs = append(specs, p.consumerSpec(len(specs), g, dest, process))
			}
		}
	}
	return specs
}

func (p *Plan) consumerSpec(i, group int, dest driver.Destination, process string) driver.ConsumerSpec {
	conn := i
	switch {
	case p.Shared > 0 && p.ClientID != "":
		// A shared subscription belongs to a client ID, and a client ID to one connection.
		conn = i / p.Consumers
	case p.ConsumerConnections > 0:
		conn = i % p.ConsumerConnections
	}
	spec := driver.ConsumerSpec{
		Connection:       p.connection("consumer", conn, process),
		Destination:      dest,
		Name:             fmt.Sprintf("consumer-%d", i),
		Credit:           p.Credit,
		Selector:         p.Selector,
		KeepSubscription: p.KeepSubscription,
		TransactionSize:  p.transactionSize(),
	}
	if dest.Kind == driver.Topic {
		spec.Durable = p.Durable
		spec.Shared = p.Shared > 0
		switch {
		case spec.Shared:
			spec.Subscription = fmt.Sprintf("perfmq-%s-%d", dest.Name, group)
		case spec.Durable:
			spec.Subscription = fmt.Sprintf("perfmq-%s-%d", dest.Name, i)
		}
	}
	return spec
}

// transactionSize is the number of messages per transaction of a consumer.
func (p *Plan) transactionSize() int {
	if !p.Transacted {
		return 0
	}
	return max(p.TransactionSize, 1)
}

func (p *Plan) connection(role string, index int, process string) driver.Connection {
	c := driver.Connection{
		Key:  fmt.Sprintf("%s-%d", role, index),
		Name: fmt.Sprintf("%s-%s-%d", process, role, index),
	}
	if p.ClientID != "" {
		c.ClientID = fmt.Sprintf("%s-%s-%d", p.ClientID, role, index)
	}
	return c
}

// SameBroker tells whether both sides use the same driver.
func (p *Plan) SameBroker() bool {
	return p.Producer.Factory.Name == p.Consumer.Factory.Name && p.Producer.Open.URL == p.Consumer.Open.URL
}
