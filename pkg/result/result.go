package result

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// Format is [Head.Format] of every result.
const Format = "perfmq result"

// Version is the version of the format that this package writes. It reads this version and all earlier ones.
const Version = 1

// Head describes a run as known at its start.
type Head struct {
	// Format is "perfmq result".
	Format string `json:"format"`
	// Version is the version of the format.
	Version int `json:"version"`
	// RunID identifies the run, with very high probability: a decimal number that its messages carry.
	RunID string `json:"runId"`
	// Start is the moment at which the load began.
	Start int64 `json:"start"`
	// Warmup is the length of the first part of the load, which is not measured; if there are several steps, the warm-up
	// of the first one.
	Warmup int64 `json:"warmup"`
	// Plan is the plan of the run. It contains no secrets.
	Plan json.RawMessage `json:"plan,omitempty"`
	// PlanHash is the SHA-256 of the plan, as [Hash] computes it, in hexadecimal. Only results with the same hash merge.
	PlanHash string `json:"planHash"`
	// Versions are the versions of the programs of the run.
	Versions Versions `json:"versions"`
	// Host is the machine of perfmq.
	Host Host `json:"host"`
	// Labels are free texts of the user, such as the broker's version or heap.
	Labels map[string]string `json:"labels,omitempty"`
	// Scenario is the name of the scenario; missing for a plain command line.
	Scenario string `json:"scenario,omitempty"`
	// Shard is the part of the run that this process executed; missing if it executed all of it.
	Shard *Shard `json:"shard,omitempty"`
	// Clock is how far the clock was ahead of that of the rendezvous when the load began; missing without a rendezvous.
	Clock *Offset `json:"clock,omitempty"`
}

// Shard is one of the processes that share a run. They have the same run ID and plan.
type Shard struct {
	// Number is the number of the shard, from 1.
	Number int `json:"number"`
	// Of is the number of shards.
	Of int `json:"of"`
}

// Versions are versions of programs.
type Versions struct {
	// Perfmq is the version of perfmq.
	Perfmq string `json:"perfmq"`
	// Revision is the revision in version control that perfmq was built from; empty if it is not known.
	Revision string `json:"revision,omitempty"`
	// Go is the version of the Go toolchain that built perfmq.
	Go string `json:"go"`
	// Clients are the implementations of the protocols in use.
	Clients []Client `json:"clients,omitempty"`
}

// Client is an implementation of a protocol.
type Client struct {
	// Role is "producers", "consumers" or "connections".
	Role string `json:"role"`
	// Protocol is the name of the protocol.
	Protocol string `json:"protocol"`
	// Name is "native" for perfmq's own implementation, or the name of a client library.
	Name string `json:"name"`
	// Version is the version of the client library; empty for "native".
	Version string `json:"version,omitempty"`
}

// Host is a machine.
type Host struct {
	// Name is the host name.
	Name string `json:"name"`
	// OS is the operating system, as GOOS names it.
	OS string `json:"os"`
	// Arch is the processor architecture, as GOARCH names it.
	Arch string `json:"arch"`
	// CPUs is the number of processors that perfmq may use.
	CPUs int `json:"cpus"`
	// Memory is the memory of the machine in bytes; 0 where the system does not report it.
	Memory uint64 `json:"memory,omitempty"`
}

