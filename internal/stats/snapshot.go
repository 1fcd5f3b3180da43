package stats

import (
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

// Snapshot is a row of a result, with what only reporters during a run need. It does not change once it is published.
type Snapshot struct {
	result.Row
	From, To time.Time // wall clock
	Total    Counters  // at To
	// Protocol holds the protocol's own counters, as totals at To, added up over all workers.
	Protocol []driver.Counter
	// Depths are the numbers of messages at the broker at the end of the interval, by destination; missing where unknown.
	Depths []brokerside.Depth
	// Stalls are the sums so far; Stalled: some were found in the interval, and began earlier.
	Stalls  []PartStalls
	Stalled bool
	// Outage is the state of the outages at the end of the interval; nil without --reconnect.
	Outage *OutageProgress
}

// Empty reports whether nothing happened in the interval. A message counts as sent as soon as it has ended, which may
// be a moment before its delay is known: an interval without counts can have latencies.
func (s *Snapshot) Empty() bool {
	if s.Values() != [result.NumCounters]uint64{} || s.Stalled || len(s.Groups) > 0 {
		return false // a send may count in a later interval of its group than of the run
	}
	for kind := range s.Latencies {
		if len(s.latencies(result.Kind(kind))) > 0 {
			return false
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
	Workers     []result.Worker     // of each producer and consumer
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

// Join returns the snapshots of two consecutive intervals as one.
func (s *Snapshot) Join(next *Snapshot) *Snapshot {
	joined := *next
	joined.From, joined.Row = s.From, *s.Row.Join(&next.Row)
	return &joined
}
