package stats

import (
	"slices"
	"time"

	"github.com/perfmq/perfmq/internal/brokerside"
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
	From, To time.Time     // wall clock
	Total    result.Counts // at To
	// Protocol holds the protocol's own counters, as totals at To, added up over all workers.
	Protocol []driver.Counter
	// Depths are the numbers of messages at the broker at the end of the interval, by destination; missing where unknown.
	Depths []brokerside.Depth
	// Stalls are the sums so far; Stalled: some were found in the interval, and began earlier.
	Stalls  []PartStalls
	Stalled bool
	// Outage is the state of the outages at the end of the interval; nil without --reconnect.
	Outage *OutageProgress
	// SoFar is the run up to a second before, with findings, and thresholds as they stand; nil unless it was asked for.
	SoFar *Summary
	// EndedSteps are the steps that ended before the interval, if no earlier snapshot has them.
	EndedSteps []Summary
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

// Join returns the snapshots of two consecutive intervals as one.
func (s *Snapshot) Join(next *Snapshot) *Snapshot {
	joined := *next
	joined.From, joined.Row = s.From, *s.Row.Join(&next.Row)
	joined.EndedSteps = slices.Concat(s.EndedSteps, next.EndedSteps)
	return &joined
}