// Result is the result of a run, or of several merged ones. It is pure data and shares nothing with a Writer.
type Result struct {
	Head
	// Digest is the SHA-256, in hexadecimal, of the other fields and of rows.jsonl: [Read] refuses files that were
	// changed since. Results of earlier versions have none.
	Digest string `json:"digest,omitempty"`
	// Parts are the runs that were merged into this result, each with its start; empty for the result of one run.
	Parts []Part `json:"parts,omitempty"`
	// Complete: the run came to its end. Otherwise perfmq was killed or is still running, and the result is the sum of
	// the rows: it has no measured counts, workers, findings, errors or verification.
	Complete bool `json:"complete"`
	// End is the moment at which the run ended, drain included.
	End int64 `json:"end"`
	// ClockEnd is the lead of the clock over that of the rendezvous then; missing if unknown.
	ClockEnd *Offset `json:"clockEnd,omitempty"`
	// Outcome reports whether the run was a success, and why it ended.
	Outcome Outcome `json:"outcome"`
	// Total are the counts of the whole run, warm-up included.
	Total Counts `json:"total"`
	// Measured are the counts of the messages that were due after the warm-up. Counts that belong to no message are zero
	// here: Blocked, NoLeave, SocketWaits, Late and Strays. It is missing if unknown.
	Measured *Counts `json:"measured,omitempty"`
	// Expected is the number of deliveries that the completed messages should have caused, and Missing the number of them
	// that did not come. Both are missing unless one process both sends and receives.
	Expected *uint64 `json:"expected,omitempty"`
	Missing  *uint64 `json:"missing,omitempty"`
	// Figures are rates of the measured part; missing if the run did not come to its end.
	Figures *Figures `json:"figures,omitempty"`
	// Latencies are the latencies of the messages that were due after the warm-up, and of all openings and closings of
	// workers, with their histograms.
	Latencies Latencies `json:"latencies"`
	// Steps are the steps of the run, in order. Their counts add up to the total. A plain command line is one step.
	Steps []Step `json:"steps"`
	// Commands are the commands that the scenario ran before and after its steps, in order.
	Commands []Command `json:"commands,omitempty"`
	// Workers are the totals of each producer and consumer.
	Workers []Worker `json:"workers,omitempty"`
	// Stalls are the times in which the broker did nothing although it had something to do, the first thousand of each
	// host.
	Stalls []Stall `json:"stalls,omitempty"`
	// MoreStalls is the number of further stalls.
	MoreStalls uint64 `json:"moreStalls,omitempty"`
	// Unlisted is the number of stalls beside Stalls of which none is longer; only during a run.
	Unlisted uint64 `json:"-"`
	// Outages are the times in which workers had lost their connections, in a run that reconnects. Of more than 200, each
	// host lists the first and the last hundred.
	Outages []Outage `json:"outages,omitempty"`
	// MoreOutages are the sums of the others; missing if there are none.
	MoreOutages *MoreOutages `json:"moreOutages,omitempty"`
	// Errors are the failures by class, each with its first examples.
	Errors []Failure `json:"errors,omitempty"`
	// Findings are facts about the run that a reader should know.
	Findings []Finding `json:"findings,omitempty"`
	// Limit is the bound on the rate; if there are several steps, the limit that lasted longest. It is missing if it was
	// not judged.
	Limit *Limit `json:"limit,omitempty"`
	// Thresholds are the demands on the result, with the measured values.
	Thresholds []Threshold `json:"thresholds,omitempty"`
	// Verification is the fate of each message, in counts; missing if the run was not verified.
	Verification *Verification `json:"verification,omitempty"`
	// Trace is the extent of trace.jsonl; missing without one.
	Trace *Trace `json:"trace,omitempty"`
	// Tester is perfmq's own use of its machine during the whole run.
	Tester Tester `json:"tester"`
	// Protocol are counters that are specific to a protocol, by name, summed over all workers.
	Protocol map[string]uint64 `json:"protocol,omitempty"`
	// Brokers are the brokers as they identified themselves, each with its name or its side where there are several.
	Brokers []Broker `json:"brokers,omitempty"`
	// BrokerCount are the brokers' own counts; missing if no broker was asked.
	BrokerCount *BrokerCount `json:"brokerCount,omitempty"`
	// Marks are the moments at which steps reached the requested numbers of messages.
	Marks []Mark `json:"marks,omitempty"`
	// BrokerSide is the use of resources by the broker and its host, one entry for each perfmq that
	// watched it; missing if none did.
	BrokerSide []BrokerSide `json:"brokerSide,omitempty"`
	// Rows are the seconds of the run, in order. They are in rows.jsonl, not in result.json.
	Rows []Row `json:"rows,omitempty"`
}

// Part is a run that was merged.
type Part struct {
	// RunID identifies the run.
	RunID string `json:"runId"`
	// Host is the machine of its perfmq.
	Host Host `json:"host"`
	// Start and End are the moments at which its load began and the run ended, by its own clock.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Shard is the part of the run that it executed; missing if it was a run of its own.
	Shard *Shard `json:"shard,omitempty"`
	// Clock is how far its clock was ahead of the first part's clock; missing if unknown.
	Clock *Clock `json:"clock,omitempty"`
	// Limit is what bounded its rate; missing if unknown.
	Limit *Limit `json:"limit,omitempty"`
	// Dir is its folder; only while it is being merged.
	Dir string `json:"-"`
}

