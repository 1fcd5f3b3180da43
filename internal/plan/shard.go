package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/perfmq/perfmq/internal/load"
	"github.com/perfmq/perfmq/internal/quantity"
	"github.com/perfmq/perfmq/pkg/driver"
)

// MaxShards is the maximum number of processes of a run.
const MaxShards = 1000

// Shard is the part of a run that one of several processes has. The producers and consumers of the run are dealt out in
// turn; each keeps the name, the number and the due times that it has in the whole run. The zero value is the whole
// run.
type Shard struct {
	Number int // from 1 to Of; 0 if the number is that of the completion index of a Kubernetes Job
	Of     int
}

// IsZero reports whether it is the whole run, of one process.
func (s Shard) IsZero() bool { return s == Shard{} }

// String returns the shard in the form that [ParseShard] reads: 2/5, or 5 without a number.
func (s Shard) String() string {
	if s.Number == 0 {
		return strconv.Itoa(s.Of)
	}
	return fmt.Sprintf("%d/%d", s.Number, s.Of)
}

// Has reports whether a worker of the whole run, counted from 0, is one of the shard.
func (s Shard) Has(worker int) bool { return s.IsZero() || worker%s.Of == s.Number-1 }

// ParseShard reads 2/5, the second of five shards, or 5, one of five shards with its number in the environment.
func ParseShard(text string) (Shard, error) {
	number, of, both := strings.Cut(text, "/")
	if !both {
		number, of = "", text
	}
	var s Shard
	n, err := strconv.Atoi(strings.TrimSpace(of))
	if err == nil && both {
		s.Number, err = strconv.Atoi(strings.TrimSpace(number))
	}
	if s.Of = n; err != nil || n < 1 || n > MaxShards || both && (s.Number < 1 || s.Number > n) {
		return Shard{}, fmt.Errorf("must be NUMBER/COUNT, such as 2/5, or COUNT, which is %d at most", MaxShards)
	}
	return s, nil
}

// At returns the shard with the number of a completion index of a Kubernetes Job, which counts from 0.
func (s Shard) At(completionIndex string) (Shard, error) {
	i, err := strconv.Atoi(completionIndex)
	if err != nil || i < 0 || i >= s.Of {
		return s, fmt.Errorf("is not from 0 to %d", s.Of-1)
	}
	return Shard{Number: i + 1, Of: s.Of}, nil
}

// RunNumber returns the number of a run that has that name: the name itself if that is a number from 1 to 2^63-1, or
// else the upper 63 bits of its SHA-256.
func RunNumber(name string) int64 {
	if n, err := strconv.ParseInt(name, 10, 64); err == nil && n > 0 {
		return n
	}
	sum := sha256.Sum256([]byte(name))
	return max(1, int64(binary.BigEndian.Uint64(sum[:])>>1))
}

// Moment is a moment of the wall clock, or a time from now on. The zero value is neither.
type Moment struct {
	At time.Time
	In time.Duration // if At is zero
}

// IsZero reports whether no moment is set.
func (m Moment) IsZero() bool { return m.At.IsZero() && m.In == 0 }

