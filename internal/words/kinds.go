package words

import "github.com/perfmq/perfmq/pkg/result"

//nolint:gochecknoglobals // a table that never changes
var kinds = []Kind{
	{"error", result.Problem, "%s"},
	{"rejected", result.Problem, "messages rejected by the broker: %d"},
	{"released", result.Problem, "messages given back by the broker: %d"},
	{"modified", result.Problem, "messages given back by the broker as modified: %d"},
	{"failed", result.Problem, "messages failed: %d"},
	{"unconfirmed", result.Problem, "messages without an answer, which the broker may have or not: %d"},
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
	{"delayed", result.Warning, "transfer times are of both %d delayed messages, with their delays, and %d others"},
	{"out-of-range", result.Warning, "latencies above %s, counted as that: %d"},
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