// Broker is the identity that a broker reported over one protocol.
type Broker struct {
	// Name is the name of the broker in the scenario; missing for a command line.
	Name string `json:"name,omitempty"`
	// Side is "producers" or "consumers" where these have brokers of their own.
	Side string `json:"side,omitempty"`
	// Protocol is the name of the protocol over which the broker reported it.
	Protocol string `json:"protocol"`
	// Product is the name of the product, such as apache-activemq-artemis.
	Product string `json:"product"`
	// Version is its version; missing if the broker did not report it.
	Version string `json:"version,omitempty"`
}

// BrokerCount are the brokers' own counts during the run.
type BrokerCount struct {
	// Destinations are the counts of each destination.
	Destinations []DestinationCount `json:"destinations,omitempty"`
	// Notes are the reasons why values are missing.
	Notes []string `json:"notes,omitempty"`
}

// DestinationCount is how far the broker's counters of a destination have grown, and the run's own counts there.
type DestinationCount struct {
	// Destination is the queue or topic.
	Destination string `json:"destination"`
	// Sent is the number of messages that the run sent there.
	Sent uint64 `json:"sent"`
	// Added are the messages that the broker got; missing if unknown. The range is from the accepted messages to these
	// plus the messages sent without an answer.
	Added *Compared `json:"added,omitempty"`
	// Received is the number of messages that the run received there, including messages of others.
	Received uint64 `json:"received"`
	// Acknowledged are the messages that the broker counts as consumed; missing if unknown. The range follows from the
	// messages received, less those delivered again.
	Acknowledged *Compared `json:"acknowledged,omitempty"`
	// Depth is the number of messages there at the end; missing if unknown.
	Depth *uint64 `json:"depth,omitempty"`
	// Unreached: the broker was unreachable for a while, and may have reset its counters since.
	Unreached bool `json:"-"`
	// Why is the reason why values are unknown.
	Why string `json:"-"`
}

// Compared is a count of the broker and the range that the run allows for it.
type Compared struct {
	// Count is how far the broker's counter has grown.
	Count uint64 `json:"count"`
	// Least and Most are the range. They differ where the end of some messages is in doubt.
	Least uint64 `json:"least"`
	Most  uint64 `json:"most"`
}

// Outcome tells how a run ended.
type Outcome struct {
	// Success: all sent messages were accepted and received, and nothing ended the run early.
	Success bool `json:"success"`
	// Status is the exit status that follows from the run: 0 success, 1 failure, 3 a threshold was not met, 130
	// interrupted.
	Status int `json:"status"`
	// Reason is why the load ended, such as "duration reached".
	Reason string `json:"reason"`
	// Interrupted: the user ended the run.
	Interrupted bool `json:"interrupted,omitempty"`
	// Aborted: a threshold ended the run before its plan did, so that its figures cover only a part of the plan.
	Aborted bool `json:"aborted,omitempty"`
	// Problems are the reasons why the run is not a success.
	Problems []string `json:"problems,omitempty"`
	// Warnings limit the trust in the numbers.
	Warnings []string `json:"warnings,omitempty"`
	// LeftBehind are objects at the broker that could not be closed or removed.
	LeftBehind []string `json:"leftBehind,omitempty"`
}

// Step is a part of a run, up to its own end condition.
type Step struct {
	// Name is the name of the step; "load" for a plain command line.
	Name string `json:"name"`
	// Reason is why the load of the step ended, if there are several steps; missing if unknown.
	Reason string `json:"reason,omitempty"`
	// Start and End are the moments at which the step began and ended.
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	// Counts of the step, warm-up included: the sums of its rows.
	Counts Counts `json:"counts"`
	// Measured are the counts of the messages that were due after the warm-up of the step. Counts that belong to no
	// message are zero. It is missing if unknown.
	Measured *Counts `json:"measured,omitempty"`
	// Latencies of the messages that were due in the step after its warm-up.
	Latencies Latencies `json:"latencies"`
	// Groups are the groups of the step, if there are several. Their counts and latencies add up to those of the step.
	Groups []Group `json:"groups,omitempty"`
	// Limit is the bound on the rate of the step; missing if it was not judged.
	Limit *Limit `json:"limit,omitempty"`
	// Figures are rates of the measured part of the step; missing if the run did not come to its end.
	Figures *Figures `json:"figures,omitempty"`
}

