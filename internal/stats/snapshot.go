package stats

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
	"github.com/perfmq/perfmq/internal/verify"
	"github.com/perfmq/perfmq/internal/words"
	"github.com/perfmq/perfmq/pkg/driver"
	"github.com/perfmq/perfmq/pkg/result"
)

// Phase is a part of a run. An interval lies in one phase, and a message belongs to the phase in which it was due to be
// sent: its latencies and its outcome count there, whenever they become known. (Where nothing is sent, it is the phase
// in which the message was received.)
type Phase uint8

// The phases of a run.
const (
	Warmup  Phase = iota // load, but the latencies of its messages do not enter the summary
	Measure              // load
	Drain                // no more sends; waiting for completions and deliveries
)

// String returns "warmup", "measure" or "drain".
func (p Phase) String() string { return [...]string{"warmup", "measure", "drain"}[p] }

// Run describes the run, for reporters.
type Run struct {
	ID                   int64 // the messages carry it
	Producing, Consuming bool
	Start                time.Time     // when the load began
	Warmup               time.Duration // from Start
	Protocol             string        // of the producers, or of the consumers if there are none
	ConsumerProtocol     string        // of the consumers
	Client               string        // of Protocol: driver.Native, or a client library
	ConsumerClient       string        // of ConsumerProtocol
	Destinations         []string
	Transacted           bool              // messages are sent or received in transactions
	Scenario             string            // name of the scenario; empty for a command line
	Steps                []string          // names of the steps
	Groups               []RunGroup        // of a scenario
	Labels               map[string]string // free texts of the user
}

// RunGroup is a group of a scenario, with its roles.
type RunGroup struct {
	Name            string
	Sends, Receives bool
	// Protocol and client of its producers, and of its consumers; empty without such.
	Protocol, ConsumerProtocol string
	Client, ConsumerClient     string
}

// Several reports whether the run has more than one step.
func (r *Run) Several() bool { return len(r.Steps) > 1 }

// Snapshot holds the figures between two moments, and the totals at the second. It does not change once it is
// published.
type Snapshot struct {
	Step     string // name of the step
	Phase    Phase
	From, To time.Time     // wall clock
	Elapsed  time.Duration // from the start of the load to To
	Total    Counters
	Delta    Counters
	// Latencies became known in the interval: of messages due in the warm-up if Phase is Warmup, otherwise of messages due
	// after it.
	Latencies result.Latencies
	// Leftover are the latencies of messages that were due in the warm-up and ended after it. They are in no summary.
	Leftover result.Latencies
	// Protocol holds the protocol's own counters, as totals at To, added up over all workers.
	Protocol []driver.Counter
	// Verified holds the findings of the verification up to To; nil if nothing is verified.
	Verified *result.Progress
	Health   Health // of the interval
	InFlight uint64
	Workers  int // open producers and consumers
	// Depths are the numbers of messages at the broker at the end of the interval, by destination; missing where unknown.
	Depths []brokerside.Depth
	// Groups are the groups of a scenario, absent ones included; nil on a command line.
	Groups []GroupInterval
	// Side is the resource use of the broker and its host in the interval, or in one of about the same length; nil if
	// unknown.
	Side *result.BrokerUse
	// Arrivals are the messages that came from other shards, one for each shard.
	Arrivals []result.Arrival
	// Stalls are the sums so far; Stalled: some were found in the interval, and began earlier.
	Stalls  []PartStalls
	Stalled bool
	// Outages is the state of the outages at the end of the interval; nil without --reconnect.
	Outages *OutageProgress
}

// Seconds returns the length of the interval.
func (s *Snapshot) Seconds() float64 { return s.To.Sub(s.From).Seconds() }

// Empty reports whether nothing happened in the interval. A message counts as sent as soon as it has ended, which may
// be a moment before its delay is known: an interval without counts can have latencies.
func (s *Snapshot) Empty() bool {
	if s.Delta != (Counters{}) || s.Stalled {
		return false
	}
	for i := range s.Groups { // a send may count in a later interval of its group than of the run
		if s.Groups[i].Delta != (Counters{}) {
			return false
		}
	}
	for _, latencies := range []*result.Latencies{&s.Latencies, &s.Leftover} {
		for _, l := range latencies {
			if l != nil && l.Count > 0 {
				return false
			}
		}
	}
	return true
}

