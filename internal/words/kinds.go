package words

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perfmq/perfmq/pkg/result"
)

//nolint:gochecknoglobals // a table that never changes
var kinds = []Kind{
	{"error", result.Problem, "%s"},
	{"rejected", result.Problem, "messages rejected by the broker: %d"},
	{"released", result.Problem, "messages given back by the broker: %d"},
	{"modified", result.Problem, "messages given back by the broker as modified: %d"},
	{"failed", result.Problem, "messages failed: %d"},
	{"unconfirmed", result.Problem, "messages without an answer, which the broker may have or not: %d"},
	{"timed-out", result.Problem, "requests without a reply in time: %d of %d"},
	{"replies-unconfirmed", result.Problem, "replies that the broker did not confirm: %d"},
	{"replies-late", result.Warning, "replies to requests that had timed out: %d"},
	{"replies-duplicated", result.Warning, "further replies to requests that had one: %d"},
	{"replies-foreign", result.Warning, "replies to requests of other runs or tools: %d"},
	{"replies-uncorrelated", result.Warning, "replies without a correlation ID: %d"},
	{"unanswerable", result.Warning, "messages received without an address for a reply: %d"},
	{"unknown-end", result.Problem, "messages of unknown end: %d"},
	{"nothing-sent", result.Problem, "nothing was sent: %s until the load ended"},
	{"nothing-completed", result.Problem, "nothing was completed: the broker accepted none of %d messages"},
	{"too-few", result.Problem, "messages of --message-count not received in --duration: %d of %d"},
	{
		"unidentified", result.Problem,
		"none of the %d messages received from %s has the properties of those sent to %s: the broker drops them, " +
			"as RabbitMQ before 4 does, and ActiveMQ Classic without transport.transformer=jms; missing and lost " +
			"are uncertain",
	},
	{"not-drained", result.Problem, "messages not received when the step ended: %d"},
	{"missing", result.Problem, "messages not received when the drain ended after %s: %d of %d"},
	{"lost", result.Problem, "messages lost, accepted but never received: %d of %d"},
	{
		"arrived-late", result.Warning,
		"messages received after the verification window, and counted as lost until then: %d",
	},
	{"left", result.Problem, "messages accepted but not received when the consumers ended: %d of %d"},
	{"duplicated", result.Problem, "messages received more than once: %d duplicates, %d marked as redelivered"},
	{"damaged", result.Problem, "messages damaged: %d%s"},
	{"out-of-order", result.Problem, "messages received out of order: %d, %d marked as redelivered"},
	{"refused-arrived", result.Problem, "messages refused by the broker, but received: %d"},
	{"withheld-arrived", result.Problem, "messages rolled back, but received: %d"},
	{"unconfirmed-arrived", result.Note, "messages not confirmed, but received: %d"},
	{"unwatched", result.Problem, "no consumer of %s is known: its messages are not verified"},
	{"verify-file", result.Problem, "%s"},
	{
		"outage-open", result.Problem,
		"the outage of %s was not over at the end of the run: %d of %d workers were not connected (%s)%s",
	},
	{"foreign", result.Warning, "messages of other runs or tools received and not counted: %d"},
	{"unnumbered", result.Warning, "messages without a number of a verified run: %d"},
	{"nothing-received", result.Warning, "no message was received%s"},
	{"bottleneck", result.Warning, "%s was the bottleneck: %s"},
	{"busy-processors", result.Warning, "perfmq used %.2f of its %d cores: latencies include CPU scheduling delay"},
	{
		"busy-machine", result.Warning,
		"the machine was %.0f%% busy, %.0f%% with other programs than perfmq: latencies include CPU scheduling delay",
	},
	{
		"pause", result.Warning,
		"perfmq was paused %s, the longest for %s until %s: the latencies of %d sends and receipts include that",
	},
	{"late-sends", result.Warning, "messages sent late through perfmq's own fault: %d of %d"},
	{"late-excused", result.Warning, "messages sent late because of other programs, or of a pause of perfmq: %d of %d"},
	{
		"clock-forward", result.Warning,
		"the wall clock was set forward by %s during the run: transfer times between two machines are off by that",
	},
	{
		"clock-backward", result.Warning,
		"the wall clock was set backward by %s during the run: transfer times between two machines are off by that",
	},
	{"not-measured", result.Warning, "nothing was measured: there was no message after the warm-up of %s"},
	{"rate-missed", result.Warning, "the rate was missed by %s: %d of %d due messages were not sent in time"},
	{
		"negative-transfer", result.Warning,
		"transfer times below zero, left out (the clocks of producer and consumer differ): %d of %d",
	},
	{"negative-age", result.Warning, "b2c or s2c times below zero, left out (clocks differ): %d"},
	{
		"early", result.Warning,
		"messages delivered before their delay was over: %d of %d; clocks differ, or the broker does not delay, " +
			"such as ActiveMQ Classic without schedulerSupport",
	},
	{"trace-dropped", result.Warning, "trace.jsonl lacks %d of %d events: choose a smaller --trace-sample"},
	{"delayed", result.Warning, "transfer times are of both %d delayed messages, with their delays, and %d others"},
	{"out-of-range", result.Warning, "latencies above %s, counted as that: %d"},
	{"not-opened", result.Problem, "connections that did not open: %d of %d; refused %d, timed out %d, unmade %d"},
	{"connections-lost", result.Problem, "connections that were lost while they were open: %d of %d"},
	{"openings-abandoned", result.Note, "connections that were due, and cut short by the end of the load: %d"},
	{"in-doubt", result.Warning, "messages in doubt: %d; sent again %d, unconfirmed %d"},
	{
		"not-durable", result.Warning,
		"a topic subscription that is not durable gets no message sent in an outage (see --durable)",
	},
	{"after-outage", result.Warning, "duplicates explained by outages: %d with a lost settlement, %d sent again"},
	{"redelivered", result.Warning, "redelivered messages, each of which may hide a lost one: %d"},
	{"resent", result.Warning, "messages sent again, each of which may hide a lost one: %d"},
	{"excess", result.Warning, "more messages received than completed (duplicates, or another producer): %d"},
	{
		"unanswered", result.Warning,
		"the broker gave no answer before the consumers ended: its messages count as left, not lost",
	},
	{"verification", result.Warning, "%s"},
	{"opened", result.Note, "opened %d workers in %s%s"},
	{"log-errors", result.Note, "errors in the broker's log: %d"},
	{"log-warnings", result.Note, "warnings in the broker's log: %d"},
	{"process", result.Note, "%s"},
	{
		result.BrokerFindings + "added", result.Note,
		"the broker counted %d messages %s than it accepted: other clients sent, or it duplicated or dropped some",
	},
	{
		result.BrokerFindings + "acknowledged", result.Note,
		"the broker counts %d messages %s as consumed than were received: other clients consumed, or it may " +
			"deliver some again",
	},
	{"stall", result.Note, "%s %s, for %s at most: %s"},
	{"more-stalls", result.Note, "the broker stalled %d times more, never longer"},
	{result.RowsMissing, result.Warning, "%s"},
}