// Group is a group of a scenario in one step.
type Group struct {
	// Name is the name of the group.
	Name string `json:"name"`
	// Due is the number of messages that were due by its rate; missing without a rate.
	Due uint64 `json:"due,omitempty"`
	// Counts of the group in the step, warm-up included.
	Counts Counts `json:"counts"`
	// Measured are the counts of the messages that were due after the warm-up.
	Measured Counts `json:"measured"`
	// Latencies of the messages that were due after the warm-up.
	Latencies Latencies `json:"latencies"`
}

// Limit is the bound on the rate of a load, judged from the waits of its workers in the measured part.
type Limit struct {
	// Kind is none (the rate was reached), max-pending, credit (of the broker, for producers), broker (its answers or
	// deliveries got late), consumers (their simulated work or rate), producers (a load of consumers only: they waited for
	// messages), socket (the network or its buffers took no more), tester-worker (a goroutine or connection of perfmq
	// never waited), tester-processors, machine (other programs had its processors) or unknown. Programs compare it; it
	// does not change.
	Kind string `json:"kind"`
	// Share is the part of the time of the producers in which this was their limit, from 0 to 1; of the consumers if these
	// are the limit, or if there are no producers.
	Share float64 `json:"share"`
	// Text is the evidence for the limit.
	Text string `json:"text"`
	// Hint suggests a remedy.
	Hint string `json:"hint,omitempty"`
}

// The kinds of limits.
const (
	LimitNone       = "none" // the rate was reached
	LimitMaxPending = "max-pending"
	LimitCredit     = "credit"
	LimitBroker     = "broker"
	LimitConsumers  = "consumers"
	LimitProducers  = "producers"
	LimitSocket     = "socket"
	LimitWorker     = "tester-worker"
	LimitProcessors = "tester-processors"
	LimitMachine    = "machine"
	LimitUnknown    = "unknown"
)

// OfTester reports whether a limit of that kind is perfmq, or its machine: the metrics then say little about the
// broker, and rates are lower bounds.
func OfTester(limit string) bool {
	return limit == LimitWorker || limit == LimitProcessors || limit == LimitMachine
}

// LowerBound reports whether perfmq, or its machine, was the limit of the run or of a step: rates are lower bounds.
func (r *Result) LowerBound() bool {
	return r.Limit != nil && OfTester(r.Limit.Kind) || slices.ContainsFunc(r.Steps,
		func(s Step) bool { return s.Limit != nil && OfTester(s.Limit.Kind) })
}

// Command is a command that ran before or after a step.
type Command struct {
	// Step is the name of the step.
	Step string `json:"step"`
	// When is "before" or "after" the step.
	When string `json:"when"`
	// Command is the text that the shell was given.
	Command string `json:"command"`
	// Status is the exit status; missing if the command could not be run, or was killed.
	Status *int `json:"status,omitempty"`
	// Took is the time that it ran.
	Took int64 `json:"took"`
	// Output is the end of its output.
	Output string `json:"output,omitempty"`
	// Host is the host that ran it, in merged results.
	Host string `json:"host,omitempty"`
}

// Worker is a producer or consumer with its totals, warm-up included.
type Worker struct {
	// Name is the name of the worker, such as producer-0.
	Name string `json:"name"`
	// Host is the host of the worker, in merged results.
	Host string `json:"host,omitempty"`
	// Destination is the destination that it sends to or receives from.
	Destination string `json:"destination,omitempty"`
	// BrokerHosts are the hosts of the broker to which it was connected, in the order of its first connections, if the URL
	// names several.
	BrokerHosts []string `json:"brokerHosts,omitempty"`
	Counts
}

// Failure is a class of errors.
type Failure struct {
	// Class is the class of the error, such as "timeout".
	Class string `json:"class"`
	// Count is the number of messages that ended with an error of this class.
	Count uint64 `json:"count"`
	// Examples are the first errors, as texts.
	Examples []string `json:"examples,omitempty"`
}