// Summary is the whole of a run. Of several steps, its limit is the longest one, and the span of Offered is 0. Its
// thresholds do not enter Success.
type Summary struct {
	StepSummary
	// Success: all sent messages were accepted and received, and nothing ended the run early.
	Success bool
	// Interrupted: the user ended the run.
	Interrupted bool
	// Aborted: a threshold ended the run before its plan did, so that its figures cover only a part of it.
	Aborted bool
	// Err is the error that aborted the run, if there was one.
	Err error
	// Findings are problems first, the reasons why Success is false, then warnings, which limit the trust in the
	// numbers, then notes.
	Findings []result.Finding

	Outages     []result.Outage // of a run that reconnects; by their start, without MoreOutages
	MoreOutages *result.MoreOutages
	Hosts       []result.BrokerHost // of a run with several hosts in a URL; else nil
	Protocol    []driver.Counter    // as in the last Snapshot
	Workers     []Worker            // of each producer and consumer
	Errors      []result.Failure    // of the messages that failed

	// Expected is the number of deliveries that the completed messages should have caused, and Missing the number that
	// did not come before the drain ended. Known only when one process both sends and receives.
	ExpectedKnown     bool
	Expected, Missing uint64
	// Verification tells the fate of the messages; nil if it was not asked for. With it Expected and Missing are exact.
	Verification *verify.Result
	// Brokers are the identities that the brokers reported.
	Brokers []result.Broker
	// Side is the resource use of the broker and its host; nil if it was not watched.
	Side *result.BrokerSide
	// BrokerCount holds the brokers' own counts; nil if no broker was asked.
	BrokerCount *result.BrokerCount
	// Marks are the marks that its steps have passed, in order.
	Marks []result.Mark
	// Steps are the steps of a run that has several, in order.
	Steps []StepSummary
	// Commands are the commands that ran before and after steps.
	Commands []result.Command
	// LeftBehind lists objects at the broker that could not be closed or removed, such as a durable subscription.
	LeftBehind []string
}

// Find adds a finding, unless count is 0.
func (s *Summary) Find(kind, subject string, count uint64, values ...any) {
	if count > 0 {
		s.Findings = append(s.Findings, words.Find(kind, subject, count, values...))
	}
}

// Problems returns the texts of the findings that are problems.
func (s *Summary) Problems() []string { return result.Texts(s.Findings, result.Problem) }

// Warnings returns the texts of those that are warnings.
func (s *Summary) Warnings() []string { return result.Texts(s.Findings, result.Warning) }

// Notes returns the texts of those that are notes.
func (s *Summary) Notes() []string { return result.Texts(s.Findings, result.Note) }

// Health reports whether perfmq itself was fit to measure, in an interval or over all of them.
type Health struct {
	CPU        time.Duration // processor time used by this process, user and system
	Machine    time.Duration // processor time used on the whole machine, by all programs; too low if much of it was idle
	MachineAll time.Duration // processor time that the machine had; 0 where the system does not report it
	Wall       time.Duration // real time of the measurement
	Delay      time.Duration // how long threads of this process, added up, waited for a processor, if DelayKnown
	DelayKnown bool
	Cores      int // processors that the process may use at once
	// resident bytes of this process at the end, or the maximum over the ends of intervals; 0 where the system does not
	// report it
	Memory     uint64
	MemoryPeak uint64 // the largest number of resident bytes that this process ever had; only of a whole run
	WasCrowded bool   // other programs kept the machine's processors busy for part of the time at least

	Sent        uint64
	LateSends   uint64 // sends that left late although neither the broker nor max-pending held them up
	LateCrowded uint64 // part of LateSends, in intervals in which other programs kept the machine's processors busy
	LatePaused  uint64 // part of LateSends, in intervals in which perfmq was paused

	// Saturated counts the producers and consumers, of each full measured second, that waited for less than a tenth of it:
	// perfmq, not the broker, was their limit.
	Saturated uint64

	Pauses   uint64        // times when nothing of this process ran for PauseLimit or longer
	PauseMax time.Duration // the longest
	PauseAt  time.Time     // when it ended

	// ClockForward and ClockBackward are the steps of the wall clock. Over several intervals they leave out changes too
	// small for a step.
	ClockForward, ClockBackward time.Duration
}

// Join returns the snapshots of two consecutive intervals as one. Health, and all values as of the end of the interval,
// come from the second.
func (s *Snapshot) Join(next *Snapshot) *Snapshot {
	joined := *next
	joined.From = s.From
	joined.Delta = s.Delta.Add(next.Delta)
	joined.Side = brokerside.Join(s.Side, next.Side)
	joined.Arrivals = joinArrivals(s.Arrivals, next.Arrivals)
	joined.Stalled = s.Stalled || next.Stalled
	joined.Latencies, joined.Leftover = result.Latencies{}, result.Latencies{}
	joined.Groups = slices.Clone(next.Groups)
	for i := range min(len(s.Groups), len(joined.Groups)) { // all intervals have the same groups
		joined.Groups[i] = s.Groups[i].join(next.Groups[i])
	}
	for _, part := range []*Snapshot{s, next} {
		joined.Latencies.Merge(part.Latencies)
		joined.Leftover.Merge(part.Leftover)
	}
	return &joined
}