const (
	ownMachine  = "give perfmq a machine of its own"
	moreWorkers = "try more producers, consumers or connections"
)

// bounds are the reasons why the rate of a load was not higher, as the waits of its workers show it.
//
//nolint:gochecknoglobals // a table that never changes
var bounds = []struct {
	name, kind string // how stats asks for it, and [result.Limit.Kind]
	text, hint string // the evidence, a format of [fmt.Sprintf], and a remedy
}{
	{"reached", result.LimitNone, "the rate was reached", ""},
	{
		"unknown", result.LimitUnknown,
		"the measured part was too short, or its workers cannot tell what they wait for", "",
	},
	{"stored", result.LimitUnknown, "consumers had received all, and waited %s of the time", ""},
	{"slot", result.LimitMaxPending, "producers waited for answers %s of the time", "try a larger --max-pending"},
	{
		"answer", result.LimitMaxPending,
		"each send waited for its answer, %s of the time", "try to send asynchronously, or more --producers",
	},
	{
		"client", result.LimitMaxPending,
		"producers waited for answers %s of the time: the client has at most %s of a %s in flight", "",
	},
	{
		"credit", result.LimitCredit, "producers waited for it %s of the time",
		"look for a full queue, address or disk, or give producers more credit",
	},
	{
		"socket", result.LimitSocket, "producers waited %s of the time to write",
		"look at the network, and for a slow broker",
	},
	{"silent", result.LimitBroker, "it answered nothing", ""},
	{"silence", result.LimitBroker, "it answered nothing for %s of the time while producers waited", ""},
	{
		"late", result.LimitBroker,
		"with all messages in flight, its answers took %s on average, %.0f times the shortest (%s)", "",
	},
	{"send", result.LimitBroker, "producers waited in Send %s of the time", ""},
	{"backlog", result.LimitBroker, "its backlog grew by %.0f msg/s while consumers waited", ""},
	{
		"delivery", result.LimitBroker,
		"old messages waited in it while consumers waited, %s of the time", "try more --credit or --consumers",
	},
	{"input", result.LimitProducers, "consumers waited for messages %s of the time", ""},
	{"work", result.LimitConsumers, "their work took %s of their time%s", "try more --consumers"},
	{"pace", result.LimitConsumers, "they receive no more than their rate%s", "raise --consumer-rate"},
	{"worker", result.LimitWorker, "%s never waited in %s of %s", moreWorkers},
	{"lateness", result.LimitWorker, "it sent late, though it waited for due times only", moreWorkers},
	{"processors", result.LimitProcessors, "it used %.2f of its %d cores", "use more hosts, or larger messages"},
	{"machine", result.LimitMachine, "others took %s of its processors", ownMachine},
	{
		"unmade", result.LimitMachine, "perfmq's machine had no port, file or memory for %d connections",
		"raise ulimit -n, give --local-address, or use more hosts",
	},
	{
		"refused", result.LimitBroker, "it refused, or did not answer, %d of %d connections",
		"see its limits of connections",
	},
	{
		"opening", result.LimitBroker, "its part in %s took %s of the time of an opening",
		"try a larger --max-pending, or give the broker more processors",
	},
	{"pause", result.LimitMachine, "perfmq was paused for up to %s", ownMachine},
}

// NewLimit returns the limit of a rate by the name of its bound. The values fill the bound's text.
func NewLimit(bound string, share float64, values ...any) result.Limit {
	i := 0
	for bounds[i].name != bound {
		i++
	}
	b := &bounds[i]
	return result.Limit{Kind: b.kind, Share: share, Text: fmt.Sprintf(b.text, values...), Hint: b.hint}
}

// LimitTitle names the kind of a limit.
func LimitTitle(kind string) string {
	return cmp.Or(map[string]string{
		result.LimitCredit: "the broker's credit", result.LimitBroker: "the broker", result.LimitConsumers: "the consumers",
		result.LimitProducers: "the producers", result.LimitMachine: "the machine", result.LimitSocket: "the network buffer",
		result.LimitWorker: "one worker of perfmq", result.LimitProcessors: "perfmq's processors",
	}[kind], kind)
}

// Limit returns a limit as one line of text without a label.
func Limit(l *result.Limit) string {
	title := LimitTitle(l.Kind)
	if l.Kind == result.LimitNone {
		return title + ": " + l.Text
	}
	return title + " (" + strings.TrimSuffix(l.Text+"; "+l.Hint, "; ") + ")"
}