// Finding is a fact about a run that a reader should know.
type Finding struct {
	// Kind is the kind of the finding, such as "lost". Programs compare it; it does not change.
	Kind string `json:"kind"`
	// Count is how often it occurred, or the number of messages concerned.
	Count uint64 `json:"count"`
	// Subject is the object concerned: a destination, a subscription, a worker, a step, perfmq; empty for the run.
	Subject string `json:"subject,omitempty"`
	// Severity is problem (the run is a failure), warning (it limits the trust in the numbers) or note; missing in older
	// results.
	Severity string `json:"severity,omitempty"`
	// Failure: the finding is a problem.
	Failure bool `json:"failure,omitempty"`
	// Examples are the first cases, such as "producer-0 12".
	Examples []string `json:"examples,omitempty"`
	// Text is the finding in words.
	Text string `json:"text"`
	// Hint suggests a remedy.
	Hint string `json:"hint,omitempty"`
}

// The severities of findings.
const (
	Problem = "problem"
	Warning = "warning"
	Note    = "note"
)

// Texts returns the texts of the findings of a severity.
func Texts(list []Finding, severity string) (texts []string) {
	for _, f := range list {
		if f.Severity == severity {
			texts = append(texts, f.Text)
		}
	}
	return texts
}

// Threshold is a demand on the result. If it is not met, the run does not fail, but its exit status is 3.
type Threshold struct {
	// Step is the step that the demand applies to; missing if it applies to the whole run.
	Step string `json:"step,omitempty"`
	// Threshold is the demand as it was given, such as "ack.p99 < 50ms".
	Threshold string `json:"threshold"`
	// Metric is the name of the metric.
	Metric string `json:"metric"`
	// Unit is the unit of Measured: messages, count, messages/s, us or percent.
	Unit string `json:"unit"`
	// Measured is the value of the metric; null if the run has none.
	Measured *float64 `json:"measured"`
	// Kept: the demand was met.
	Kept bool `json:"kept"`
	// Value is Measured as a text in the unit of the metric; only of a run in this process.
	Value string `json:"-"`
}

// String returns the threshold, the verdict and the measured value: "ack.p99 < 50ms: passed, 3.2ms".
func (t *Threshold) String() string {
	verdict := "FAILED"
	if t.Kept {
		verdict = "passed"
	}
	text := t.Threshold + ": " + verdict + ", " + t.Value
	if t.Step != "" {
		text = t.Step + ": " + text
	}
	return text
}

// The exit statuses of perfmq; [Outcome] has the one of a run.
const (
	StatusOK          = 0
	StatusFailed      = 1
	StatusUsage       = 2
	StatusThreshold   = 3
	StatusConnect     = 4
	StatusUndecided   = 5
	StatusInterrupted = 130
)

// Graver returns the graver of two exit statuses: any failure is graver than an interruption.
func Graver(a, b int) int {
	ranks := []int{
		StatusOK, StatusInterrupted, StatusUndecided, StatusThreshold, StatusFailed, StatusConnect, StatusUsage,
	}
	if slices.Index(ranks, a) >= slices.Index(ranks, b) {
		return a
	}
	return b
}

//go:embed schema.json
var schema []byte

// SchemaID is the identifier of the JSON Schema of this version.
const SchemaID = "https://github.com/perfmq/perfmq/pkg/result/v1/schema.json"

// Schema returns the JSON Schema (2020-12) of result.json. $defs/Head describes the first line of rows.jsonl, $defs/Row
// the others.
func Schema() []byte { return slices.Clone(schema) }