// ParseMoment reads a moment as RFC 3339 has it, with or without a fraction of seconds, a whole number of seconds since
// the Unix epoch, or a time from now on such as +10s.
func ParseMoment(text string) (Moment, error) {
	if after, relative := strings.CutPrefix(text, "+"); relative {
		d, err := quantity.Duration(after, time.Second)
		if err == nil && d <= 0 {
			err = errors.New("must be above 0")
		}
		return Moment{In: d}, err
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return Moment{At: at}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds <= 0 || seconds > math.MaxInt32*8 {
		return Moment{}, errors.New("must be like 2026-03-01T12:00:00Z, 1772366400 or +10s")
	}
	return Moment{At: time.Unix(seconds, 0)}, nil
}

// maxAhead is the longest wait for the begin of a load: a later moment is a slip of the pen, or the clock is wrong.
const maxAhead = 24 * time.Hour

// Mistake returns the mistake in a moment for the start of a load, as of now, or nil.
func (m Moment) Mistake(now time.Time) *Mistake {
	at := m.Of(now)
	if m.IsZero() || at.After(now) && at.Sub(now) <= maxAhead {
		return nil
	}
	return Wrong("", "--start-at %s is not within %s from now, %s by this machine's clock",
		at.UTC().Format(time.RFC3339Nano), maxAhead, now.UTC().Format(time.RFC3339Nano))
}

// Of returns the moment on the wall clock, without a monotonic reading; zero without a moment.
func (m Moment) Of(now time.Time) time.Time {
	if m.In > 0 {
		return now.Add(m.In).Round(0)
	}
	return m.At
}

// shards refuses settings of a plan that cannot be divided into shards.
func (v *validator) shards(p *Plan) {
	if p.Shard.IsZero() {
		return
	}
	of := p.Shard.Of
	v.wrong(p.RunID == 0 && !p.Met,
		Needs("--shard", "a --rendezvous, or the same --run-id or --start-at for all shards"))
	for i := range p.Steps {
		s := &p.Steps[i]
		producers, consumers := 0, 0
		for _, g := range s.Groups {
			writers, readers := g.workers()
			producers, consumers = producers+writers, consumers+readers
			v.group = g
			v.wrong(g.Rate.Relative != nil, Excludes("--shard", "--rate "+g.Rate.String()))
			v.wrong(!g.Role.Produces() && g.Count > 0 && g.Count < uint64(readers), //nolint:gosec // not negative
				Needs("--shard", fmt.Sprintf("--message-count %d or more", readers)))
		}
		v.group = nil
		ends, what := producers, "producers"
		if producers == 0 {
			ends, what = consumers, "consumers"
		}
		if len(s.openings()) > 0 && (producers+consumers == 0 || s.Duration > 0) {
			continue // each shard opens its part of the connections
		}
		none := producers+consumers < of
		v.wrong(none, Needs("--shard", fmt.Sprintf("%d producers and consumers", of)))
		v.wrong(!none && ends < of && s.Duration == 0, // a shard without any would not end
			Needs("--shard", fmt.Sprintf("--duration or --%s %d", what, of)))
	}
}

// ProducerSpecs returns the specification of each producer of the run. Producers of different destinations alternate,
// so that a rate is spread over the destinations evenly.
func (g *Group) ProducerSpecs(process string) []driver.ProducerSpec {
	if !g.Role.Produces() {
		return nil
	}
	total := g.Producers * len(g.Destinations)
	all := g.producerSpec()
	specs := make([]driver.ProducerSpec, 0, total)
	for i := range total {
		conn := i
		if g.SharedConnections {
			conn = i % g.ProducerConnections
		}
		spec := all
		spec.Connection = g.connection("producer", conn, g.ProducerBroker, process)
		spec.Destination, spec.Name = g.Destinations[i%len(g.Destinations)], g.worker("producer", i)
		specs = append(specs, spec)
	}
	return specs
}

// producerSpec returns what the producers have in common.
func (g *Group) producerSpec() driver.ProducerSpec {
	spec := g.ProducerSpec
	spec.MaxPending, spec.Requests = g.Pending(), g.Role.Requests()
	for _, v := range g.Mix {
		if g.Keys > 0 {
			v.Group = load.KeyName(0, g.Keys)
		}
		spec.Variants = append(spec.Variants, v.driverVariant())
	}
	return spec
}

// ConsumerSpecs returns the specification of each consumer of the run.
func (g *Group) ConsumerSpecs(process string) []driver.ConsumerSpec {
	if !g.Role.Consumes() {
		return nil
	}
	var specs []driver.ConsumerSpec
	for _, dest := range g.Destinations {
		for sub := range max(g.Shared, 1) {
			for range g.Consumers {
				specs = append(specs, g.consumer(len(specs), sub, dest, process))
			}
		}
	}
	return specs
}

// consumerSpec returns what the consumers of one kind of destinations have in common.
func (g *Group) consumerSpec(kind driver.Kind) driver.ConsumerSpec {
	spec := g.ConsumerSpec
	if g.ConsumerFail.IsZero() {
		spec.Failing = driver.Accept
	}
	spec.Correlated = g.Role.Responds()
	spec.Durable = spec.Durable && kind == driver.Topic
	spec.Shared = g.Shared > 0 && kind == driver.Topic
	return spec
}

func (g *Group) consumer(i, sub int, dest driver.Destination, process string) driver.ConsumerSpec {
	conn := i
	switch {
	case g.Shared > 0 && g.ClientID != "":
		// A shared subscription belongs to a client ID, and a client ID to one connection.
		conn = i / g.Consumers
	case g.ConsumerConnections > 0:
		conn = i % g.ConsumerConnections
	}
	spec := g.consumerSpec(dest.Kind)
	spec.Connection = g.connection("consumer", conn, g.ConsumerBroker, process)
	spec.Destination, spec.Name = dest, g.worker("consumer", i)
	switch {
	case spec.Shared:
		spec.Subscription = g.subscription(dest, sub)
	case spec.Durable:
		spec.Subscription = g.subscription(dest, i)
	}
	return spec
}

// worker returns the name of a producer or consumer: its group's name, or its role on a command line, with its index.
func (g *Group) worker(role string, index int) string {
	if g.Name != "" {
		role = g.Name
	}
	return fmt.Sprintf("%s-%d", role, index)
}

// subscription returns the name of a subscription at the broker. It is the same in every run.
func (g *Group) subscription(topic driver.Destination, index int) string {
	if g.Name != "" {
		return fmt.Sprintf("perfmq-%s-%s-%d", g.Name, topic.Name, index)
	}
	return fmt.Sprintf("perfmq-%s-%d", topic.Name, index)
}

func (g *Group) connection(role string, index int, b *Broker, process string) driver.Connection {
	worker := g.worker(role, index)
	c := driver.Connection{
		Key: worker, Name: process + "-" + worker, Order: g.hostsOf(index, b), Local: g.localAddress(index),
	}
	if g.ClientID != "" {
		c.ClientID = g.ClientID + "-" + worker
	}
	return c
}