// Hash returns the SHA-256 of a plan in hexadecimal. White space, the order of keys and the escaping of characters make
// no difference. The hash of no plan is empty.
func Hash(plan json.RawMessage) (string, error) {
	if len(plan) == 0 {
		return "", nil
	}
	decoder := json.NewDecoder(bytes.NewReader(plan))
	decoder.UseNumber() // keep the digits of numbers
	var value any
	if err := decoder.Decode(&value); err != nil {
		return "", fmt.Errorf("read the plan: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return "", fmt.Errorf("read the plan: something follows it")
	}
	text, err := json.Marshal(value) // keys are sorted
	if err != nil {
		return "", fmt.Errorf("read the plan: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// digest returns [Result.Digest] of a result.json with any digest, given the SHA-256 of the rows. It is a [Hash]: white
// space makes no difference.
func digest(text []byte, rows string) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return "", err
	}
	fields["digest"] = json.RawMessage(strconv.Quote(rows))
	whole, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	return Hash(whole)
}

// Verification is the fate of each message, in counts.
type Verification struct {
	// Known: the messages that should have arrived are known. Otherwise Expected, Lost, Left, Early and the counts that
	// depend on the outcomes of sends are zero.
	Known bool `json:"expectedKnown"`
	// Window is the time after which a completed message that has not arrived is lost (--verify-window); missing if
	// only the end of the run decides.
	Window int64 `json:"window,omitempty"`
	// Sent is the number of messages that the producers sent.
	Sent uint64 `json:"sent"`
	// Total are the counts of all subscriptions.
	Total Verified `json:"total"`
	// Subscriptions are the counts of each.
	Subscriptions []Subscription `json:"subscriptions"`
	// Unwatched are destinations with messages and without a consumer.
	Unwatched []string `json:"unwatched,omitempty"`
	// Notes tell how to read the counts.
	Notes []string `json:"notes,omitempty"`
}

// Subscription is the verification of a queue, of a shared or durable subscription, or of one consumer of a topic.
type Subscription struct {
	// Destination is the queue or topic.
	Destination string `json:"destination"`
	// Name is the name of the subscription; empty for a queue.
	Name string `json:"subscription,omitempty"`
	// Known: as in Verification.
	Known bool `json:"expectedKnown"`
	Verified
}

// Verified are exact counts of messages.
//
// Expected = Received - UnconfirmedArrived - RefusedArrived - WithheldArrived + Lost + Left + Early.
type Verified struct {
	// Expected: accepted by the broker to be delivered.
	Expected uint64 `json:"expected" finding:"expected" known:"window"`
	// Received: different messages that arrived. Once: the ones of Received that arrived once.
	Received uint64 `json:"received" finding:"received"`
	Once     uint64 `json:"once"`
	// Lost: accepted, and never arrived although consumers waited for them. ArrivedLate: received, but after the window
	// (--verify-window); until then they were in Lost.
	Lost        uint64 `json:"lost" finding:"lost" known:"window"`
	ArrivedLate uint64 `json:"arrivedLate,omitempty" finding:"arrived_late" known:"window"`
	// Left: accepted, and not arrived when the consumers ended.
	Left uint64 `json:"left" finding:"left" known:"end"`
	// Early: accepted before the subscription existed.
	Early uint64 `json:"early"`
	// Duplicates: deliveries beyond the first of each message. Redelivered: part of Duplicates, marked by the broker.
	Duplicates  uint64 `json:"duplicates" finding:"duplicates"`
	Redelivered uint64 `json:"duplicatesRedelivered" finding:"redelivered"`
	// AfterOutage: part of Duplicates, because an outage cut off their settlement.
	AfterOutage uint64 `json:"duplicatesAfterOutage,omitempty" finding:"duplicates_after_outage"`
	// Resent: part of Duplicates, because their messages were sent again. They are not in AfterOutage.
	Resent uint64 `json:"duplicatesResent,omitempty" finding:"duplicates_resent"`
	// Disordered: messages that came after a later one. DisorderedRedelivered: part of Disordered, marked by the broker.
	Disordered            uint64 `json:"outOfOrder" finding:"out_of_order"`
	DisorderedRedelivered uint64 `json:"outOfOrderRedelivered"`
	// Damaged: deliveries that differ from the sent message in body or ID. Illegible: part of Damaged, with an unreadable
	// ID.
	Damaged   uint64 `json:"damaged" finding:"damaged"`
	Illegible uint64 `json:"illegible"`
	// Foreign: deliveries of other runs and tools.
	Foreign uint64 `json:"foreign" finding:"foreign"`
	// UnconfirmedArrived and UnconfirmedMissing: sent without an answer of the broker.
	UnconfirmedArrived uint64 `json:"unconfirmedArrived" finding:"unconfirmed_arrived" known:"end"`
	UnconfirmedMissing uint64 `json:"unconfirmedMissing" finding:"unconfirmed_missing" known:"end"`
	// RefusedArrived: refused by the broker, and arrived.
	RefusedArrived uint64 `json:"refusedArrived" finding:"refused_arrived" known:"end"`
	// WithheldArrived: rolled back by plan, and arrived.
	WithheldArrived uint64 `json:"withheldArrived" finding:"rolled_back_arrived" known:"end"`
	// Gaps: missing numbers below the highest received one, if the sent numbers are unknown.
	Gaps uint64 `json:"gaps"`
}
